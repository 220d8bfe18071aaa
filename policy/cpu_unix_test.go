//go:build unix

package policy_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of the processors, which on a busy machine
// says more than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
