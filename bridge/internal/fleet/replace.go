package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// Servers come, go and change while the gateway runs. Another endpoint for a server
// is connected while the old one still serves, and takes its place when it is ready
// or faulted. The old one gets no call any more, keeps those under way to their end,
// and is closed then.

// Add connects one more server, or another in the place of the one that has its id,
// and returns when it is ready or faulted. A configuration that is the server's
// already changes nothing; one that holds functions is taken for another. A later
// Add or Remove of the id ends one under way.
func (f *Fleet) Add(ctx context.Context, c options.Endpoint) error {
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
	return fmt.Errorf("the gateway has no server %q", id)
}

func (f *Fleet) join(ctx context.Context, c options.Endpoint) error {
	m, err := f.newMember(c)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	if err := f.roster.check(m.id); err != nil {
		f.mu.Unlock()
		return err
	}
	earlier := f.joining[m.id]
	at := f.roster.index(m.id)
	known := at >= 0
	m.remember(&f.cfg, !known)
	if known && f.roster.members[at].endpoint == nil {
		f.mu.Unlock()
		return fmt.Errorf("server %s: tools of the program itself have this name; choose another", m.id)
	}
	if known {
		f.joining[m.id] = m.endpoint
	} else {
		f.roster.put(m) // its status shows it, and listings wait for it
	}
	f.mu.Unlock()
	if earlier != nil {
		_ = earlier.Close() // its own caller gets an error
	}
	if !known {
		f.rebuild()
		return m.endpoint.Connect(ctx)
	}
	err = m.endpoint.Connect(ctx) // if it faults, the new configuration holds all the same
	return errors.Join(err, f.replace(m))
}

var (
	errClosed   = errors.New("the gateway has closed its servers")
	errReplaced = errors.New("the server was changed again during this change; try again")
)

// replace puts a member that has been connected into the place of the old one.
func (f *Fleet) replace(m member) error {
	f.mu.Lock()
	if f.joining[m.id] != m.endpoint { // closed by the call that has taken it out
		f.mu.Unlock()
		return fmt.Errorf("server %s: %w", m.id, errReplaced)
	}
	delete(f.joining, m.id)
	old := f.roster.put(m)
	f.mu.Unlock()
	m.endpoint.Inherit(old)
	f.rebuild()
	f.retire(old)
	return nil
}

// Reorder lists the servers in the order of ids, those too that come later. The others,
// as those of functions, come first, as they came.
func (f *Fleet) Reorder(ids []string) {
	f.mu.Lock()
	f.roster.order = slices.Clone(ids)
	f.roster.sort()
	f.mu.Unlock()
	f.rebuild()
}

// Remove forgets a server, and ends the connection when the calls under way there have ended. It is
// an error if no server has the id.
func (f *Fleet) Remove(id string) error {
	f.mu.Lock()
	i := f.roster.index(id)
	if i < 0 {
		f.mu.Unlock()
		return fmt.Errorf("no server %q", id)
	}
	old, joining := f.roster.members[i].endpoint, f.joining[id]
	delete(f.joining, id)
	f.roster.members = slices.Delete(slices.Clone(f.roster.members), i, i+1)
	f.mu.Unlock()
	f.rebuild()
	f.retire(old)
	if joining == nil {
		return nil
	}
	return joining.Close()
}

// retire closes an endpoint that is no longer in the catalog. It first waits until the calls under
// way there have ended, the longest time that a call may take has passed, or the fleet is closed;
// closing the fleet waits for retire. It ignores nil.
func (f *Fleet) retire(e *upstream.Endpoint) {
	if e == nil {
		return
	}
	idle := e.Retire()
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		e.End()
		return
	}
	defer f.mu.Unlock()
	f.retiring.Go(func() {
		timeout := time.NewTimer(e.LongestCall())
		defer timeout.Stop()
		select {
		case <-idle:
		case <-timeout.C:
		case <-f.closing:
		}
		e.End()
	})
}

// Relist has every server listed again, after the way in which listings are sanitized has changed.
// The error joins those of servers in this process whose lists stay as they were.
func (f *Fleet) Relist() error {
	var errs []error
	for _, m := range f.snapshot() {
		if l, ok := m.upstream.(interface{ Relist() error }); ok {
			errs = append(errs, l.Relist())
		}
	}
	return errors.Join(errs...)
}

// AddLocal adds a server of functions while the fleet runs. An id that another server
// has is an error. [Fleet.Remove] takes it out again.
func (f *Fleet) AddLocal(l *local.Server) error {
	l.OnChange(func() { f.observe(l.Declared()); f.rebuild() })
	f.observe(l.Declared())
	f.mu.Lock()
	err := f.roster.check(l.ID())
	switch {
	case err != nil:
	case f.closed:
		err = errClosed
	case f.roster.index(l.ID()) >= 0:
		err = fmt.Errorf("server %s: there is one already", l.ID())
	default:
		f.roster.put(member{id: l.ID(), upstream: l, status: l.Status})
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	f.rebuild()
	return nil
}
