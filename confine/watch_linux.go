//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// threadsEach is how many threads there may be for each process that may be:
	// runtimes start one or two for each processor.
	threadsEach = 32
	// countEvery bounds how often processes are counted for a process that forks; it waits
	// meanwhile, which slows a fork bomb too.
	countEvery = 10 * time.Millisecond
	// weighEvery is the time between two looks at the memory of all.
	weighEvery = time.Second
)

// maxSeen bounds what a supervisor remembers to have told.
const maxSeen = 100_000

// watch is the supervisor's part in a confinement: it decides about the calls
// that the filter hands to it, and looks after what no limit of the kernel
// covers without privileges.
//
// RLIMIT_NPROC is not used: it counts all processes of a user, other programs'
// too, and does not hold for root.
type watch struct {
	l       *launch
	reports *gob.Encoder
	seen    map[Access]bool

	// How many may still be made before they are counted again; used by the one
	// goroutine that serves.
	processes, threads int
	counted            time.Time

	forked atomic.Bool // since memory was last weighed
}

// newWatch makes the temporary folder of l and names it in the environment.
func newWatch(l *launch, reports *gob.Encoder) (*watch, error) {
	temp, err := os.MkdirTemp(getenv(l.Env, "TMPDIR"), "wasmgate-")
	if err != nil {
		return nil, err
	}
	l.Temp = temp
	set := []string{"TMPDIR", "TMP", "TEMP"}
	env := slices.DeleteFunc(slices.Clone(l.Env), func(e string) bool {
		return slices.ContainsFunc(set, func(name string) bool { return names(e, name) })
	})
	for _, name := range set {
		env = append(env, name+"="+temp)
	}
	if l.Rules != nil && l.Rules.DNS && getenv(env, "RES_OPTIONS") == "" {
		env = append(env, "RES_OPTIONS=use-vc")
	}
	l.Env = env
	w := &watch{l: l, reports: reports, seen: make(map[Access]bool)}
	w.forked.Store(true)
	return w, nil
}

// close removes the temporary folder. No process is left that could put more into it.
func (w *watch) close() {
	if w != nil {
		_ = os.RemoveAll(w.l.Temp) // what cannot be removed stays, in a folder that only its user reads
	}
}

// begin watches the memory of a child that has started.
func (w *watch) begin() {
	if w.l.Rules != nil && w.l.on(guardTree) {
		go w.weigh()
	}
}

// listen serves the calls on the listener until no process is left to make one.
func (w *watch) listen(listener int) {
	go func() {
		defer unix.Close(listener)
		for {
			ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
			if _, err := unix.Poll(ready, -1); err == unix.EINTR {
				continue
			} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
				return // hung up
			}
			var n notification // zeroed, as the kernel asks
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
				continue // the caller is gone
			}
			a := answer{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			if errno := w.judge(&n); errno != 0 {
				a.Error, a.Flags = -int32(errno), 0
			}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		}
	}()
}

// judge returns 0 to let a call pass. It looks at nothing but arguments in
// registers, which the caller cannot change any more.
func (w *watch) judge(n *notification) unix.Errno {
	if w.l.Learn {
		w.look(n)
		return 0
	}
	pid := int32(n.Args[0])
	switch n.Nr {
	case unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL:
		if !w.ours(pid, n.Nr == unix.SYS_KILL) {
			return unix.EPERM
		}
	default: // clone, fork, vfork
		if !w.mayFork(n.Nr == unix.SYS_CLONE && n.Args[0]&unix.CLONE_THREAD != 0) {
			return unix.EAGAIN
		}
	}
	return 0
}

// look reports what a call uses, if that exists: programs try many places in turn. The caller may
// change its memory after that, so this serves to learn from servers that are trusted, and never to
// decide.
func (w *watch) look(n *notification) {
	for _, a := range accesses(int(n.Pid), n) {
		if a.Path == w.l.Temp || beneath(a.Path, w.l.Temp) || beneathAny(a.Path, baseExecute()) ||
			a.Kind == AccessRead && beneathAny(a.Path, baseRead()) || beneathAny(a.Path, baseWrite()) {
			continue
		}
		if !w.seen[a] && len(w.seen) < maxSeen {
			w.seen[a] = true
			_ = w.reports.Encode(report{Seen: &a}) // the gateway may be gone, and not read it
		}
	}
}

// mayFork reports whether one more process or thread may be made. It counts
// only when what it found last is used up: in between it takes each that it
// allowed to live on.
func (w *watch) mayFork(thread bool) bool {
	if !w.l.on(guardProcesses) {
		return true
	}
	if w.threads < 1 || !thread && w.processes < 1 {
		// Those that were allowed last may not have been made yet.
		time.Sleep(countEvery - time.Since(w.counted))
		w.count()
	}
	if w.threads < 1 || !thread && w.processes < 1 {
		return false
	}
	w.threads--
	if !thread {
		w.processes--
		w.forked.Store(true)
	}
	return true
}

func (w *watch) count() {
	w.counted = time.Now()
	w.processes, w.threads = w.l.Rules.Processes, w.l.Rules.Processes*threadsEach
	for _, p := range descendants() {
		w.processes--
		w.threads -= p.threads
	}
}

// ours reports whether a signal to pid, or as kill(2) to a group, reaches none
// but descendants.
func (w *watch) ours(pid int32, group bool) bool {
	all := descendants()
	if pid > 0 {
		if _, ok := all[int(pid)]; ok {
			return true
		}
		_, ok := all[threadGroup(int(pid))]
		return ok
	}
	if !group || pid == -1 {
		return false
	}
	for _, p := range all {
		if p.group == int(-pid) { // and so are all in it: their sessions hold no other processes
			return true
		}
	}
	return pid == 0 // the group of the caller
}

// A process is the part of stat's answer that the supervisor needs.
type process struct{ parent, group, threads int }

// descendants returns the descendants of this process by number, including those that have ended
// but were not waited for.
func descendants() map[int]process {
	entries, _ := os.ReadDir("/proc") // without it there is no supervisor
	all, ours := make(map[int]process, len(entries)), make(map[int]process)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all[pid] = stat(pid)
		}
	}
	for pid, p := range all {
		if p.parent > 0 && all[p.parent].threads == 0 { // it has ended meanwhile, and the process has another one
			all[pid] = stat(pid)
		}
	}
	self := os.Getpid()
	for again := true; again; {
		again = false
		for pid, p := range all {
			if _, known := ours[pid]; known {
				continue
			}
			if _, ok := ours[p.parent]; ok || p.parent == self {
				ours[pid], again = p, true
			}
		}
	}
	return ours
}

// stat reads /proc/PID/stat (proc_pid_stat(5)) behind the name, which is in parentheses and may
// itself contain any.
func stat(pid int) process {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // gone: it has no parent and no group
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 18 {
		return process{}
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	return process{parent: number(1), group: number(2), threads: number(17)}
}

// threadGroup returns the process that a thread belongs to, 0 if there is none.
func threadGroup(tid int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(value))
			return pid
		}
	}
	return 0
}

// weigh ends the child and its descendants once they hold too much memory.
func (w *watch) weigh() {
	var pids map[int]process
	for range time.Tick(weighEvery) {
		if w.forked.Swap(false) {
			pids = descendants()
		}
		if memory(pids) <= w.l.Rules.Memory {
			continue
		}
		pids = descendants() // a number may have passed to a stranger meanwhile
		if held := memory(pids); held > w.l.Rules.Memory {
			fmt.Fprintf(os.Stderr, "%s: ended: the server and its processes hold %d MiB of memory, and confine.memory is %d MiB\n",
				supervisorName, held>>20, w.l.Rules.Memory>>20)
			killAll()
		}
	}
}

// memory returns the bytes that processes hold, without mapped files.
func memory(of map[int]process) (sum int64) {
	for pid := range of {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status") // gone: holds nothing
		for line := range strings.Lines(string(b)) {
			if name, value, _ := strings.Cut(line, ":"); name == "RssAnon" || name == "RssShmem" {
				kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
				sum += kib << 10
			}
		}
	}
	return sum
}
