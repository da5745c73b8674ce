package store

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/webhooks"
)

// Outbox is the store's side of webhook delivery.
type Outbox struct{ s *Store }

// Outbox gives the deliveries of this store.
func (s *Store) Outbox() Outbox { return Outbox{s} }

var _ webhooks.Outbox = Outbox{}

// Claim leases deliveries that are due or whose lease ran out, oldest first. The
// claim is a fencing token: a worker that lost its lease can finish nothing. The
// attempt is counted here, so that a crash cannot make a delivery endless.
func (o Outbox) Claim(ctx context.Context, limit int, lease time.Duration, skip []string) ([]webhooks.Delivery, error) {
	rows, err := o.s.pool.Query(ctx, `with due as (
			select id from delivery
			where (state = 'pending' and due_at <= now() or state = 'delivering' and lease_until <= now())
			  and endpoint <> all ($3::text[])
			  and endpoint not in (select endpoint from endpoint_state)
			order by due_at limit $1 for update skip locked
		)
		update delivery d set state = 'delivering', attempt = attempt + 1, claim = gen_random_uuid(),
			lease_until = now() + make_interval(secs => $2)
		from due where d.id = due.id
		returning d.id::text, d.endpoint, d.message_id, d.type, d.body, d.attempt, d.claim::text`,
		limit, lease.Seconds(), nonNil(skip))
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", translate(err))
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d webhooks.Delivery, err error) {
		err = row.Scan(&d.ID, &d.EndpointID, &d.MessageID, &d.Type, &d.Body, &d.Attempt, &d.Claim)
		return d, err
	})
	return claimed, translate(err)
}

// Finish records an attempt and moves the delivery, only under its claim. What
// would be tried again although its review is closed is cancelled instead.
func (o Outbox) Finish(ctx context.Context, d webhooks.Delivery, a webhooks.Attempt, out webhooks.Outcome) error {
	state := map[webhooks.State]string{webhooks.StateDelivered: "delivered", webhooks.StateRetry: "pending",
		webhooks.StateDead: "dead", webhooks.StateHeld: "held"}[out.State]
	if state == "" {
		return fmt.Errorf("finish delivery %s: outcome %q is not one", d.ID, out.State)
	}
	err := pgx.BeginFunc(ctx, o.s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update delivery d set claim = null, lease_until = null,
				state = case when $3 = 'pending' and d.type = 'review.opened' and r.state <> 'open' then 'cancelled' else $3 end,
				due_at = case when $3 = 'pending' then now() + make_interval(secs => $4) else d.due_at end,
				finished_at = case when $3 in ('delivered', 'dead')
					or $3 = 'pending' and d.type = 'review.opened' and r.state <> 'open' then now() end
			from review r where r.id = d.review_id and d.id = $1 and d.claim = $2 and d.state = 'delivering'`,
			d.ID, d.Claim, state, out.RetryIn.Seconds())
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return webhooks.ErrClaimLost
		}
		if a.Number > 0 {
			if _, err := tx.Exec(ctx, `insert into delivery_attempt (delivery_id, attempt, started_at, duration_ms, address, status, class, detail, answer)
				values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, d.ID, a.Number, a.StartedAt, a.Duration.Milliseconds(),
				dialled(a.Host, a.IP), a.Status, string(a.Class), a.Detail, a.Answer); err != nil {
				return err
			}
		}
		if out.DisableEndpoint == "" {
			return nil
		}
		if _, err := tx.Exec(ctx, `insert into endpoint_state (endpoint, reason) values ($1, $2) on conflict do nothing`,
			out.DisableEndpoint, "the receiver answered 410 Gone"); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update delivery set state = 'held' where endpoint = $1 and state = 'pending'`, out.DisableEndpoint)
		return err
	})
	if err != nil && err != webhooks.ErrClaimLost {
		return fmt.Errorf("finish delivery %s: %w", d.ID, translate(err))
	}
	return err
}

// Release gives claims back unused: due at once, the attempt not counted.
func (o Outbox) Release(ctx context.Context, ds []webhooks.Delivery) error {
	ids, claims := make([]string, len(ds)), make([]string, len(ds))
	for i, d := range ds {
		ids[i], claims[i] = d.ID, d.Claim
	}
	_, err := o.s.pool.Exec(ctx, `update delivery d set state = 'pending', attempt = attempt - 1, claim = null, lease_until = null, due_at = now()
		from unnest($1::uuid[], $2::uuid[]) as u(id, claim)
		where d.id = u.id and d.claim = u.claim and d.state = 'delivering'`, ids, claims)
	if err != nil {
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
// each. The body is thin: ids, digests and terms, never text of a spec. It is
// frozen here, and every attempt sends these bytes.
const insertDeliverySQL = `insert into delivery (message_id, endpoint, type, review_id, body)
	select 'msg_' || replace(gen_random_uuid()::text, '-', ''), endpoint, type, review_id,
		convert_to(jsonb_build_object('type', type, 'timestamp', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
			'data', jsonb_build_object('review_id', review_id, 'screening_id', screening_id, 'project', project,
				'outcome', outcome, 'spec_sha256', encode(spec_sha256, 'hex'), 'policies', policies, 'terms', terms,
				'due_at', to_char(due_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'sequence', version)
				|| case when @base_url::text = '' then '{}'::jsonb else jsonb_build_object('url', @base_url::text || '/v1/reviews/' || review_id) end
			)::text, 'UTF8')
	from message`
