package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// parse refuses a call that could not be decided on.
func (w *way) parse(ctx context.Context, c *Call) error {
	if c.Who == nil {
		return w.fail(ctx, "the call has no principal", nil)
	}
	if r, ok := errors.AsType[*Refusal](c.Refused); ok {
		w.next(r.Step)
		return w.fail(ctx, r.Reason, r.Err)
	}
	if c.Refused != nil || c.Args.Kind() != doc.Object {
		return w.fail(ctx, "the arguments are not an acceptable JSON object", c.Refused)
	}
	if err := c.Brought.check(); err != nil {
		return w.fail(ctx, "the call has an answer or state that is not acceptable", err)
	}
	return nil
}

// lookup returns what the call names, if its definition is approved.
func (w *way) lookup(ctx context.Context, c *Call) (*Tool, error) {
	w.next(step.Lookup)
	tool, err := w.find(ctx, c)
	if a, ok := errors.AsType[*Away](err); ok && w.mayKnow(ctx, c, a.Tool) {
		return nil, a.Err
	}
	if err != nil {
		err = w.fail(ctx, unknown(c.Action), err)
		if r, ok := errors.AsType[*Refusal](err); ok {
			r.Hidden = true
		}
		return nil, err
	}
	w.rec.Tool = tool
	if err := w.pinned(ctx, c, tool); err != nil {
		return nil, err
	}
	if tool.Relay && w.relayed {
		w.next(step.Authorize)
		return nil, w.fail(ctx, "it makes calls itself, and is not called by another tool that does", nil)
	}
	return tool, nil
}

// find returns what a call names. A name outside the groups that the client is offered is as
// unknown as one that does not exist.
func (p *Parts) find(ctx context.Context, c *Call) (*Tool, error) {
	t, err := p.Upstream.Lookup(ctx, c.Action, c.Name)
	if err == nil && t == nil {
		err = ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	for _, offered := range []Groups{c.Who.Groups, c.Groups} {
		if !offered.Has(t) {
			return nil, fmt.Errorf("%w to this client, which is offered what is in %s: %s is in %s", ErrUnknown, GroupsText(offered), t.Name, GroupsText(Groups{t.Groups}))
		}
	}
	return t, nil
}

// An Away error says that the server of what is named has not connected yet, so it is unknown
// whether the server has it. It is an [ErrUnknown] for callers that are granted nothing of that
// name.
type Away struct {
	Tool *Tool // what would be looked for: its names alone
	Err  error // the fault of the server
}

// Error is that of the server.
func (a *Away) Error() string { return a.Err.Error() }

// Unwrap returns [ErrUnknown].
func (a *Away) Unwrap() error { return ErrUnknown }

// mayKnow reports whether the caller would be allowed some call of the tool.
func (w *way) mayKnow(ctx context.Context, c *Call, t *Tool) bool {
	if len(c.Who.offered([]*Tool{t})) == 0 || !c.Groups.Has(t) {
		return false
	}
	visible, err := w.Authorizer.Visible(ctx, c.Who, []*Tool{t})
	return err == nil && len(visible) == 1 && visible[0]
}

// pinned refuses the call of a tool whose definition is not approved. A caller that could not call
// it either way does not learn that it exists.
func (w *way) pinned(ctx context.Context, c *Call, t *Tool) error {
	if t.AppOnly && !c.Renders {
		return w.noApp(ctx, c)
	}
	if t.Page != nil && !c.Renders { // it is text, sanitized as that of any resource
		return nil
	}
	if w.Pins == nil && t.Quarantine == "" && t.Page == nil {
		return nil
	}
	w.next(step.Pin)
	err := w.check(t)
	if err == nil {
		return nil
	}
	reason, remedy := "the "+cmp.Or(string(t.Feature), "tool")+"'s definition is not approved", ""
	if u, ok := errors.AsType[*Unpinned](err); ok {
		reason, remedy = u.Reason, u.Remedy
	}
	failed := w.fail(ctx, reason, err)
	r, ok := failed.(*Refusal)
	if !ok { // the caller has gone
		return failed
	}
	r.Remedy = remedy
	if visible, err := w.Authorizer.Visible(ctx, c.Who, []*Tool{t}); err != nil || len(visible) != 1 || !visible[0] {
		r.Reason, r.Hidden, r.Remedy = unknown(c.Action), true, ""
	}
	return r
}

// noApp refuses a tool that is only for apps, to a client that shows none: to that it does
// not exist.
func (w *way) noApp(ctx context.Context, c *Call) error {
	w.next(step.App)
	err := w.fail(ctx, unknown(c.Action), errors.New("the tool is only for the app of its server, and the client shows no apps"))
	if r, ok := err.(*Refusal); ok {
		r.Hidden = true
	}
	return err
}
