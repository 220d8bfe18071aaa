// Package underway keeps the calls that are under way at one server. Whatever the server says and
// asks while it works on a call belongs to that call.
package underway

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
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxNotifications bounds what a server says in one call that waits for its client; more is
// dropped, so that a slow client does not hold up others.
const maxNotifications = 256

// Calls are the calls under way at a server. The zero Calls are none.
type Calls struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*Call // by token
}

// A Call is one call under way at a server.
type Call struct {
	// token is the gateway's own for the call's progress: those of several clients could
	// be the same.
	token    int64
	ctx      *pace.Deadline
	permit   gate.Permit
	Call     *gate.Call
	Level    mcp.Severity // of log messages, from which on its client wants them; 0 for none
	among    *Calls
	More     bool   // the server's answer asks the client for more
	Answered func() // tells the circuit that the server has answered
	task     string // the id of the task by which the server carries it out; of among's mu; "" for none

	hears bool // the client wants to hear what the server says

	mu     sync.Mutex
	said   chan notification // to the client, from the first notification on; nil before
	passed chan struct{}     // closed when all of said has been passed on
	over   bool
	asks   int           // of the server, without an answer
	quiet  chan struct{} // closed when over and asks is 0
}

// A notification is what a server says in a call.
type notification struct {
	method string
	params gate.Doc
	told   chan struct{} // if set, there is no more to it than that it is closed
}

// Begin adds a call; [Call.End] takes it out. level is what its client wants of log messages.
func (u *Calls) Begin(ctx *pace.Deadline, p gate.Permit, c *gate.Call, level mcp.Severity) *Call {
	one := &Call{ctx: ctx, permit: p, Call: c, Level: level, among: u, quiet: make(chan struct{})}
	one.hears = tellsProgress(c) || level > 0 && c.Reach().Hears
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == nil {
		u.calls = make(map[int64]*Call)
	}
	u.last++
	one.token = u.last
	u.calls[one.token] = one
	return one
}

// ByToken returns the call whose progress has a token; nil if it has ended.
func (u *Calls) ByToken(token gate.Doc) *Call {
	n, err := strconv.ParseInt(token.String(), 10, 64)
	if err != nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls[n]
}

// Foremost returns the oldest call of those whose client is the nearest; nil if none is
// under way.
func (u *Calls) Foremost() (foremost *Call) {
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
func (c *Call) distance() int {
	switch r := c.Call.Reach(); {
	case r.Capabilities.IsZero():
		return 2
	case r.Detached:
		return 1
	default:
		return 0
	}
}

// ByTask returns the call that the server carries out as a task; nil if it has ended.
func (u *Calls) ByTask(id string) *Call {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.calls {
		if id != "" && one.task == id {
			return one
		}
	}
	return nil
}

// Of is the call of a request that was sent; nil if it is the gateway's own.
func Of(c wire.Call) *Call {
	of, _ := c.(*Call)
	return of
}

// Context implements [wire.Call].
func (c *Call) Context() context.Context { return c.ctx }

// Permit implements [wire.Call].
func (c *Call) Permit() gate.Permit { return c.permit }

// BecomesTask says that the server carries the call out as a task, which is its answer for
// the time being.
func (c *Call) BecomesTask(id string) {
	c.among.mu.Lock()
	c.task = id
	c.among.mu.Unlock()
	c.Answered()
	c.permit.Tasked()
}

// Only returns the call that alone is under way; nil if none is, or several are.
func (u *Calls) Only() *Call {
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
func (c *Call) say(r notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !c.hears {
		return
	}
	if c.said == nil {
		c.said, c.passed = make(chan notification, maxNotifications), make(chan struct{})
		go c.pass(c.said, c.passed) // ends with said
	}
	select {
	case c.said <- r:
	default: // the client is slow
	}
}

// Told implements [wire.Call].
func (c *Call) Told() <-chan struct{} {
	told := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said != nil && !c.over {
		select {
		case c.said <- notification{told: told}:
			return told
		default: // the client is slow
		}
	}
	close(told)
	return told
}

func (c *Call) pass(said <-chan notification, passed chan<- struct{}) {
	defer close(passed)
	for r := range said {
		if r.told != nil {
			close(r.told)
			continue
		}
		c.permit.Notify(c.ctx, r.method, r.params)
	}
}

// ProgressToken returns what the request of the call names itself by to its server, JSON, if
// the server is to tell how far it is, which gives it more time; else "".
func (c *Call) ProgressToken() string {
	if tellsProgress(c.Call) || c.Call.Reach().Detached {
		return strconv.FormatInt(c.token, 10)
	}
	return ""
}

// Log takes the parameters of a log message for the client.
func (c *Call) Log(params gate.Doc) { c.say(notification{method: mcp.MethodLog, params: params}) }

// Progressed takes the parameters of a notification of progress (MCP 2025-11-25,
// basic/utilities/progress), which extends the time of the call.
func (c *Call) Progressed(params gate.Doc) {
	c.ctx.Extend()
	if tellsProgress(c.Call) {
		c.say(notification{method: mcp.MethodProgress, params: params.With(mcp.MetaProgress, c.Call.Meta.Get(mcp.MetaProgress).Raw())})
	}
}

// Hold implements [wire.Call]. While a person may have to answer, the server's own time
// does not run.
func (c *Call) Hold() bool {
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
func (c *Call) Release() {
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

// End takes the call out. It waits, but not for long, for the answers to what the server
// has asked, which would come too late otherwise, and until the client has been told
// what the server has said.
func (c *Call) End() {
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
	return (kind == doc.String || kind == doc.Number) && c.Reach().Hears
}
