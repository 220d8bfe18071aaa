package confine

import (
	"errors"
	"syscall"
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

func errno(err error) syscall.Errno {
	var no syscall.Errno
	if !errors.As(err, &no) {
		no = syscall.EINVAL
	}
	return no
}
