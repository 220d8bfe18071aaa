package rounds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// maxInputs bounds what a server asks for in one answer.
	maxInputs = gate.RoundRequests
	// maxInputState bounds the state that a server has brought back to it, in bytes.
	maxInputState = gate.RoundState
)

// Brought is what a request brings that was made before: what the client has answered,
// and the server's own state. Absent ones were not given.
type Brought struct{ Responses, State gate.Doc }

// BroughtBy returns what the client of a call brings.
func BroughtBy(c *gate.Call) Brought {
	b := Brought{Responses: c.Brought.Responses}
	if c.Brought.State != "" {
		b.State = gate.MustDoc(string(mcp.MustJSON(c.Brought.State)))
	}
	return b
}

// With adds it to the parameters of a request.
func (b Brought) With(params []byte) []byte {
	params = mcp.WithMember(params, `"inputResponses":`, b.Responses.Raw())
	return mcp.WithMember(params, `"requestState":`, b.State.Raw())
}

// More is an answer that asks for more.
type More struct {
	Requests []Request
	State    gate.Doc // absent if the server gave none
}

// A Request is one thing that a server asks the client of a call for.
type Request struct {
	Key    string
	Method gate.Action
	Params gate.Doc
}

// MoreOf reads an answer; nil if it asks for nothing.
func MoreOf(action gate.Action, res gate.Doc) (*More, error) {
	switch kind := res.Get("resultType"); {
	case kind.IsZero(), kind.Text() == mcp.ResultComplete:
		return nil, nil
	case IsTask(res):
		return nil, errors.New("the server has made a task of a request that was not declared to be capable of it")
	case kind.Text() != mcp.ResultMore:
		return nil, fmt.Errorf("the result has the type %s, which MCP does not define", mcp.Quote(kind.Raw()))
	case action != gate.CallTool && action != gate.GetPrompt && action != gate.ReadResource:
		return nil, fmt.Errorf("%s must not ask for input", action)
	}
	for _, name := range []string{"content", "structuredContent", "messages", "contents"} {
		if filled(res.Get(name)) { // the Go SDK writes an empty array
			return nil, fmt.Errorf("the result asks for input, but also has %s", name)
		}
	}
	requests, state := res.Get("inputRequests"), res.Get("requestState")
	switch {
	case requests.IsZero() && state.IsZero():
		return nil, errors.New("the result asks for input, but has neither inputRequests nor requestState")
	case !state.IsZero() && (state.Kind() != doc.String || len(state.Text()) > maxInputState):
		return nil, fmt.Errorf("requestState is not a string of at most %d bytes", maxInputState)
	}
	all, err := Requests(requests)
	if err != nil {
		return nil, err
	}
	return &More{all, state}, nil
}

// IsTask reports whether a call was answered by a task.
func IsTask(res gate.Doc) bool { return res.Get("resultType").Text() == mcp.ResultTask }

// Requests reads what a server asks of the client in one answer; nothing if it is
// absent.
func Requests(requests gate.Doc) (all []Request, err error) {
	if !requests.IsZero() && requests.Kind() != doc.Object {
		return nil, errors.New("inputRequests is not an object")
	}
	for key, r := range requests.Members() {
		method, params := gate.Action(r.Get("method").Text()), r.Get("params")
		switch {
		case len(all) == maxInputs:
			return nil, fmt.Errorf("the server asks more than %d questions in one answer", maxInputs)
		case !actions.IsPeerRequest(method):
			return nil, fmt.Errorf("the server asks for %.100q, which a server cannot ask of a client", method)
		case params.IsZero():
			params = gate.MustDoc("{}")
		case params.Kind() != doc.Object:
			return nil, fmt.Errorf("the params of %s are not an object", method)
		}
		all = append(all, Request{key, method, params})
	}
	return all, nil
}

// filled reports whether a member is there and says something.
func filled(d gate.Doc) bool {
	if d.Kind() != doc.Array {
		return !d.IsZero() && d.Kind() != doc.Null
	}
	for range d.Elements() {
		return true
	}
	return false
}

// Screened returns the answer as the client may see it.
func (m *More) Screened(ctx context.Context, p gate.Permit) (gate.Doc, error) {
	requests := gate.MustDoc("{}")
	for _, r := range m.Requests {
		clean, err := p.Screen(ctx, r.Method, r.Params)
		if err != nil {
			return gate.Doc{}, err
		}
		one := mcp.WithMember([]byte("{}"), `"method":`, mcp.MustJSON(r.Method))
		requests = requests.With(r.Key, mcp.WithMember(one, `"params":`, clean.Raw()))
	}
	res := gate.MustDoc(`{"resultType":"` + mcp.ResultMore + `"}`)
	if len(m.Requests) > 0 {
		res = res.With("inputRequests", requests.Raw())
	}
	if !m.State.IsZero() {
		res = res.With("requestState", m.State.Raw())
	}
	return res, nil
}

// Answered asks the client of the call, all at once, and returns its answers; absent if
// nothing was asked.
func (m *More) Answered(ctx context.Context, c wire.Call) (gate.Doc, error) {
	if len(m.Requests) == 0 {
		return gate.Doc{}, nil
	}
	if !c.Hold() {
		return gate.Doc{}, wire.ErrUnasked
	}
	defer c.Release()
	ctx, cancel := context.WithTimeout(ctx, wire.MaxAskedTime)
	defer cancel()
	permit := c.Permit()
	answers, errs := make([]gate.Doc, len(m.Requests)), make([]error, len(m.Requests))
	var first sync.Once
	var why error
	var wg sync.WaitGroup
	for i, r := range m.Requests {
		wg.Go(func() {
			if answers[i], errs[i] = permit.Request(ctx, r.Method, r.Params); errs[i] != nil {
				first.Do(func() { why = Unanswered(r.Method, errs[i]); cancel() })
			}
		})
	}
	wg.Wait()
	if why != nil {
		return gate.Doc{}, why
	}
	responses := gate.MustDoc("{}")
	for i, r := range m.Requests {
		responses = responses.With(r.Key, answers[i].Raw())
	}
	return responses, nil
}

// Unanswered is the error of a call whose client has refused what the server needs to
// know. A refusal of the gate is that of the call.
func Unanswered(method gate.Action, err error) error {
	if _, refused := errors.AsType[*gate.Refusal](err); refused || errors.Is(err, context.Canceled) {
		return err
	}
	return &noAnswer{method, err}
}

// OfClient reports whether it is the client of the call, or the gate before it, that has
// not given a server what it asked for.
func OfClient(err error) bool {
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
func (e *noAnswer) Code() string { return codes.Protocol }

// Public returns what the client may read.
func (e *noAnswer) Public() string {
	return fmt.Sprintf("the server needs an answer to %s, which this client did not give", e.method)
}
