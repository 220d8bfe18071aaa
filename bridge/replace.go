package bridge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Servers come, go and change while the gateway runs. Another endpoint for a server
// is connected while the old one still serves, and takes its place when it is ready
// or faulted. The old one gets no call any more, keeps those under way to their end,
// and is closed then.

// uses counts the calls under way at an endpoint.
type uses struct {
	mu      sync.Mutex
	n       int
	retired chan struct{} // nil until it is; closed when the last call has ended
}

// begin counts a call, or reports that no more may begin.
func (u *uses) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.retired != nil {
		return false
	}
	u.n++
	return true
}

func (u *uses) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.n == 0 && u.retired != nil {
		close(u.retired)
	}
}

// retire lets no more calls begin, and returns what is closed when none is left. It
// is called once.
func (u *uses) retire() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retired = make(chan struct{})
	if u.n == 0 {
		close(u.retired)
	}
	return u.retired
}

// Add connects one more server, or another in the place of the one that has its id,
// and returns when it is ready or faulted. A configuration that is the server's
// already changes nothing; one that holds functions is taken for another. A later
// Add or Remove of the id ends one under way.
func (f *Fleet) Add(ctx context.Context, c EndpointConfig) error {
	for _, m := range f.snapshot() {
		if m.id == c.Server && m.endpoint != nil && reflect.DeepEqual(m.given, c) {
			return m.endpoint.Connect(ctx)
		}
	}
	return f.join(ctx, c)
}

// Reload connects a server anew, with the configuration it has, as [Fleet.Add] does.
func (f *Fleet) Reload(ctx context.Context, id string) error {
	for _, m := range f.snapshot() {
		if m.id == id && m.endpoint != nil {
			return f.join(ctx, m.given)
		}
	}
	return fmt.Errorf("no server %q that could be connected anew", id)
}

func (f *Fleet) join(ctx context.Context, c EndpointConfig) error {
	m, err := f.newMember(c)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	if err := checkServers(f.members, m.id); err != nil {
		f.mu.Unlock()
		return err
	}
	earlier := f.joining[m.id]
	at := slices.IndexFunc(f.members, func(o member) bool { return o.id == m.id })
	known := at >= 0
	if known && f.members[at].endpoint == nil {
		f.mu.Unlock()
		return fmt.Errorf("server %s: tools of the program itself have this name; choose another", m.id)
	}
	if known {
		f.joining[m.id] = m.endpoint
	} else {
		f.put(m) // its status shows it, and listings wait for it
	}
	f.mu.Unlock()
	if earlier != nil {
		_ = earlier.Close() // its own caller is told
	}
	if !known {
		f.rebuild()
		return m.endpoint.Connect(ctx)
	}
	err = m.endpoint.Connect(ctx) // if it faults, the new configuration holds all the same
	return errors.Join(err, f.replace(m))
}

var (
	errClosed   = errors.New("the fleet is closed")
	errReplaced = errors.New("another change of the server came meanwhile")
)

// replace puts a member that has been connected into the place of the old one.
func (f *Fleet) replace(m member) error {
	f.mu.Lock()
	if f.joining[m.id] != m.endpoint { // closed by whoever has taken it out
		f.mu.Unlock()
		return fmt.Errorf("server %s: %w", m.id, errReplaced)
	}
	delete(f.joining, m.id)
	old := f.put(m)
	f.mu.Unlock()
	m.endpoint.inherit(old)
	f.rebuild()
	f.retire(old)
	return nil
}

// Remove forgets a server, and ends the connection when the calls under way there
// have ended. An id that nobody has is an error.
func (f *Fleet) Remove(id string) error {
	f.mu.Lock()
	i := slices.IndexFunc(f.members, func(m member) bool { return m.id == id })
	if i < 0 {
		f.mu.Unlock()
		return fmt.Errorf("no server %q", id)
	}
	old, joining := f.members[i].endpoint, f.joining[id]
	delete(f.joining, id)
	f.members = slices.Delete(slices.Clone(f.members), i, i+1)
	f.mu.Unlock()
	f.rebuild()
	f.retire(old)
	if joining == nil {
		return nil
	}
	return joining.Close()
}

// retire closes an endpoint that the catalog has no more, when the calls under way
// there have ended, or the longest time that a call may take has passed, or the fleet
// is closed, which waits for it. Nil is nobody.
func (f *Fleet) retire(e *Endpoint) {
	if e == nil {
		return
	}
	idle := e.uses.retire()
	closing := func() {
		if err := e.Close(); err != nil {
			f.cfg.Log.Warn("replaced server did not close", "server", e.cfg.Server, "error", err)
		}
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		closing()
		return
	}
	defer f.mu.Unlock()
	f.retiring.Go(func() {
		timeout := time.NewTimer(e.cfg.longestCall())
		defer timeout.Stop()
		select {
		case <-idle:
		case <-timeout.C:
		case <-f.closing:
		}
		closing()
	})
}

// longestCall is how long a call may take whose server tells of progress.
func (c *EndpointConfig) longestCall() time.Duration {
	longest := c.CallTimeout
	for _, t := range c.CallTimeouts {
		longest = max(longest, t.Timeout)
	}
	return maxExtended * longest
}

// Invoke implements [gate.Upstream].
func (f *Fleet) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	_, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, errNoPermit
	}
	for range maxReplaced {
		up, ok := f.catalog.Load().server[tool.Name.Server]
		if !ok {
			return gate.Result{}, &Fault{NotConnected, tool.Name.Server, "call", errors.New("the server was removed")}
		}
		e, remote := up.(*Endpoint)
		if !remote {
			return up.Invoke(ctx, p)
		}
		if e.uses.begin() {
			defer e.uses.end()
			if err := e.offers(tool); err != nil {
				return gate.Result{}, err
			}
			res, err := e.Invoke(ctx, p)
			if err != nil {
				return res, err
			}
			res.Doc, err = f.catalog.Load().more.translated(tool.Name.Server, res.Doc)
			return res, err
		}
	}
	return gate.Result{}, &Fault{NotConnected, tool.Name.Server, "call", errors.New("the server is being replaced again and again")}
}

// maxReplaced is how many replacements of its server a call follows. One takes the
// time that connecting takes; more than that is a fault.
const maxReplaced = 8

// offers reports why a call that was permitted for a tool must not be made, since
// the tool has become another one while it was decided.
func (e *Endpoint) offers(t *gate.Tool) error {
	if t.Feature == gate.FeatureMethod && !slices.Contains(e.cfg.Methods, t.Local) {
		return &Fault{NotConnected, e.cfg.Server, "call", errors.New("the server has the method no more")}
	}
	if t.Feature != gate.FeatureTool {
		return nil
	}
	e.mu.Lock()
	now, known := e.tools.byName[t.Name.String()]
	e.mu.Unlock()
	if known && now.Digest == t.Digest {
		return nil
	}
	return &Fault{NotConnected, e.cfg.Server, "call", errors.New("the tool has changed since the call was permitted; list the tools and call again")}
}
