package store

import "context"

// Setting is a server setting as the store's connections have it.
func Setting(ctx context.Context, s *Store, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value)
	return value, err
}

// MaxConns is the size of the store's pool.
func MaxConns(s *Store) int32 { return s.pool.Config().MaxConns }
