package confine

import (
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// supervisorName is the argv[0] by which Main knows that it is asked to
	// supervise.
	supervisorName = "wasmgate-child"
	// launcherName is that of a launcher: a supervisor starts it instead of a child that is to be
	// confined.
	launcherName = "wasmgate-launcher"

	ordersFD  = 3 // from the gateway: a launch, then orders; it closes when the gateway ends
	reportsFD = 4 // to the gateway: two reports

	// leaveWait is the time between SIGTERM and SIGKILL for what is left when
	// the child has ended by itself or the gateway is gone.
	leaveWait = 2 * time.Second

	// Rounds of SIGKILL come closely for a time, against processes that fork
	// faster than they are found; then seldom, if one cannot be killed.
	shortPause, longPause = time.Millisecond, 100 * time.Millisecond
)

// Gob carries the bytes of arguments and environment as they are; JSON would
// change what is not UTF-8.
type (
	// A launch is what the supervisor is to start.
	launch struct {
		Path, Dir string
		Args, Env []string

		Rules   *Rules // nil restricts nothing
		Learn   bool   // reports what is used, and restricts nothing
		Temp    string // the folder of a confined child, which the supervisor makes
		Without string // the guard that a test leaves out
	}
	order int
	// A report says how the start went, and a last one how the child ended. Those with Seen report
	// what it uses.
	report struct {
		Pid    int
		Seen   *Access
		Step   string // what the supervisor could not do for itself
		Errno  syscall.Errno
		Status syscall.WaitStatus
	}
)

const (
	orderTerminate order = iota + 1
	orderKill
)

func superviseIfAsked() {
	if len(os.Args) == 0 {
		return
	}
	// Not os.Exit, which in a program built with -race sleeps for a second.
	switch os.Args[0] {
	case supervisorName:
		syscall.Exit(supervise())
	case launcherName:
		syscall.Exit(launchConfined())
	}
}

// supervise is the life of a supervisor: it starts one program, reaps those of its descendants that
// are orphaned, and ends when the last of them has.
//
// It trusts that a process without children has no descendants: it is their
// subreaper, so each of them has an ancestor among its children.
func supervise() int {
	// Pdeathsig means the death of the thread that forked, not of the process.
	runtime.LockOSThread()
	// Only the gateway ends a supervisor. Notify and not Ignore, because an
	// ignored signal stays ignored in the child.
	signal.Notify(make(chan os.Signal, 1))
	// The child gets stdin, stdout and stderr only, even if the gateway was started with other
	// descriptors that it inherits. Kernels before 5.11 lack this.
	_ = unix.CloseRange(ordersFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	syscall.CloseOnExec(ordersFD)
	syscall.CloseOnExec(reportsFD)

	orders := gob.NewDecoder(os.NewFile(ordersFD, "orders"))
	reports := gob.NewEncoder(os.NewFile(reportsFD, "reports"))
	var l launch
	if err := orders.Decode(&l); err != nil {
		fmt.Fprintf(os.Stderr, "%s: only a gateway starts this program: read orders: %v\n", supervisorName, err)
		return 2
	}
	first, w := start(l, reports)
	defer w.close()
	// Only the child holds its end of stdin and stdout now.
	_ = os.Stdin.Close()
	_ = os.Stdout.Close()
	if err := reports.Encode(first); first.Pid == 0 {
		return 1
	} else if err != nil {
		go end() // the gateway is gone
	}
	go obey(orders)
	_ = reports.Encode(report{Status: reap(first.Pid)}) // the gateway may be gone, and not read it
	return 0
}

func start(l launch, reports *gob.Encoder) (report, *watch) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report{Step: "become subreaper", Errno: errno(err)}, nil
	}
	if l.Rules != nil || l.Learn {
		return startConfined(l, reports)
	}
	pid, err := syscall.ForkExec(l.Path, l.Args, &syscall.ProcAttr{
		Dir: l.Dir, Env: l.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return report{Errno: errno(err)}, nil
	}
	return report{Pid: pid}, nil
}

func errno(err error) syscall.Errno {
	var no syscall.Errno
	if !errors.As(err, &no) {
		no = syscall.EINVAL
	}
	return no
}

// obey does what the gateway orders. The end of the orders is the end of the
// gateway.
func obey(orders *gob.Decoder) {
	for {
		var o order
		if orders.Decode(&o) != nil {
			end()
		} else if o == orderTerminate {
			signalAll(syscall.SIGTERM)
		} else {
			killAll()
		}
	}
}

// reap waits for every child, adopted ones too, until there is none. It
// returns how the child called pid ended.
func reap(pid int) (status syscall.WaitStatus) {
	for {
		var ws syscall.WaitStatus
		switch got, err := syscall.Wait4(-1, &ws, 0, nil); {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return status
		case got == pid:
			status = ws
			go end()
		}
	}
}

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
