//go:build unix

package app

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups returns the signals by which an operator has the configuration read again.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
