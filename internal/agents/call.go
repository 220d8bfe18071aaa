package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// running is a call that an agent carries out.
type running struct {
	call   string // its ID for the gate
	tool   string
	digest string // of the arguments
	began  time.Time
	result chan gate.Result // takes one
	done   chan struct{}    // closed when the gate has done with it
	err    error            // of the gate, then
	cancel context.CancelFunc
}

// Invoke waits for the result of a call that the agent carries out. The agent's next hook reports it.
func (a *Agents) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, _, ok := p.Open()
	if !ok {
		return gate.Result{}, errors.New("the call is not permitted")
	}
	a.mu.Lock()
	r := a.running[c.ID]
	a.mu.Unlock()
	if r == nil {
		return gate.Result{}, errNoResult
	}
	select {
	case res := <-r.result:
		return res, nil
	case <-ctx.Done():
		return gate.Result{}, ctx.Err()
	}
}

// before decides on a call of an agent's own tool. A nil error lets it pass.
func (a *Agents) before(ctx context.Context, s *session, who *gate.Principal, e event, hold time.Duration) error {
	name, err := toolName(s.agent, e.tool)
	if err != nil {
		return err
	}
	granted := make(chan struct{})
	c := gate.Call{
		ID: gate.NewID(), Action: actions.AgentCall, Name: name.String(), Args: e.input, Who: who, Session: s.key,
		ClientName: s.agent, Client: &hook{hold: hold, granted: granted},
	}
	r, life, err := a.begin(s, e, c)
	if err != nil {
		return err
	}
	a.calls.Go(func() { // ends with the result, the session, or the time that a tool may take
		defer r.cancel()
		_, r.err = a.cfg.Do(life, c)
		a.over(s, e.call, r)
	})
	select {
	case <-granted:
		return nil
	case <-r.done:
		return r.err
	case <-ctx.Done():
		r.cancel()
		<-r.done
		select {
		case <-granted:
			return nil
		default:
			return fmt.Errorf("no decision in time: %w", ctx.Err())
		}
	}
}

// hook is the client of a call of an agent's own: it waits only for the decision.
type hook struct {
	gate.Nobody
	hold    time.Duration
	granted chan struct{}
}

// Reach implements [gate.Client].
func (h *hook) Reach() gate.Reach { return gate.Reach{Hold: h.hold} }

// Granted implements [gate.Client].
func (h *hook) Granted() { close(h.granted) }

// begin registers a call.
func (a *Agents) begin(s *session, e event, c gate.Call) (*running, context.Context, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, twice := s.calls[e.call]; twice {
		return nil, nil, errors.New("the agent announced this call already, and has not reported its result")
	}
	if len(s.calls) >= maxRunning {
		return nil, nil, fmt.Errorf("%d calls of the agent have no result yet", maxRunning)
	}
	s.wrote(e.input)
	life, cancel := context.WithTimeout(a.cfg.Life, resultTime)
	r := &running{
		call: c.ID, tool: e.tool, digest: e.input.Digest(), began: time.Now(),
		result: make(chan gate.Result, 1), done: make(chan struct{}), cancel: cancel,
	}
	s.calls[e.call], a.running[c.ID] = r, r
	return r, life, nil
}

// over forgets a call with which the gate has done.
func (a *Agents) over(s *session, call string, r *running) {
	a.mu.Lock()
	if s.calls[call] == r {
		delete(s.calls, call)
	}
	delete(a.running, r.call)
	a.mu.Unlock()
	close(r.done)
}

// after gives the gate the result of a call, and waits until the session has learned it. Of
// a call that the gate does not wait for, because it was refused and only observed, or
// announced to another process, the session learns all the same.
func (a *Agents) after(ctx context.Context, s *session, e event) error {
	a.mu.Lock()
	r := s.find(e)
	a.mu.Unlock()
	doc := result(e)
	if r == nil {
		return a.teach(ctx, s.place, e.tool, doc)
	}
	return r.give(ctx, gate.Result{Doc: doc})
}

// give ends a call with its result, and waits until the gate has done with it.
func (r *running) give(ctx context.Context, res gate.Result) error {
	select {
	case r.result <- res:
	default: // reported twice
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// find returns the call that a reported result belongs to: by its id or, if the agent sends no ids, the
// oldest call of the same tool with the same arguments.
func (s *session) find(e event) *running {
	if !e.unnamed {
		return s.calls[e.call]
	}
	digest := e.input.Digest()
	var oldest *running
	for _, r := range s.calls {
		if r.tool == e.tool && r.digest == digest && (oldest == nil || r.began.Before(oldest.began)) {
			oldest = r
		}
	}
	return oldest
}

// teach has a session learn a result that no call waits for.
func (a *Agents) teach(ctx context.Context, p place, toolSaid string, doc gate.Doc) error {
	name, err := toolName(p.agent, toolSaid)
	if err != nil {
		return err
	}
	l := gate.Lesson{Call: gate.NewID(), Labels: a.cfg.Teaches(tool(name))}
	if a.cfg.Tracks() {
		l.From, l.Source = doc, provenance.FromUntrusted
	}
	return a.cfg.Learn(ctx, a.cfg.Kept(key(p)), l)
}

// result is the result of an agent's own tool in the form of MCP's.
func result(e event) gate.Doc {
	d := gate.MustDoc(`{"content":[],"structuredContent":{}}`)
	if e.kind == failed {
		d = gate.MustDoc(`{"content":[],"structuredContent":{},"isError":true}`)
	}
	if e.result.IsZero() {
		return d
	}
	return d.With("structuredContent", gate.MustDoc("{}").With("result", e.result.Raw()).Raw())
}
