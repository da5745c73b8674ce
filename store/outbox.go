package store

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/webhooks"
)

// Outbox is the store's side of webhook delivery.
type Outbox struct{ s *Store }

// Outbox gives the deliveries of this store.
func (s *Store) Outbox() Outbox { return Outbox{s} }

var _ webhooks.Outbox = Outbox{}

// removeAfter is how long nobody has to declare an endpoint for it to be
// removed. During a rolling restart some replicas do and some do not, and what
// waits must not be cancelled for that.
const removeAfter = 10 * time.Minute

// Declare tells which endpoints a process has. It also tidies up: what nobody
// declares any more is removed, and what waits for it is cancelled; what slipped
// in while an endpoint was being disabled is held, and what was held while it was
// being enabled is released.
func (o Outbox) Declare(ctx context.Context, endpoints []webhooks.Declared) error {
	// In one order, so that replicas cannot wait for each other's rows.
	endpoints = slices.SortedFunc(slices.Values(endpoints), func(a, b webhooks.Declared) int { return strings.Compare(a.ID, b.ID) })
	batch := &pgx.Batch{}
	for _, e := range endpoints {
		batch.Queue(`with before as (
				select removed_at from endpoint where id = $1
			), now_there as (
				insert into endpoint (id, host, format, types) values ($1, $2, $3, $4)
				on conflict (id) do update set host = $2, format = $3, types = $4, seen_at = now(), removed_at = null
				returning id
			)
			insert into endpoint_event (endpoint, type, actor, reason)
			select id, 'declared', 'weir', 'policies.yaml declares it' from now_there
			where not exists (select from before where removed_at is null)`, e.ID, e.Host, string(e.Format), e.Types)
	}
	batch.Queue(`with gone as (
			update endpoint set removed_at = now() where removed_at is null and seen_at < now() - make_interval(secs => $1) returning id
		)
		insert into endpoint_event (endpoint, type, actor, reason)
		select id, 'removed', 'weir', 'no policies.yaml declares it any more' from gone`, removeAfter.Seconds())
	batch.Queue(`update delivery d set state = 'cancelled', finished_at = now(), claim = null, lease_until = null from endpoint e
		where e.id = d.endpoint and e.removed_at is not null
		  and (d.state in ('pending', 'held') or d.state = 'delivering' and d.lease_until <= now())`)
	batch.Queue(`update delivery d set state = 'held', claim = null, lease_until = null from endpoint e
		where e.id = d.endpoint and e.disabled_at is not null and d.type <> 'endpoint.ping'
		  and (d.state = 'pending' or d.state = 'delivering' and d.lease_until <= now())`)
	batch.Queue(`update delivery d set state = 'pending', due_at = now() from endpoint e
		where e.id = d.endpoint and e.disabled_at is null and e.removed_at is null and d.state = 'held'`)
	// A batch without BEGIN is one transaction.
	if err := o.s.every.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("declare endpoints: %w", translate(err))
	}
	return nil
}

// Endpoints lists those that are declared, with the deliveries of all projects.
func (o Outbox) Endpoints(ctx context.Context) ([]webhooks.EndpointStatus, error) {
	return endpoints(ctx, o.s.every)
}

// claimSQL goes endpoint by endpoint, so that it never walks over the backlog of
// one that is down, but for the pings among it, in the hour after somebody asked for
// one. Where a breaker is open and its time is over, it sets the
// time ahead by a lease and takes one delivery: whoever comes next, on whatever
// replica, finds the breaker open until that one has ended.
const claimSQL = `
with probing as (
	update endpoint e set open_until = now() + make_interval(secs => @lease::double precision)
	where e.id in (select id from endpoint where id = any (@endpoints::text[]) and disabled_at is null and open_until <= now()
		for update skip locked) -- whoever holds it probes, or changes it
	  and exists (select from delivery d where d.endpoint = e.id and d.type <> 'endpoint.ping'
		and (d.state = 'pending' and d.due_at <= now() or d.state = 'delivering' and d.lease_until <= now()))
	returning e.id
), lane as (
	select n.id, case when e.disabled_at is null and e.open_until is null then 'all' else 'pings' end as takes, @limit::integer as most
	from unnest(@endpoints::text[]) as n(id) left join endpoint e on e.id = n.id
	where e.disabled_at is null and e.open_until is null
		or exists (select from endpoint_event v where v.endpoint = n.id and v.at > now() - interval '1 hour' and v.type in ('pinged', 'redelivered'))
	union all select id, 'probe', 1 from probing
), ripe as (
	select d.id, d.due_at, l.id as endpoint, l.takes from lane l cross join lateral (
		select id, due_at from delivery
		where endpoint = l.id and state = 'pending' and due_at <= now() and (l.takes = 'all' or (type = 'endpoint.ping') = (l.takes = 'pings'))
		order by due_at limit l.most for update skip locked) d
	union all
	select d.id, d.due_at, l.id, l.takes from lane l cross join lateral (
		select id, due_at from delivery
		where endpoint = l.id and state = 'delivering' and lease_until <= now() and (l.takes = 'all' or (type = 'endpoint.ping') = (l.takes = 'pings'))
		order by due_at limit l.most for update skip locked) d
), due as (
	select *, row_number() over (partition by endpoint, takes order by due_at, id) as n from ripe
), chosen as (
	select id, takes = 'probe' as probe from due where takes <> 'probe' or n = 1 order by due_at limit @limit
)
update delivery d set state = 'delivering', attempt = attempt + 1, claim = gen_random_uuid(),
	lease_until = now() + make_interval(secs => @lease::double precision)
from chosen c where d.id = c.id
returning d.id::text, d.endpoint, d.message_id, d.type, d.body, d.attempt, d.round_start, coalesce(d.request::text, ''), c.probe, d.claim::text`

// Claim leases deliveries that are due or whose lease ran out, oldest first. The
// claim is a fencing token: a worker that lost its lease can finish nothing. The
// attempt is counted here, so that a crash cannot make a delivery endless.
func (o Outbox) Claim(ctx context.Context, limit int, lease time.Duration, endpoints []string) ([]webhooks.Delivery, error) {
	rows, err := o.s.every.Query(ctx, claimSQL, pgx.StrictNamedArgs{"limit": limit, "lease": lease.Seconds(), "endpoints": nonNil(endpoints)})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", translate(err))
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d webhooks.Delivery, err error) {
		err = row.Scan(&d.ID, &d.EndpointID, &d.MessageID, &d.Type, &d.Body, &d.Attempt, &d.RoundStart, &d.Request, &d.Probe, &d.Claim)
		return d, err
	})
	return claimed, translate(err)
}

// finishSQL moves a delivery under its claim. What would be tried again although
// its review is closed is cancelled, or held if its endpoint gets no more. And
// while a review waits for an answer, the next attempt comes before its due time
// rather than after it: a receiver's wish for patience cannot outlast it.
const finishSQL = `
with at as (
	select d.id, r.closed_at is not null and d.type in ('review.opened', 'review.reminder', 'review.overdue') as obsolete,
		exists (select from endpoint e where e.id = d.endpoint and e.disabled_at is not null) as disabled,
		now() + make_interval(secs => @retry_in::double precision) as again,
		case when r.closed_at is null and r.due_at - interval '5 seconds' > now() then r.due_at - interval '5 seconds' end as last_call
	from delivery d left join review r on r.id = d.review_id where d.id = @id
), next as (
	select id, case when @state <> 'pending' then @state when obsolete then 'cancelled' when disabled then 'held' else 'pending' end as state,
		case when @state = 'pending' then least(again, last_call) end as due_at
	from at
)
update delivery d set claim = null, lease_until = null, request = null, state = n.state, due_at = coalesce(n.due_at, d.due_at),
	finished_at = case when n.state in ('delivered', 'dead', 'cancelled') then now() end
from next n where n.id = d.id and d.claim = @claim and d.state = 'delivering'`

// Finish records an attempt and moves the delivery, only under its claim, and
// the breaker of its endpoint with it. The endpoint comes first, here as
// everywhere, so that nobody waits for each other.
func (o Outbox) Finish(ctx context.Context, d webhooks.Delivery, a webhooks.Attempt, out webhooks.Outcome) error {
	state := map[webhooks.State]string{webhooks.StateDelivered: "delivered", webhooks.StateRetry: "pending",
		webhooks.StateDead: "dead", webhooks.StateHeld: "held"}[out.State]
	if state == "" {
		return fmt.Errorf("finish delivery %s: outcome %q is not one", d.ID, out.State)
	}
	told := false
	err := pgx.BeginFunc(ctx, o.s.every, func(tx pgx.Tx) error {
		disable := out.Disable
		if a.Number > 0 {
			gaveUp, err := o.s.count(ctx, tx, d, a)
			if err != nil {
				return err
			}
			if disable == "" && gaveUp {
				disable = fmt.Sprintf("nothing but failures for %s", days(o.s.cfg.Breaker.DisableAfter))
			}
		}
		if disable != "" {
			var err error
			if told, err = o.s.disable(ctx, tx, d.EndpointID, webhooks.Order{Actor: "weir", Reason: disable}); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, finishSQL, pgx.StrictNamedArgs{"id": d.ID, "claim": d.Claim, "state": state, "retry_in": out.RetryIn.Seconds()})
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return webhooks.ErrClaimLost
		}
		if a.Number == 0 {
			return nil
		}
		_, err = tx.Exec(ctx, `insert into delivery_attempt (delivery_id, attempt, started_at, duration_ms, address, status, class, detail, answer, truncated, request)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, nullif($11, '')::uuid)`, d.ID, a.Number, a.StartedAt, a.Duration.Milliseconds(),
			dialled(a.Host, a.IP), a.Status, string(a.Class), a.Detail, a.Answer, a.Truncated, a.Request)
		return err
	})
	if errors.Is(err, webhooks.ErrClaimLost) {
		return webhooks.ErrClaimLost
	}
	if err != nil {
		return fmt.Errorf("finish delivery %s: %w", d.ID, translate(err))
	}
	if told {
		o.s.enqueued()
	}
	return nil
}

// count keeps the breaker, see webhooks.Breaker. A failure of what was under way
// when it opened does not make the pause longer; only the probe's does. It tells
// whether the endpoint is to be given up.
func (s *Store) count(ctx context.Context, tx pgx.Tx, d webhooks.Delivery, a webhooks.Attempt) (gaveUp bool, err error) {
	if a.Delivered() {
		_, err = tx.Exec(ctx, `update endpoint set failures = 0, failing_since = null, trips = 0, open_until = null
			where id = $1 and (failures > 0 or trips > 0)`, d.EndpointID)
		return false, err
	}
	if d.Type == webhooks.TypePing {
		return false, nil // a person who tries things out is no sign of an outage
	}
	b := s.cfg.Breaker
	err = tx.QueryRow(ctx, `insert into endpoint as e (id, failures, failing_since, trips, open_until)
			values (@id, 1, now(), case when @most = 1 then 1 else 0 end, case when @most = 1 then now() + @pause::interval end)
		on conflict (id) do update set failures = e.failures + 1, failing_since = coalesce(e.failing_since, now()),
			trips = case when @probe then e.trips + 1 when e.trips = 0 and e.failures + 1 >= @most then 1 else e.trips end,
			open_until = case when @probe then now() + least(@pause::interval * power(2, least(e.trips, 30)), @longest::interval)
				when e.trips = 0 and e.failures + 1 >= @most then now() + @pause::interval else e.open_until end
		returning e.disabled_at is null and e.failures >= @most and e.failing_since <= now() - @give_up::interval`,
		pgx.StrictNamedArgs{"id": d.EndpointID, "probe": d.Probe, "most": b.Failures, "pause": b.Cooldown, "longest": b.MaxCooldown,
			"give_up": b.DisableAfter}).Scan(&gaveUp)
	return gaveUp, err
}

func days(d time.Duration) string {
	if n := int(d / (24 * time.Hour)); n > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", n)
	}
	return d.String()
}

// disable holds what waits for an endpoint, records who did it and why, and tells
// the other endpoints. done is false when it was disabled before.
func (s *Store) disable(ctx context.Context, tx pgx.Tx, id string, by webhooks.Order) (done bool, err error) {
	tag, err := tx.Exec(ctx, `update endpoint set disabled_at = now(), disabled_by = $2, disabled_why = $3
		where id = $1 and disabled_at is null`, id, by.Actor, by.Reason)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	if _, err := tx.Exec(ctx, `update delivery set state = 'held'
		where endpoint = $1 and state = 'pending' and type <> 'endpoint.ping'`, id); err != nil {
		return false, err
	}
	if _, err := recordEvent(ctx, tx, id, "disabled", by); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `with message as (
			select id as endpoint, 'endpoint.disabled' as type, @about::text as about, @actor::text as actor, @reason::text as reason
			from endpoint where id <> @about and removed_at is null and disabled_at is null
		) `+insertDeliverySQL, pgx.StrictNamedArgs{"about": id, "actor": by.Actor, "reason": by.Reason, "base_url": s.cfg.BaseURL})
	return true, err
}

// recordEvent keeps what was done to an endpoint and gives the event's id.
func recordEvent(ctx context.Context, tx pgx.Tx, endpoint, kind string, by webhooks.Order) (id string, err error) {
	err = tx.QueryRow(ctx, `insert into endpoint_event (endpoint, type, actor, reason) values ($1, $2, $3, $4) returning id::text`,
		endpoint, kind, by.Actor, by.Reason).Scan(&id)
	return id, err
}

// enqueued wakes whoever sends, after a commit.
func (s *Store) enqueued() {
	if s.cfg.Enqueued != nil {
		s.cfg.Enqueued()
	}
}

// Release gives claims back unused: due at once, the attempt not counted. A
// probe that was not made is made by the next who asks.
func (o Outbox) Release(ctx context.Context, ds []webhooks.Delivery) error {
	ids, claims, probed := make([]string, len(ds)), make([]string, len(ds)), []string{}
	for i, d := range ds {
		ids[i], claims[i] = d.ID, d.Claim
		if d.Probe {
			probed = append(probed, d.EndpointID)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(`update endpoint set open_until = now() where id = any ($1::text[]) and open_until > now()`, probed)
	batch.Queue(`update delivery d set state = 'pending', attempt = attempt - 1, claim = null, lease_until = null, due_at = now()
		from unnest($1::uuid[], $2::uuid[]) as u(id, claim)
		where d.id = u.id and d.claim = u.claim and d.state = 'delivering'`, ids, claims)
	if err := o.s.every.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("release deliveries: %w", translate(err))
	}
	return nil
}

func dialled(host string, ip netip.Addr) string {
	if !ip.IsValid() {
		return host
	}
	return host + " (" + ip.String() + ")"
}

// insertDeliverySQL enqueues the rows of the relation message, one delivery
// each, to endpoints that want the type. It knows these columns, of which only
// endpoint and type have to be there; what is missing or null is left out of the
// body:
//
//	endpoint, type, project, screening_id, review_id, run_ref, outcome,
//	spec_sha256 (bytea), policies, terms (text[]), due_at, version,
//	about, actor, reason (of messages about an endpoint)
//
// The body is made by the function webhook_body, see the migration that has it.
// It is frozen here, and every attempt sends these bytes. A function rather than
// more SQL here: submissions that tell nobody anything share this statement.
const insertDeliverySQL = `insert into delivery (message_id, endpoint, type, project, screening_id, review_id, state, body)
	select m.j->>'message_id', m.endpoint, m.type, coalesce(m.j->>'project', ''), (m.j->>'screening_id')::uuid,
		(m.j->>'review_id')::uuid, case when e.disabled_at is null or m.type = 'endpoint.ping' then 'pending' else 'held' end,
		webhook_body(m.j, coalesce(e.format, 'standard'), @base_url::text)
	from (
		select endpoint, type, to_jsonb(message) || jsonb_build_object('message_id', 'msg_' || replace(gen_random_uuid()::text, '-', '')) as j from message
	) m left join endpoint e on e.id = m.endpoint
	where e.types is null or m.type = any (e.types) or m.type = 'endpoint.ping'`
