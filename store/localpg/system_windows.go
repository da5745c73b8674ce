package localpg

import (
	"errors"
	"os"
	"syscall"
)

// There is no private server on Windows; weir builds there for its offline commands and for DATABASE_URL.

var (
	errLocked      = errors.New("locked by another process")
	errUnsupported = errors.New("a private database server is not supported on Windows: set DATABASE_URL")
)

type account struct{}

func serverAccount(string) (*account, error)       { return nil, errUnsupported }
func tryLock(*os.File) error                       { return errUnsupported }
func interrupt(int) error                          { return errUnsupported }
func (*account) mkdir(string) error                { return errUnsupported }
func (*account) sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
func (*account) hint(string) string                { return "" }
