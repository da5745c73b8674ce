//go:build !linux && !darwin

package storetest

import "errors"

type member struct{ dsn string }

func joinServer() (*member, error) {
	return nil, errors.New("not supported on this system: set WEIR_TEST_DSN to a server where databases may be created")
}
