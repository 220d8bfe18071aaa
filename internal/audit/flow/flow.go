package flow

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// A Flow is what a session has read, and what it did then.
type Flow struct {
	Read []Call `json:"read"` // calls with which its labels rose, own records, and what brought what a later one was stopped for, the oldest first
	Did  []Call `json:"did"`  // calls after the first of these, and those that were refused
}

// A Call is one call in a flow.
type Call struct {
	Call   string    `json:"call"`
	Time   time.Time `json:"time"`
	Tool   string    `json:"tool"`
	Code   string    `json:"code"`
	Labels []string  `json:"labels,omitempty"` // that came with it
	Own    bool      `json:"own,omitempty"`    // it returned the account holder's own record
	Why    string    `json:"why,omitempty"`
	Set    string    `json:"set,omitempty"` // approval of the list that the call was approved in
	// Values are those of its arguments that the session had met before, if it was stopped or
	// asked about: see [audit.Entry.Met].
	Values []Value `json:"values,omitempty"`
}

// A Value is where a value of a call came from.
type Value struct {
	Argument string `json:"argument"` // JSON Pointer
	Call     string `json:"call"`     // that brought it
	Said     string `json:"said"`     // as in the record
}

// Values returns what a record knows about the values of its call.
func Values(e audit.Entry) (all []Value) {
	for _, said := range e.Met {
		argument, _, _ := strings.Cut(said, ": ")
		if at := strings.LastIndex(said, " in call "); at >= 0 {
			all = append(all, Value{argument, said[at+len(" in call "):], said})
		}
	}
	return all
}

// Of returns the flow of a session's calls, the oldest first.
func Of(calls []audit.Entry) Flow {
	f := Flow{Read: []Call{}, Did: []Call{}}
	brought := make(map[string]bool)
	for _, e := range calls {
		for _, v := range Values(e) {
			brought[v.Call] = true
		}
	}
	for _, e := range calls {
		one := Call{Call: e.ID, Time: e.Time, Tool: e.Tool, Code: e.Code, Own: e.OwnRecord, Why: audit.Why(&e), Values: Values(e)}
		if list, _, in := strings.Cut(e.Approval.ID, "."); in {
			one.Set = list
		}
		for _, l := range e.LabelsAfter {
			if !slices.Contains(e.LabelsBefore, l) {
				one.Labels = append(one.Labels, l)
			}
		}
		switch {
		case len(one.Labels) > 0, one.Own, brought[e.ID] && !strings.HasPrefix(e.Code, "refused_"):
			f.Read = append(f.Read, one)
		case strings.HasPrefix(e.Code, "refused_"), len(e.LabelsBefore) > 0:
			f.Did = append(f.Did, one)
		}
	}
	return f
}

// maxCalls is the maximum number of calls in a flow: the newest of its session.
const maxCalls = 1000

// Read returns the flow of a session from the log at path. It begins with the first call that raised
// one of its labels, or when the session began, whichever was earlier. Raised are these calls, by
// label. Lines that are no records are left out: the log's verification finds them.
func Read(ctx context.Context, path string, k gate.SessionKey, began time.Time, raised map[string]string) (Flow, error) {
	calls, begun := []audit.Entry{}, false
	f := audit.Filter{Principal: k.Owner.ID, Session: k.ID, Last: maxCalls, Choose: func(e *audit.Entry) bool {
		if e.Tenant != k.Tenant || e.Event != gate.Done {
			return false
		}
		begun = begun || !e.Time.Before(began.Add(-time.Second)) || slices.Contains(slices.Collect(maps.Values(raised)), e.ID)
		return begun
	}}
	for e, err := range audit.Read(ctx, path, f) {
		var broken *audit.ChainError
		switch {
		case errors.As(err, &broken):
		case errors.Is(err, fs.ErrNotExist):
			return Of(nil), nil
		case err != nil:
			return Flow{}, err
		default:
			calls = append(calls, e)
		}
	}
	return Of(calls), nil
}
