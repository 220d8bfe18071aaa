//go:build unix

package app

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// detach keeps signals to the processes of this terminal, and of this group, from a process.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Outlive lets this process go on when what reads its standard error has gone. Its children keep the
// signal's default, which they would not if it were ignored.
func Outlive() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
