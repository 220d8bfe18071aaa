package confine

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// tree is a started child with its descendants, as far as the platform can
// address them.
type tree interface {
	terminate()  // asks every process to end
	kill()       // ends every process
	wait() error // returns when the tree has ended; called once
}

// constraints are what startTree has to know about the confinement of a child.
type constraints struct {
	rules   *Rules // checked; nil restricts nothing
	learn   func(Access)
	without string
}

// ExitError reports how a child ended that did not exit with status 0.
type ExitError struct {
	Code   int       // exit status; -1 if a signal ended it
	Signal os.Signal // nil if it exited
}

func (e *ExitError) Error() string {
	if e.Signal != nil {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// killWait bounds the wait for processes that were killed: death takes
// milliseconds unless the kernel holds one in uninterruptible sleep.
const killWait = 5 * time.Second

// mainCalled tells that Main ran in this process. It is the package's only
// variable that changes: Main must know before anything is configured, and without it Start
// would execute a program that does not know that it is a supervisor.
var mainCalled atomic.Bool
