package app

import (
	"os/exec"
	"syscall"
)

// detach keeps signals to the processes of this console from a process.
func detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Outlive lets this process go on when what reads its standard error has gone.
func Outlive() {}
