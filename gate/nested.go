package gate

import (
	"context"
	"errors"
	"reflect"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/step"
)

// A nested call is what is done within a permitted one: a host call of its tool, or a request of
// its server to the client. It has an ID and a record of its own, and is decided in the session of
// the call, under the obligations of that call.

// nested returns the way of a nested call.
func (p *permitted) nested(e Event, action Action, args Doc) *nested {
	by := p.call
	c := Call{
		ID: NewID(), Parent: by.ID, Action: action, Name: by.Name, Args: args, Who: by.Who, Session: by.Session, Trace: by.Trace,
		ClientName: by.ClientName, ClientVersion: by.ClientVersion,
	}
	c.Trace.Header = "" // which brought that call
	n := &nested{by: p}
	n.begin(p.parts, e, &c)
	n.rec.Tool = p.tool
	return n
}

// settle decides on a nested call, as it is in the record, up to the point where it may be done.
func (n *nested) settle(ctx context.Context) (err error) {
	q := Query{Call: n.rec.Call, Tool: n.by.tool}
	if q.Session, err = n.view(ctx, q.Call); err != nil {
		return err
	}
	// The view may be older than what the call was admitted with.
	q.Session.Labels = q.Session.Labels.Join(n.by.session.Labels)
	q.Session.Top = q.Session.Top || n.by.session.Top
	for range maxDecisions {
		adds, err := n.decide(ctx, q)
		if err != nil {
			return err
		}
		now, admitted, err := n.admit(ctx, q, adds)
		if err != nil {
			return err
		}
		if admitted {
			n.next(step.Record)
			return n.alive(ctx)
		}
		q.Session = now
	}
	return n.fail(ctx, tooManyDecisions, ErrStale)
}

// decide refuses what the authorizer does not allow, and what it allows under a condition
// that the call does not meet already. It returns the labels that the session gets.
func (n *nested) decide(ctx context.Context, q Query) (adds Labels, err error) {
	d, err := n.authorize(ctx, q, "")
	if err != nil {
		return nil, err
	}
	if !d.passes() {
		return nil, n.denied(d)
	}
	n.rec.Full = n.by.duty.full
	if err := n.by.duty.holds(d.Obligations); err != nil {
		return nil, n.fail(ctx, unableToMeet, err)
	}
	if d.Effect == Ask {
		n.next(step.Approve)
		return nil, n.fail(ctx, "this needs approval, but approvals cannot be asked for during a call", nil)
	}
	return d.Labels, nil
}

// alive refuses a nested call whose caller has ended.
func (n *nested) alive(ctx context.Context) error {
	if ctx.Err() != nil || n.by.over.Load() {
		return n.fail(ctx, "the tool's call has ended", nil)
	}
	return nil
}

// holds returns an error if a call that is under d does not meet the obligations already: nothing
// more is done about those of a nested call.
func (d duty) holds(obligations []obligation.Obligation) error {
	both, err := d.with(obligations)
	if err == nil && !reflect.DeepEqual(both, d) {
		err = errors.New("the policy adds an obligation to a call within a tool's call; add it to the tool's call too, or remove it")
	}
	return err
}
