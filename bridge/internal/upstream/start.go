package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// maxStarts is how many times its time a child may take to start, if it works or talks;
// and how many times longer the time of a child that has failed can become.
const maxStarts = 10

// A startLimit bounds an attempt to connect. It ends one that nothing comes of, but not a
// child in the middle of an installation: ending that can leave half a package behind,
// which then fails for everybody.
type startLimit struct {
	ctx     context.Context
	cancel  context.CancelFunc
	timeout time.Duration
	began   time.Time

	mu    sync.Mutex
	timer *time.Timer
	child *wire.StdioConn // once it is started; nil of other servers
	work  int64           // of the child, when it was looked at last
	turns int
	late  bool
}

func newStartLimit(ctx context.Context, timeout time.Duration, failures int) *startLimit {
	s := &startLimit{timeout: timeout * time.Duration(1+min(failures, maxStarts-1)), began: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.timer = time.AfterFunc(s.timeout, s.look)
	return s
}

// look ends the attempt, unless its child has worked since it was looked at last.
func (s *startLimit) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	if s.child != nil && s.turns < maxStarts {
		if work := s.child.Work(); work > s.work {
			s.work = work
			s.timer.Reset(s.timeout)
			return
		}
	}
	s.late = true
	s.cancel()
}

// watches takes the child of the attempt.
func (s *startLimit) watches(c *wire.StdioConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = c
}

// said returns the last lines that the child has written.
func (s *startLimit) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return nil
	}
	return s.child.Said()
}

// end frees what the limit holds.
func (s *startLimit) end() {
	s.timer.Stop()
	s.cancel()
}

// of turns err into a timeout if the time was up. The timeout says how long that was, which key
// changes it, and what the server has written meanwhile.
func (s *startLimit) of(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || !s.late {
		return err
	}
	f := fault.From("", "start", err)
	words := fmt.Sprintf("it was not ready within %s (servers.%s.start)", time.Since(s.began).Round(time.Second), f.Server)
	if s.child != nil {
		if said := wire.Telling(s.child.Said()); said != "" {
			words += "; it said: " + mcp.Quote([]byte(said))
		}
	}
	return fault.New(fault.TimedOut, f.Server, f.Doing, fmt.Errorf("%s: %w", words, context.DeadlineExceeded))
}
