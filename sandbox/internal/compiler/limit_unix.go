//go:build unix

package compiler

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// own reports whether this user owns a file.
func own(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}

func environment() []string { return []string{} }

// prepare gives a child a process group of its own. The child sets the priority of that group, and
// no key of a terminal reaches it.
func prepare(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// confine has nothing to do: a child limits itself, before it reads its order.
func (limits) confine(*os.Process) (release func(), err error) { return func() {}, nil }

// restrict applies the limits of a child to this process.
func (l limits) restrict() error {
	if unix.Setpriority(unix.PRIO_PGRP, 0, 10) != nil { // the gateway's own is lower: only going lower is left
		if err := unix.Setpriority(unix.PRIO_PGRP, 0, 19); err != nil {
			return fmt.Errorf("priority: %w", err)
		}
	}
	if err := limitMemory(l.memory); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("core dumps: %w", err)
	}
	var cpu unix.Rlimit
	setSeconds(&cpu.Cur, l.cpu)
	setSeconds(&cpu.Max, l.cpu+time.Second)
	spent := make(chan os.Signal, 1)
	signal.Notify(spent, unix.SIGXCPU)
	go func() {
		<-spent
		syscall.Exit(cpuSpent)
	}()
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &cpu); err != nil {
		return fmt.Errorf("CPU: %w", err)
	}
	return nil
}

// setSeconds sets a field of a limit, whose type is not the same on all systems.
func setSeconds[T int64 | uint64](field *T, d time.Duration) { *field = T(d / time.Second) }
