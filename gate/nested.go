package gate

import (
	"context"
	"errors"
	"reflect"
	"time"
)

// A nested call is what is done within a permitted one: a host call of its tool, or a
// request of its server to the client. It has an ID and a record of its own, and is
// decided in the session of the call, under whose obligations it stands.

// noCall refuses what is done by the zero Permit, or by that of a call that has ended.
const noCall = "there is no call on whose behalf it would be done"

// nested returns the way of a nested call.
func (p *permitted) nested(e Event, action Action, args Doc) *way {
	by := p.call
	c := Call{
		ID: NewID(), Parent: by.ID, Action: action, Name: by.Name, Args: args, Who: by.Who, Session: by.Session,
		ClientName: by.ClientName, ClientVersion: by.ClientVersion,
	}
	w := &way{Parts: p.parts, parent: p, duty: p.duty, step: StepParse, mark: time.Now()}
	w.rec = Record{Event: e, Time: w.mark, Call: &c, Tool: p.tool, Snapshot: w.Snapshot}
	return w
}

// settleNested decides on a nested call, as it stands in the record, up to the point
// where it may be done.
func (w *way) settleNested(ctx context.Context) error {
	q := Query{Call: w.rec.Call, Tool: w.rec.Tool}
	if err := w.authorize(ctx, &q); err != nil {
		return err
	}
	if err := w.ask(ctx, &q); err != nil {
		return err
	}
	if err := w.admit(ctx, &q); err == errUnasked {
		return w.ask(ctx, &q)
	} else if err != nil {
		return err
	}
	w.next(StepRecord)
	return w.alive(ctx)
}

// alive refuses a nested call whose caller has ended.
func (w *way) alive(ctx context.Context) error {
	if ctx.Err() != nil || w.parent.over.Load() {
		return w.fail(ctx, "the call has ended meanwhile", nil)
	}
	return nil
}

// holds returns an error if a call that is under d does not meet the obligations
// already: nobody does more about those of a nested call.
func (d duty) holds(obligations []Obligation) error {
	both, err := d.with(obligations)
	if err == nil && !reflect.DeepEqual(both, d) {
		err = errors.New("what is done within a call cannot meet an obligation that the call is not under")
	}
	return err
}
