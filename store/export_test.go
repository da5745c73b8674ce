package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/migrations"
	"weir/review"
	"weir/store/ledger"
)

// Traced is a config whose store shows its statements to a tracer.
func Traced(t pgx.QueryTracer) Config { return Config{tracer: t} }

// Setting is a server setting as the store's connections have it.
func Setting(ctx context.Context, s *Store, name string) (value string, err error) {
	err = s.nobody().QueryRow(ctx, `select current_setting($1)`, name).Scan(&value)
	return value, err
}

// MaxConns is the size of the store's pool.
func MaxConns(s *Store) int32 { return s.requests.Config().MaxConns }

// InsertDeliverySQL enqueues the rows of a relation message.
const InsertDeliverySQL = insertDeliverySQL

// ClaimSQL leases deliveries; EndpointsSQL reads endpoints and counts what is theirs.
const (
	ClaimSQL     = claimSQL
	EndpointsSQL = endpointsSQL
)

// WaitingSQL gives the screenings that wait for a waiver.
const WaitingSQL = waitingSQL

// RecordsBy is Records with another page size.
func RecordsBy(ctx context.Context, s *Store, q ledger.Selection, page int, each func(*ledger.Record) error) error {
	return s.records(ctx, q, -1, page, each, func() error { return nil })
}

// RecordsExtent is the part of the log that records are read from.
func RecordsExtent(ctx context.Context, s *Store, q ledger.Selection) (ledger.Extent, error) {
	return s.extent(ctx, q, false)
}

// Of, Nobody and Every are the ways to the database: as a request of a project, as
// one of nobody yet, and as what works over all projects.
func Of(s *Store, project string) tenant { return s.of(project) }
func Nobody(s *Store) tenant             { return s.nobody() }
func Every(s *Store) *pgxpool.Pool       { return s.every }

// WriteTogether writes submissions in one group.
func WriteTogether(ctx context.Context, s *Store, subs ...*review.Submission) (kept []review.Kept, err error) {
	group := make([]*pending, len(subs))
	for i, sub := range subs {
		group[i] = &pending{ctx: ctx, sub: sub, id: uuid.Must(uuid.NewV7())}
	}
	outcomes, err := s.writeGroup(ctx, group)
	for _, o := range outcomes {
		err = errors.Join(err, o.err)
		kept = append(kept, o.kept)
	}
	return kept, err
}

// TakeRequestConnection takes a connection of requests for no project.
func TakeRequestConnection(ctx context.Context, s *Store) error {
	conn, err := s.requests.Acquire(ctx)
	if err == nil {
		conn.Release()
	}
	return err
}

// MigrateTo runs migrations up or down to a version.
func MigrateTo(ctx context.Context, dsn string, version uint) error {
	cfg, err := migrationConfig(dsn)
	if err != nil {
		return err
	}
	lib, err := openLibrary(ctx, cfg, migrations.FS)
	defer lib.close()
	if err != nil {
		return err
	}
	return lib.Migrate.Migrate(version)
}
