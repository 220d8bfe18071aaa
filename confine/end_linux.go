package confine

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// leaveWait is the time between SIGTERM and SIGKILL for what is left when
	// the child has ended by itself or the gateway is gone.
	leaveWait = 2 * time.Second

	// Rounds of SIGKILL come closely for a time, against processes that fork
	// faster than they are found; then seldom, if one cannot be killed.
	shortPause, longPause = time.Millisecond, 100 * time.Millisecond
)

// end ends all descendants. It does not return: the process exits when reap
// has seen the last of them go.
func end() {
	signalAll(syscall.SIGTERM)
	<-time.After(leaveWait)
	killAll()
}

// killAll ends all descendants at once, and does not return either.
func killAll() {
	for began := time.Now(); ; {
		signalAll(syscall.SIGKILL)
		if time.Since(began) < killWait {
			<-time.After(shortPause)
		} else {
			<-time.After(longPause)
		}
	}
}

// signalAll sends sig to every descendant. Those that come to be meanwhile may
// be missed.
//
// It signals each where it finds it and not after looking at all, because short-lived processes
// that fork themselves forward are gone by then. The number could belong to another process by now
// only if the kernel had handed out all other numbers in between.
func signalAll(sig syscall.Signal) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	ours, parents := map[int]bool{os.Getpid(): true}, map[int]int{}
	visit := func(pid, parent int) bool {
		if !ours[parent] || ours[pid] {
			return false
		}
		ours[pid] = true
		_ = syscall.Kill(pid, sig) // gone, or of another user and out of reach
		return true
	}
	for err == nil {
		var entries []string
		entries, err = proc.Readdirnames(64)
		for _, e := range entries {
			if pid, aerr := strconv.Atoi(e); aerr == nil {
				parents[pid] = parentOf(e)
				visit(pid, parents[pid])
			}
		}
	}
	// Numbers mostly rise from parent to child; these are the others.
	for again := true; again; {
		again = false
		for pid, parent := range parents {
			again = visit(pid, parent) || again
		}
	}
}

// parentOf returns the parent of a process by /proc/PID/stat (proc_pid_stat(5)): the second field
// after the name, which is in parentheses and may itself contain any. It returns 0 if the process
// is gone.
func parentOf(pid string) int {
	b, _ := os.ReadFile("/proc/" + pid + "/stat")
	stat := string(b)
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
