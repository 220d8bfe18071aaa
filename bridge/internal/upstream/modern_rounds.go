package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxRounds bounds how often a server answers a call by asking for more, and
	// maxInputs what it asks for in one answer.
	maxRounds = 10
	maxInputs = gate.MaxRoundRequests
	// maxInputState bounds the state that a server has brought back to it, in bytes.
	maxInputState = gate.MaxRoundState
	// roundPause is how long a server is left alone that asks for nothing but to be
	// called again; each time twice as long.
	roundPause = 100 * time.Millisecond
)

// brought is what a request brings that was made before: what the client has answered,
// and the server's own state. Absent ones were not given.
type brought struct{ responses, state gate.Doc }

// broughtBy returns what the client of a call brings.
func broughtBy(c *gate.Call) brought {
	b := brought{responses: c.Responses}
	if c.State != "" {
		b.state = gate.MustDoc(string(mcp.MustJSON(c.State)))
	}
	return b
}

func (b brought) with(params []byte) []byte {
	params = withMembers(params, `"inputResponses":`, b.responses.Raw())
	return withMembers(params, `"requestState":`, b.state.Raw())
}

// rounds sends the request of a call until the server has all that it asks for (MCP
// 2026-07-28, basic/patterns/mrtr). A client that can be asked by the answer to its
// call gets the server's questions, and calls again; any other is asked meanwhile. The
// answer may be a task, if it can be one.
func (l *link) rounds(ctx context.Context, a asking) (gate.Doc, error) {
	c, call, params := a.of, a.of.call, a.params
	b := broughtBy(call)
	pause := roundPause
	for round := range maxRounds {
		a.params = b.with(params)
		res, err := l.send(ctx, a)
		if never, ok := errors.AsType[*wire.Unseen](err); ok && round > 0 {
			err = never.Err // of this round: the server has seen the call
		}
		if err != nil {
			return gate.Doc{}, err
		}
		if a.tasks && isTask(res) {
			return res, nil
		}
		m, err := moreOf(call.Action, res)
		switch {
		case err != nil:
			return gate.Doc{}, &mcp.ProtocolError{Err: err}
		case m == nil:
			return res, nil
		case call.Rounds:
			c.more = true
			return m.screened(ctx, c.permit)
		}
		b.state = m.state
		if b.responses, err = m.answered(ctx, c); err != nil {
			return gate.Doc{}, err
		}
		if len(m.requests) > 0 {
			continue
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return gate.Doc{}, ctx.Err()
		}
	}
	return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server has asked for more %d times", maxRounds)}
}

// more is an answer that asks for more.
type more struct {
	requests []inputRequest
	state    gate.Doc // absent if the server gave none
}

type inputRequest struct {
	key    string
	method gate.Action
	params gate.Doc
}

// moreOf reads an answer; nil if it asks for nothing.
func moreOf(action gate.Action, res gate.Doc) (*more, error) {
	switch kind := res.Get("resultType"); {
	case kind.IsZero(), kind.Text() == mcp.ResultComplete:
		return nil, nil
	case isTask(res):
		return nil, errors.New("the server has made a task of a request that was not declared to be capable of it")
	case kind.Text() != mcp.ResultMore:
		return nil, fmt.Errorf("a result of the type %s, which MCP does not have", mcp.Quote(kind.Raw()))
	case action != gate.CallTool && action != gate.GetPrompt && action != gate.ReadResource:
		return nil, fmt.Errorf("%s asks for more, which it must not", action)
	}
	for _, name := range []string{"content", "structuredContent", "messages", "contents"} {
		if filled(res.Get(name)) { // the Go SDK writes an empty array
			return nil, fmt.Errorf("the result asks for more, and has %s already", name)
		}
	}
	requests, state := res.Get("inputRequests"), res.Get("requestState")
	switch {
	case requests.IsZero() && state.IsZero():
		return nil, errors.New("the result asks for more, and does not say of what")
	case !state.IsZero() && (state.Kind() != gate.String || len(state.Text()) > maxInputState):
		return nil, fmt.Errorf("requestState is no string of at most %d bytes", maxInputState)
	}
	all, err := inputRequests(requests)
	if err != nil {
		return nil, err
	}
	return &more{all, state}, nil
}

// inputRequests reads what a server asks of the client in one answer; nothing if it is
// absent.
func inputRequests(requests gate.Doc) (all []inputRequest, err error) {
	if !requests.IsZero() && requests.Kind() != gate.Object {
		return nil, errors.New("inputRequests is no object")
	}
	for key, r := range requests.Members() {
		method, params := gate.Action(r.Get("method").Text()), r.Get("params")
		switch {
		case len(all) == maxInputs:
			return nil, fmt.Errorf("more than %d requests in one answer", maxInputs)
		case !method.IsPeerRequest():
			return nil, fmt.Errorf("the server asks for %.100q, which is nothing to ask a client for", method)
		case params.IsZero():
			params = gate.MustDoc("{}")
		case params.Kind() != gate.Object:
			return nil, fmt.Errorf("the params of %s are no object", method)
		}
		all = append(all, inputRequest{key, method, params})
	}
	return all, nil
}

// filled reports whether a member is there and says something.
func filled(d gate.Doc) bool {
	if d.Kind() != gate.Array {
		return !d.IsZero() && d.Kind() != gate.Null
	}
	for range d.Elements() {
		return true
	}
	return false
}

// screened returns the answer as the client may see it.
func (m *more) screened(ctx context.Context, p gate.Permit) (gate.Doc, error) {
	requests := gate.MustDoc("{}")
	for _, r := range m.requests {
		clean, err := p.Screen(ctx, r.method, r.params)
		if err != nil {
			return gate.Doc{}, err
		}
		one := withMembers([]byte("{}"), `"method":`, mcp.MustJSON(r.method))
		requests = requests.With(r.key, withMembers(one, `"params":`, clean.Raw()))
	}
	res := gate.MustDoc(`{"resultType":"` + mcp.ResultMore + `"}`)
	if len(m.requests) > 0 {
		res = res.With("inputRequests", requests.Raw())
	}
	if !m.state.IsZero() {
		res = res.With("requestState", m.state.Raw())
	}
	return res, nil
}

// answered asks the client of the call, all at once, and returns its answers; absent if
// nothing was asked.
func (m *more) answered(ctx context.Context, c *calling) (gate.Doc, error) {
	if len(m.requests) == 0 {
		return gate.Doc{}, nil
	}
	if !c.Hold() {
		return gate.Doc{}, wire.ErrUnasked
	}
	defer c.Release()
	ctx, cancel := context.WithTimeout(ctx, wire.MaxAskedTime)
	defer cancel()
	answers, errs := make([]gate.Doc, len(m.requests)), make([]error, len(m.requests))
	var first sync.Once
	var why error
	var wg sync.WaitGroup
	for i, r := range m.requests {
		wg.Go(func() {
			if answers[i], errs[i] = c.permit.Request(ctx, r.method, r.params); errs[i] != nil {
				first.Do(func() { why = unanswered(r.method, errs[i]); cancel() })
			}
		})
	}
	wg.Wait()
	if why != nil {
		return gate.Doc{}, why
	}
	responses := gate.MustDoc("{}")
	for i, r := range m.requests {
		responses = responses.With(r.key, answers[i].Raw())
	}
	return responses, nil
}

// unanswered is the error of a call whose client has refused what the server needs to
// know. A refusal of the gate is that of the call.
func unanswered(method gate.Action, err error) error {
	if _, refused := errors.AsType[*gate.Refusal](err); refused || errors.Is(err, context.Canceled) {
		return err
	}
	return &noAnswer{method, err}
}

// ofClient reports whether it is the client of the call, or the gate before it, that has
// not given a server what it asked for.
func ofClient(err error) bool {
	_, refused := errors.AsType[*gate.Refusal](err)
	_, silent := errors.AsType[*noAnswer](err)
	return refused || silent
}

// A noAnswer error says that a client has not answered a server.
type noAnswer struct {
	method gate.Action
	err    error
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("%s: the client has not answered: %v", e.method, e.err)
}
func (e *noAnswer) Unwrap() error { return e.err }

// Code returns the outcome of the call.
func (e *noAnswer) Code() string { return string(Protocol) }

// Public returns what the client may read.
func (e *noAnswer) Public() string {
	return fmt.Sprintf("the server needs an answer to %s, which this client did not give", e.method)
}
