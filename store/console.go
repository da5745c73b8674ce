package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

const (
	// LoginLinkLife is how long a login link can be used.
	LoginLinkLife = 10 * time.Minute
	// SessionIdle is after how long without a request a session ends.
	SessionIdle = 30 * time.Minute
	// SessionLife is how long a session lasts at most.
	SessionLife = 8 * time.Hour
)

// CreateLoginLink keeps a login link for a principal, for LoginLinkLife. Only the
// digest of its token is.
func (s *Store) CreateLoginLink(ctx context.Context, token screening.Digest256, p review.Principal) error {
	_, err := s.every.Exec(ctx, `with gone as (delete from console_link where expires_at < now() - interval '1 day')
		insert into console_link (token_sha256, project, person, scopes, expires_at)
		values ($1, $2, $3, $4, now() + make_interval(secs => $5))`,
		token[:], p.Project, p.Subject, p.Scopes, LoginLinkLife.Seconds())
	return translate(err)
}

// LoginLink gives the principal of a link that UseLoginLink would take, and leaves
// it as it is.
func (s *Store) LoginLink(ctx context.Context, token screening.Digest256) (p review.Principal, err error) {
	err = s.nobody().QueryRow(ctx, `select project, person, scopes from login_link($1)`, token[:]).Scan(&p.Project, &p.Subject, &p.Scopes)
	return p, unauthenticated(err)
}

// UseLoginLink gives the principal of a link, once. review.ErrUnauthenticated
// for anything but a live link that nobody used.
func (s *Store) UseLoginLink(ctx context.Context, token screening.Digest256) (p review.Principal, err error) {
	err = s.nobody().QueryRow(ctx, `select project, person, scopes from use_login_link($1)`, token[:]).Scan(&p.Project, &p.Subject, &p.Scopes)
	return p, unauthenticated(err)
}

// OpenSession keeps a session; keyID is the API key that it came from, or "". The
// sessions that are over go with it.
func (s *Store) OpenSession(ctx context.Context, id screening.Digest256, p review.Principal, keyID string) error {
	_, err := s.of(p.Project).Exec(ctx, `with gone as (delete from console_session where created_at < now() - make_interval(secs => $6))
		insert into console_session (id_sha256, project, person, scopes, key_id) values ($1, $2, $3, $4, nullif($5, ''))`,
		id[:], p.Project, p.Subject, p.Scopes, keyID, SessionLife.Seconds())
	return translate(err)
}

// Session gives the principal of a live session and notes that it is in use.
// review.ErrUnauthenticated for any other, also when its API key ended.
func (s *Store) Session(ctx context.Context, id screening.Digest256) (p review.Principal, err error) {
	err = s.nobody().QueryRow(ctx, `select project, person, scopes from session_of($1, make_interval(secs => $2), make_interval(secs => $3))`,
		id[:], SessionIdle.Seconds(), SessionLife.Seconds()).Scan(&p.Project, &p.Subject, &p.Scopes)
	return p, unauthenticated(err)
}

// EndSession ends a session, if it is there.
func (s *Store) EndSession(ctx context.Context, id screening.Digest256) error {
	_, err := s.nobody().Exec(ctx, `select end_session($1)`, id[:])
	return translate(err)
}

// unauthenticated is translate where no row means that nobody is known.
func unauthenticated(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return review.ErrUnauthenticated
	}
	return translate(err)
}

// Exposure counts how often a person opened excerpts.
func (s *Store) Exposure(ctx context.Context, project, person string) (e review.Exposure, err error) {
	err = s.of(project).QueryRow(ctx, `select count(*) filter (where at > now() - interval '1 day'), count(*)
		from exposure where project = $1 and person = $2 and at > now() - interval '7 days'`, project, person).Scan(&e.Today, &e.Week)
	return e, translate(err)
}

// NoteExposure keeps that a person is shown excerpts, and counts it in.
func (s *Store) NoteExposure(ctx context.Context, project, person, screeningID string, excerpts int) (review.Exposure, error) {
	if _, err := s.of(project).Exec(ctx, `insert into exposure (project, person, screening_id, excerpts) values ($1, $2, $3, $4)`,
		project, person, screeningID, excerpts); err != nil {
		return review.Exposure{}, translate(err)
	}
	return s.Exposure(ctx, project, person)
}
