package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// NewKey is a key to be kept. Only the digest of its secret is.
type NewKey struct {
	ID           string
	SecretSHA256 screening.Digest256
	Project      string
	Subject      string
	Scopes       []review.Scope
	ExpiresIn    time.Duration // 0 = never
}

// CreateKey keeps a key.
func (s *Store) CreateKey(ctx context.Context, k NewKey) error {
	_, err := s.every.Exec(ctx, `insert into api_key (id, secret_sha256, project, subject, scopes, expires_at)
		values ($1, $2, $3, $4, $5, case when $6::double precision > 0 then now() + make_interval(secs => $6) end)`,
		k.ID, k.SecretSHA256[:], k.Project, k.Subject, k.Scopes, k.ExpiresIn.Seconds())
	return translate(err)
}

// RevokeKey ends a key at once. ErrNotFound when there is none, or it was revoked before.
func (s *Store) RevokeKey(ctx context.Context, id string) error {
	tag, err := s.every.Exec(ctx, `update api_key set revoked_at = now() where id = $1 and revoked_at is null`, id)
	if err == nil && tag.RowsAffected() == 0 {
		return review.ErrNotFound
	}
	return translate(err)
}

// KeyInfo is what can be shown of a key.
type KeyInfo struct {
	ID         string
	Project    string
	Subject    string
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}

// Keys lists all keys, oldest first.
func (s *Store) Keys(ctx context.Context) ([]KeyInfo, error) {
	rows, err := s.every.Query(ctx, `select id, project, subject, scopes, created_at, expires_at, last_used_at, revoked_at
		from api_key order by created_at, id`)
	if err != nil {
		return nil, translate(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyInfo])
	return keys, translate(err)
}

// noteUse never waits for others who note the same, and its failure is no reason
// to turn a caller away.
func (s *Store) noteUse(ctx context.Context, project, id string) {
	_, err := s.of(project).Exec(ctx, `update api_key set last_used_at = now() where id =
		(select id from api_key where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute') for update skip locked)`, id)
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "use of a key not noted", "error", err)
	}
}

// Authenticate gives the principal of a key. review.ErrUnauthenticated for anything but a live key.
func (s *Store) Authenticate(ctx context.Context, id string, secret screening.Digest256) (review.Principal, error) {
	var kept []byte
	var p review.Principal
	var live, stale bool
	err := s.nobody().QueryRow(ctx, `select secret_sha256, project, subject, scopes, live, stale from key_of($1)`, id).
		Scan(&kept, &p.Project, &p.Subject, &p.Scopes, &live, &stale)
	found := err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		kept, err = make([]byte, len(secret)), nil // compare all the same: timing tells nothing
	}
	if err != nil {
		return review.Principal{}, translate(err)
	}
	if subtle.ConstantTimeCompare(kept, secret[:]) != 1 || !found || !live {
		return review.Principal{}, review.ErrUnauthenticated
	}
	if stale { // once a minute is enough to know that a key is in use
		s.noteUse(ctx, p.Project, id)
	}
	return p, nil
}
