package main

import (
	"os/exec"
	"syscall"
)

// dieWithTest has the kernel kill the process when the test binary dies, however it dies.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
