package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

// MaxSet bounds the calls of one proposal: a person reads them all.
const MaxSet = 20

// Propose asks a person about calls that the client of the permitted one is going to make, as one
// list. Once they approve, each of the calls passes once: with these arguments, in this session, under
// this policy, until the approval expires. Each is decided on again when it is made, and an approval
// lets none pass that the policy denies then.
//
// It returns how many of the calls need approval; if none does, no one is asked. The error is a
// [*Refusal] if one of the calls would be refused, or if there is no approval. As with
// [Permit.Relay], the calls are made by the same principal in the same session.
func (p Permit) Propose(ctx context.Context, calls []Call) (asked int, err error) {
	if !p.relays() {
		return 0, noRelay("a proposal")
	}
	by := p.of.call
	w := &way{gate: p.of.relay.gate, relayed: true}
	w.begin(w.gate.parts.Load(), Done, by)
	w.rec.Tool = p.of.tool
	w.next(step.Approve)
	if len(calls) > MaxSet {
		return 0, w.fail(ctx, fmt.Sprintf("a proposal has at most %d calls", MaxSet), nil)
	}
	set := Question{Query: Query{Call: by, Tool: p.of.tool}, Snapshot: w.Snapshot}
	for i, c := range calls {
		c.ID, c.Parent, c.Who, c.Session, c.Groups, c.Prompt, c.Meta = NewID(), by.ID, by.Who, by.Session, by.Groups, by.Prompt, by.Meta
		c.Action, c.Brought = CallTool, Brought{}
		if c.Args.IsZero() {
			c.Args = emptyObject
		}
		q, err := w.gate.question(ctx, &c)
		if r, ok := errors.AsType[*Refusal](err); ok {
			refused := *r
			refused.Call, refused.Reason = by.ID, w.sanitized(fmt.Sprintf("call %d of the list, %s: %s", i+1, c.Name, r.Reason))
			err = &refused
		}
		if err != nil {
			return 0, &RelayedError{Call: by.ID, Err: err}
		}
		if q != nil {
			set.add(*q)
		}
	}
	if len(set.Set) == 0 {
		return 0, nil
	}
	if p.of.slot != nil { // the call waits for a person
		p.of.slot.Release(0)
	}
	if err := w.approveSet(ctx, set); err != nil {
		return 0, &RelayedError{Call: by.ID, Err: err}
	}
	return len(set.Set), nil
}

// approveSet has a person approve a set of calls.
func (w *way) approveSet(ctx context.Context, set Question) error {
	if w.Approver == nil {
		return w.fail(ctx, "these calls need approval, and this gateway has no way to ask a person", nil)
	}
	a, err := w.Approver.Approve(ctx, set)
	if err == nil && a.ID == "" {
		err = errors.New("the function Approve returned no approval")
	}
	if err != nil {
		return w.unapproved(ctx, err)
	}
	return nil
}

// question returns what a person would be asked about a call if it were made now; nil if the policy
// asks about nothing. Nothing is carried out.
func (g *Gate) question(ctx context.Context, c *Call) (_ *Question, err error) {
	w := &way{gate: g, relayed: true}
	w.begin(g.parts.Load(), Done, c)
	defer w.caught(ctx, &err)
	if err := w.parse(ctx, c); err != nil {
		return nil, err
	}
	tool, err := w.lookup(ctx, c)
	if err != nil {
		return nil, err
	}
	q, b, err := w.arrive(ctx, c, tool)
	if err != nil {
		return nil, err
	}
	if err := w.open(ctx, q); err != nil {
		return nil, err
	}
	r, err := w.decide(ctx, q, b, "")
	if err != nil {
		return nil, err
	}
	if err := w.validateInput(ctx, q, r.sent, false); err != nil {
		return nil, err
	}
	if !r.asks() {
		return nil, nil
	}
	asked := w.asked(q, r)
	asked.Beside, asked.BesideOf = nil, provenance.List{} // an approval of a set is for its calls, and for nothing else
	return &asked, nil
}

// add adds a call to the question about a set.
func (q *Question) add(one Question) {
	q.Set = append(q.Set, one)
	q.Session, q.Revision = one.Session, one.Revision
	for _, reason := range one.Reasons {
		if !slices.Contains(q.Reasons, reason) {
			q.Reasons = append(q.Reasons, reason)
		}
	}
	for _, a := range one.Approvers {
		if !slices.ContainsFunc(q.Approvers, func(o obligation.Approve) bool { return o.NotSelf == a.NotSelf && slices.Equal(o.By, a.By) }) {
			q.Approvers = append(q.Approvers, a)
		}
	}
}
