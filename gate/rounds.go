package gate

import (
	"context"
	"errors"
	"fmt"
	"unicode"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// maxRoundKey bounds the name of a request, in bytes.
const maxRoundKey = 128

// askMore takes on a result that is not an outcome yet. It has only the requests that went through
// [Permit.Screen], and the server's own state. Only the server reads that state, which is not part
// of the record.
func (w *way) askMore(ctx context.Context, p *permitted, res Result) (Result, error) {
	w.next(step.ValidateOutput)
	if !p.call.Reach().Rounds || p.asking == nil {
		return Result{}, w.fail(ctx, "the server's result asks for input, but the client of this call cannot answer an input_required result", nil)
	}
	requests, state := res.Doc.Get("inputRequests"), res.Doc.Get("requestState")
	if len(state.Text()) > RoundState || !state.IsZero() && state.Kind() != doc.String {
		return Result{}, w.fail(ctx, fmt.Sprintf("the server's state is not a string of at most %d bytes", RoundState), nil)
	}
	doc, err := p.asking.round(requests)
	if err != nil {
		return Result{}, w.fail(ctx, "the server's request is malformed", err)
	}
	if err := w.learn(ctx, p, doc); err != nil {
		return Result{}, err
	}
	if !state.IsZero() {
		doc = doc.With("requestState", state.Raw())
	}
	return Result{Doc: doc, InputRequired: true, Usage: res.Usage, Labels: p.adds}, nil
}

// round returns the result that asks the client for more.
func (a *asking) round(requests Doc) (Doc, error) {
	out, n := emptyObject, 0
	for key, r := range requests.Members() {
		if n++; n > RoundRequests {
			return Doc{}, fmt.Errorf("it asks more than %d questions at once", RoundRequests)
		}
		if !plainKey(key) {
			return Doc{}, fmt.Errorf("the name of a request is not a text of at most %d printable characters", maxRoundKey)
		}
		method, params := r.Get("method"), r.Get("params")
		if params.IsZero() {
			params = emptyObject
		}
		if !a.wasScreened(Action(method.Text()), params) {
			return Doc{}, errNotScreened
		}
		out = out.With(key, emptyObject.With("method", method.Raw()).With("params", params.Raw()).Raw())
	}
	return MustDoc(`{"resultType":"input_required"}`).With("inputRequests", out.Raw()), nil
}

func plainKey(key string) bool {
	for _, r := range key {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return false
		}
	}
	return key != "" && len(key) <= maxRoundKey
}

// Screen does what [Permit.Request] does up to the point where the client is asked,
// for a request that reaches the client with the answer to the call (MCP 2026-07-28,
// basic/patterns, multi round-trip requests). It returns the parameters as the client
// may see them: an answer with InputRequired holds no others. It is recorded once.
func (p Permit) Screen(ctx context.Context, method Action, params Doc) (Doc, error) {
	n, err := p.peerWay(method, params)
	if err != nil {
		return Doc{}, err
	}
	ctx, cancel := p.of.asking.during(ctx)
	defer cancel()
	err = n.propose(ctx)
	if err == nil && !p.of.call.Reach().Rounds {
		err = n.fail(ctx, "the client of this call cannot answer an input_required result; ask it with Permit.Request", nil)
	}
	clean := n.rec.Call.Args
	if err == nil {
		p.of.asking.screen(method, clean)
	}
	if err := n.end(ctx, peerOutcome(err), err); err != nil {
		return Doc{}, err
	}
	return clean, nil
}

// screen notes what the client may be asked by the answer to the call.
func (a *asking) screen(method Action, params Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.screened[screenedKey(method, params)] = true
}

func (a *asking) wasScreened(method Action, params Doc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.screened[screenedKey(method, params)]
}

func screenedKey(method Action, params Doc) string { return string(method) + " " + params.Digest() }

var errNotScreened = errors.New("inputRequests has a request that the gateway has not checked; the Upstream must pass it to Permit.Screen first")
