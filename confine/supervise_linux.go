package confine

import (
	"encoding/gob"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
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
