package upstream

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// maxRemarks bounds what a server says in one call that waits for its client; more is
// dropped, so that a slow client holds up nobody else.
const maxRemarks = 256

// underWay are the calls under way at a server: to one of them belongs what the server
// says and asks while it works on it. The zero underWay is none.
type underWay struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*calling // by token
}

// A calling is one call under way at a server.
type calling struct {
	// token is the gateway's own for the call's progress: those of several clients could
	// be the same.
	token  int64
	ctx    *pace.Deadline
	permit gate.Permit
	call   *gate.Call
	level  mcp.Severity // of log messages, from which on its client wants them; 0 for none
	among  *underWay
	more   bool   // the server's answer asks the client for more
	answer func() // tells the circuit that the server has answered
	task   string // the id of the task by which the server carries it out; of among's mu; "" for none

	hears bool // the client wants to hear what the server says

	mu     sync.Mutex
	said   chan remark   // to the client, from the first remark on; nil before
	passed chan struct{} // closed when all of said has been passed on
	over   bool
	asks   int           // of the server, without an answer
	quiet  chan struct{} // closed when over and asks is 0
}

// A remark is a notification of a server in a call.
type remark struct {
	method string
	params gate.Doc
	told   chan struct{} // if set, there is no more to it than that it is closed
}

// begin adds a call; end takes it out. level is what its client wants of log messages.
func (u *underWay) begin(ctx *pace.Deadline, p gate.Permit, c *gate.Call, level mcp.Severity) *calling {
	one := &calling{ctx: ctx, permit: p, call: c, level: level, among: u, quiet: make(chan struct{})}
	one.hears = tellsProgress(c) || level > 0 && c.Notify != nil
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == nil {
		u.calls = make(map[int64]*calling)
	}
	u.last++
	one.token = u.last
	u.calls[one.token] = one
	return one
}

// byToken returns the call whose progress has a token; nil if it has ended.
func (u *underWay) byToken(token gate.Doc) *calling {
	n, err := strconv.ParseInt(token.String(), 10, 64)
	if err != nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls[n]
}

// foremost returns the oldest call of those whose client is the nearest; nil if none is
// under way.
func (u *underWay) foremost() (foremost *calling) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.calls {
		if foremost == nil || cmp.Or(cmp.Compare(one.distance(), foremost.distance()), cmp.Compare(one.token, foremost.token)) < 0 {
			foremost = one
		}
	}
	return foremost
}

// distance is how far the client is: it waits for its calls, comes back to a task, and
// cannot be asked anything on behalf of a job.
func (c *calling) distance() int {
	switch {
	case c.call.Peer == nil:
		return 2
	case c.call.Detached:
		return 1
	default:
		return 0
	}
}

// byTask returns the call that the server carries out as a task; nil if it has ended.
func (u *underWay) byTask(id string) *calling {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.calls {
		if id != "" && one.task == id {
			return one
		}
	}
	return nil
}

// callingOf is the call of a request that was sent; nil if it is the gateway's own.
func callingOf(c wire.Call) *calling {
	of, _ := c.(*calling)
	return of
}

// Context implements [wire.Call].
func (c *calling) Context() context.Context { return c.ctx }

// Permit implements [wire.Call].
func (c *calling) Permit() gate.Permit { return c.permit }

// becomesTask says that the server carries the call out as a task, which is its answer for
// the time being.
func (c *calling) becomesTask(id string) {
	c.among.mu.Lock()
	c.task = id
	c.among.mu.Unlock()
	c.answer()
	c.permit.Tasked()
}

// only returns the call that alone is under way; nil if none is, or several are.
func (u *underWay) only() *calling {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) != 1 {
		return nil
	}
	for _, one := range u.calls {
		return one
	}
	return nil
}

// say has the client told of a notification, in the server's order and before the
// result. It does not block.
func (c *calling) say(r remark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !c.hears {
		return
	}
	if c.said == nil {
		c.said, c.passed = make(chan remark, maxRemarks), make(chan struct{})
		go c.pass(c.said, c.passed) // ends with said
	}
	select {
	case c.said <- r:
	default: // the client is slow
	}
}

// Told implements [wire.Call].
func (c *calling) Told() <-chan struct{} {
	told := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said != nil && !c.over {
		select {
		case c.said <- remark{told: told}:
			return told
		default: // the client is slow
		}
	}
	close(told)
	return told
}

func (c *calling) pass(said <-chan remark, passed chan<- struct{}) {
	defer close(passed)
	for r := range said {
		if r.told != nil {
			close(r.told)
			continue
		}
		c.permit.Notify(c.ctx, r.method, r.params)
	}
}

// progressed takes the parameters of a notification of progress (MCP 2025-11-25,
// basic/utilities/progress), which extends the time of the call.
func (c *calling) progressed(params gate.Doc) {
	c.ctx.Extend()
	if tellsProgress(c.call) {
		c.say(remark{method: mcp.MethodProgress, params: params.With(mcp.MetaProgress, c.call.Meta.Get(mcp.MetaProgress).Raw())})
	}
}

// Hold implements [wire.Call]. While a person may have to answer, the server's own time
// does not run.
func (c *calling) Hold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	if c.asks++; c.asks == 1 {
		c.ctx.Pause()
	}
	return true
}

// Release implements [wire.Call].
func (c *calling) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks--
	switch {
	case c.asks > 0:
	case c.over:
		close(c.quiet)
	default:
		c.ctx.Resume()
	}
}

// end takes the call out. It waits, but not for long, for the answers to what the server
// has asked, which would come too late otherwise, and until the client has been told
// what the server has said.
func (c *calling) end() {
	c.among.mu.Lock()
	delete(c.among.calls, c.token)
	c.among.mu.Unlock()

	c.mu.Lock()
	c.over = true
	said, passed := c.said, c.passed
	if said != nil {
		close(said)
	}
	asks := c.asks
	c.mu.Unlock()
	if asks == 0 && said == nil {
		return
	}
	late := time.NewTimer(wire.DrainTime)
	defer late.Stop()
	if asks > 0 {
		select {
		case <-c.quiet:
		case <-late.C:
			return
		case <-c.ctx.Done():
		}
	}
	if said != nil {
		select {
		case <-passed:
		case <-late.C:
		}
	}
}

// tellsProgress reports whether the client of a call wants to be told how far it is.
func tellsProgress(c *gate.Call) bool {
	kind := c.Meta.Get(mcp.MetaProgress).Kind()
	return c.Notify != nil && (kind == gate.String || kind == gate.Number)
}
