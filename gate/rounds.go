package gate

import (
	"context"
	"errors"
	"fmt"
	"unicode"
)

const (
	// maxState bounds the state that a server gives the client to bring back, in bytes.
	maxState = 16 << 10
	// maxRoundRequests bounds what a server asks in one round.
	maxRoundRequests = 16
	// maxRoundKey bounds the name of a request, in bytes.
	maxRoundKey = 128
)

// checkBrought checks what a client brings with a call that it was asked to make
// again.
func (c *Call) checkBrought() error {
	switch {
	case !c.Responses.IsZero() && c.Responses.Kind() != Object:
		return errors.New("the answers are no object")
	case len(c.Responses.Raw()) > maxSampling:
		return fmt.Errorf("the answers are larger than %d bytes", maxSampling)
	case len(c.State) > maxState:
		return fmt.Errorf("the state is larger than %d bytes", maxState)
	}
	return nil
}

// askMore takes a result on that is no outcome yet: it has nothing but the requests
// that went through [Permit.Screen], and the server's own state, which nobody but the
// server reads and which is not part of the record.
func (w *way) askMore(ctx context.Context, p Permit, res Result) (Result, error) {
	if !p.of.call.Rounds || p.of.asking == nil {
		return Result{}, w.fail(ctx, "the server asks for more, and the client cannot be asked by the answer to its call", nil)
	}
	requests, state := res.Doc.Get("inputRequests"), res.Doc.Get("requestState")
	if len(state.Text()) > maxState || !state.IsZero() && state.Kind() != String {
		return Result{}, w.fail(ctx, fmt.Sprintf("the server's state is no string of at most %d bytes", maxState), nil)
	}
	doc, err := p.of.asking.round(requests)
	if err != nil {
		return Result{}, w.fail(ctx, "the server's answer is not valid", err)
	}
	if err := w.learn(ctx, p, doc); err != nil {
		return Result{}, err
	}
	if !state.IsZero() {
		doc = doc.With("requestState", state.Raw())
	}
	return Result{Doc: doc, InputRequired: true, Usage: res.Usage, Labels: w.adds(p.of.tool)}, nil
}

// round returns the result that asks the client for more.
func (a *asking) round(requests Doc) (Doc, error) {
	out, n := emptyObject, 0
	for key, r := range requests.Members() {
		if n++; n > maxRoundRequests {
			return Doc{}, fmt.Errorf("it asks more than %d things at once", maxRoundRequests)
		}
		if !plainKey(key) {
			return Doc{}, fmt.Errorf("the name of a request is no text of at most %d printable characters", maxRoundKey)
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
