package store

import (
	"context"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/webhooks"
)

// ofProject restricts deliveries to those of a project and of the whole deployment.
const ofProject = `d.project in (@project, '')`

const recordColumns = `d.id::text, d.endpoint, d.message_id, d.type, d.project, coalesce(d.screening_id::text, ''), coalesce(d.review_id::text, ''),
	d.state, d.attempt, d.due_at, d.created_at, d.finished_at,
	a.attempt, coalesce(a.request::text, ''), a.started_at, a.duration_ms, a.address, a.status, a.class, a.detail`

// recordFrom joins the last attempt of each delivery.
const recordFrom = ` from delivery d left join lateral (
	select * from delivery_attempt where delivery_id = d.id order by attempt desc limit 1) a on true `

func scanRecord(row pgx.CollectableRow) (r webhooks.Record, err error) {
	var number, ms, status *int
	var started *time.Time
	var address, class, detail *string
	var request string
	err = row.Scan(&r.ID, &r.EndpointID, &r.MessageID, &r.Type, &r.Project, &r.ScreeningID, &r.ReviewID, &r.State, &r.Attempts,
		&r.DueAt, &r.CreatedAt, &r.FinishedAt, &number, &request, &started, &ms, &address, &status, &class, &detail)
	if err == nil && number != nil {
		r.Last = &webhooks.Logged{Number: *number, Request: request, StartedAt: *started, Duration: time.Duration(*ms) * time.Millisecond,
			Address: *address, Status: *status, Class: webhooks.Class(*class), Detail: *detail}
	}
	return r, err
}

// Deliveries lists the newest first.
func (s *Store) Deliveries(ctx context.Context, project string, q webhooks.RecordQuery) ([]webhooks.Record, error) {
	args := pgx.StrictNamedArgs{"project": project, "endpoint": q.EndpointID, "state": q.State, "type": q.Type, "review": q.ReviewID,
		"first": q.After == nil, "at": time.Time{}, "id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `select `+recordColumns+recordFrom+`where `+ofProject+`
		  and (@endpoint = '' or d.endpoint = @endpoint) and (@state = '' or d.state = @state) and (@type = '' or d.type = @type)
		  and (@review = '' or d.review_id = nullif(@review, '')::uuid)
		  and (@first or (d.created_at, d.id) < (@at::timestamptz, @id::uuid))
		order by d.created_at desc, d.id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanRecord)
	return list, translate(err)
}

// snapshot reads several things as they are at one moment.
func (s *Store) snapshot(ctx context.Context, project string, read func(pgx.Tx) error) error {
	return translate(pgx.BeginTxFunc(ctx, s.of(project), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read))
}

// Delivery reads one with its body and attempts. ErrNotFound.
func (s *Store) Delivery(ctx context.Context, project, id string) (*webhooks.Record, error) {
	var r webhooks.Record
	err := s.snapshot(ctx, project, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+recordColumns+recordFrom+`where `+ofProject+` and d.id = @id`,
			pgx.StrictNamedArgs{"project": project, "id": id})
		if err != nil {
			return err
		}
		if r, err = pgx.CollectExactlyOneRow(rows, scanRecord); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select body from delivery where id = $1`, id).Scan(&r.Body); err != nil {
			return err
		}
		rows, err = tx.Query(ctx, `select attempt, coalesce(request::text, ''), started_at, duration_ms, address, status, class, detail
			from delivery_attempt where delivery_id = $1 order by attempt`, id)
		if err != nil {
			return err
		}
		r.Log, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l webhooks.Logged, err error) {
			var ms int
			err = row.Scan(&l.Number, &l.Request, &l.StartedAt, &ms, &l.Address, &l.Status, &l.Class, &l.Detail)
			l.Duration = time.Duration(ms) * time.Millisecond
			return l, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// Redeliver sends a message again: the same id and bytes, the schedule from its
// start. It gives the id of the request. ErrNotFound, webhooks.ErrUnderWay,
// webhooks.ErrDisabled.
func (s *Store) Redeliver(ctx context.Context, id string, by webhooks.Order) (request string, err error) {
	var domain error
	err = pgx.BeginFunc(ctx, s.of(by.Project), func(tx pgx.Tx) error {
		domain = nil
		var endpoint string
		if err := tx.QueryRow(ctx, `select d.endpoint from delivery d where `+ofProject+` and d.id = @id`,
			pgx.StrictNamedArgs{"project": by.Project, "id": id}).Scan(&endpoint); err != nil {
			return err
		}
		var err error
		if request, domain, err = s.ask(ctx, tx, endpoint, by); err != nil || domain != nil {
			return first(err, domain)
		}
		tag, err := tx.Exec(ctx, againSQL+` where d.id = $2 and d.state <> 'delivering'`, request, id)
		if err == nil && tag.RowsAffected() == 0 {
			domain = webhooks.ErrUnderWay
		}
		return first(err, domain)
	})
	return s.asked(request, domain, err)
}

// againSQL makes a delivery due now for the request $1.
const againSQL = `update delivery d set state = 'pending', due_at = now(), finished_at = null, round_start = d.attempt, request = $1`

// RedeliverFailed sends again what died at an endpoint since a time, and what
// waits for its next attempt there, in the project and of the whole deployment.
// What nobody needs to hear any more is left out.
func (s *Store) RedeliverFailed(ctx context.Context, endpoint string, since time.Time, by webhooks.Order) (request string, n int, err error) {
	var domain error
	err = pgx.BeginFunc(ctx, s.of(by.Project), func(tx pgx.Tx) error {
		domain = nil
		var err error
		if request, domain, err = s.ask(ctx, tx, endpoint, by); err != nil || domain != nil {
			return first(err, domain)
		}
		tag, err := tx.Exec(ctx, againSQL+` from delivery x left join review r on r.id = x.review_id
			where x.id = d.id and d.endpoint = $2 and d.project in ($3, '') and d.type <> 'endpoint.ping'
			  and (d.state = 'dead' and d.finished_at >= $4 or d.state = 'pending' and d.attempt > d.round_start)
			  and not (r.closed_at is not null and d.type in ('review.opened', 'review.reminder', 'review.overdue'))`,
			request, endpoint, by.Project, since)
		n = int(tag.RowsAffected())
		return err
	})
	request, err = s.asked(request, domain, err)
	return request, n, err
}

// ask locks an endpoint that can be sent to, records that a person asked, and
// lets the next delivery through an open breaker. domain is what is wrong with
// the request.
func (s *Store) ask(ctx context.Context, tx pgx.Tx, endpoint string, by webhooks.Order) (request string, domain, err error) {
	var disabled bool
	if err := tx.QueryRow(ctx, `select disabled_at is not null from endpoint where id = $1 and removed_at is null for update`, endpoint).
		Scan(&disabled); err != nil {
		return "", nil, err
	}
	if disabled {
		return "", webhooks.ErrDisabled, nil
	}
	if _, err := tx.Exec(ctx, `update endpoint set open_until = least(open_until, now()) where id = $1 and open_until is not null`, endpoint); err != nil {
		return "", nil, err
	}
	request, err = recordEvent(ctx, tx, endpoint, "redelivered", by)
	return request, nil, err
}

func first(err, domain error) error {
	if err != nil {
		return err
	}
	return domain
}

// asked ends a request: what was asked for is to be sent now.
func (s *Store) asked(request string, domain, err error) (string, error) {
	if domain != nil {
		return "", domain
	}
	if err != nil {
		return "", translate(err)
	}
	s.enqueued()
	return request, nil
}

// PingEndpoint sends a test message to an endpoint, also to one that is disabled or
// cooling down, and gives its delivery's id. ErrNotFound.
func (s *Store) PingEndpoint(ctx context.Context, endpoint string, by webhooks.Order) (delivery string, err error) {
	err = pgx.BeginFunc(ctx, s.of(by.Project), func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select from endpoint where id = $1 and removed_at is null for update`, endpoint).Scan(); err != nil {
			return err
		}
		request, err := recordEvent(ctx, tx, endpoint, "pinged", by)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `with message as (
				select @endpoint::text as endpoint, 'endpoint.ping' as type, @endpoint::text as about, @actor::text as actor, @project::text as project
			) `+insertDeliverySQL+` returning id::text`,
			pgx.StrictNamedArgs{"endpoint": endpoint, "actor": by.Actor, "project": by.Project, "base_url": s.cfg.BaseURL}).Scan(&delivery); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update delivery set request = $2 where id = $1`, delivery, request)
		return err
	})
	if err != nil {
		return "", translate(err)
	}
	s.enqueued()
	return delivery, nil
}

const endpointsSQL = `select e.id, e.host, e.format, e.types, e.disabled_at, coalesce(e.disabled_by, ''), coalesce(e.disabled_why, ''),
	e.failures, e.failing_since, e.open_until,
	(select count(*) from delivery d where d.endpoint = e.id and d.state in ('pending', 'delivering')),
	(select count(*) from delivery d where d.endpoint = e.id and d.state = 'held'),
	(select count(*) from delivery d where d.endpoint = e.id and d.state = 'dead')
	from endpoint e where e.removed_at is null`

func scanEndpoint(row pgx.CollectableRow) (e webhooks.EndpointStatus, err error) {
	err = row.Scan(&e.ID, &e.Host, &e.Format, &e.Types, &e.DisabledAt, &e.DisabledBy, &e.DisabledWhy, &e.Failures, &e.FailingSince,
		&e.OpenUntil, &e.Waiting, &e.Held, &e.Dead)
	return e, err
}

// Endpoints lists those that are declared, by id. They are the deployment's; counted
// are the deliveries that the project may see.
func (s *Store) Endpoints(ctx context.Context, project string) ([]webhooks.EndpointStatus, error) {
	return endpoints(ctx, s.of(project))
}

func endpoints(ctx context.Context, db querier) ([]webhooks.EndpointStatus, error) {
	rows, err := db.Query(ctx, endpointsSQL+` order by e.id`)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanEndpoint)
	return list, translate(err)
}

// Endpoint reads one with what was done to it. ErrNotFound.
func (s *Store) Endpoint(ctx context.Context, project, id string) (*webhooks.EndpointStatus, error) {
	var e webhooks.EndpointStatus
	err := s.snapshot(ctx, project, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, endpointsSQL+` and e.id = $1`, id)
		if err != nil {
			return err
		}
		if e, err = pgx.CollectExactlyOneRow(rows, scanEndpoint); err != nil {
			return err
		}
		rows, err = tx.Query(ctx, `select id::text, type, actor, reason, at from endpoint_event where endpoint = $1 order by at desc, id limit 100`, id)
		if err != nil {
			return err
		}
		e.Events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[webhooks.EndpointEvent])
		return err
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// EnableEndpoint lets an endpoint be sent to again, closes its breaker and releases what
// is held. ErrNotFound.
func (s *Store) EnableEndpoint(ctx context.Context, id string, by webhooks.Order) error {
	err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update endpoint set disabled_at = null, disabled_by = null, disabled_why = null,
			failures = 0, failing_since = null, trips = 0, open_until = null where id = $1 and removed_at is null`, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		if _, err := tx.Exec(ctx, `update delivery set state = 'pending', due_at = now() where endpoint = $1 and state = 'held'`, id); err != nil {
			return err
		}
		_, err = recordEvent(ctx, tx, id, "enabled", by)
		return err
	})
	return s.changed(err)
}

// DisableEndpoint stops an endpoint; what waits for it is held, and the others are told.
// ErrNotFound.
func (s *Store) DisableEndpoint(ctx context.Context, id string, by webhooks.Order) error {
	err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select from endpoint where id = $1 and removed_at is null for update`, id).Scan(); err != nil {
			return err
		}
		_, err := s.disable(ctx, tx, id, by)
		return err
	})
	return s.changed(err)
}

func (s *Store) changed(err error) error {
	if err != nil {
		return translate(err)
	}
	s.enqueued()
	return nil
}

// Addresses gives where this store's connections went, for the webhooks' guard:
// no receiver is ever dialled there.
func (s *Store) Addresses() []netip.AddrPort {
	s.dialled.mu.Lock()
	defer s.dialled.mu.Unlock()
	return append([]netip.AddrPort(nil), s.dialled.addrs...)
}
