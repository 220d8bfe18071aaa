package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/audit/index"
)

// An auditLog finds calls in the log of this gateway, and asks others for theirs.
type auditLog struct {
	index *index.Index
	nodes *app.Nodes
}

// usual bounds of what is shown of the log at once.
const (
	usualCalls = 100
	mostCalls  = 1000
)

// filter reads which calls are wanted.
func filter(r *http.Request) (q index.Query, err error) {
	q = index.Query{
		Event: gate.Done, Tool: r.FormValue("tool"), Server: r.FormValue("server"), Principal: r.FormValue("principal"), Session: r.FormValue("session"),
		Code: r.FormValue("code"), Refused: r.FormValue("denied") == "true", Text: r.FormValue("text"), Findings: r.FormValue("findings") == "true", Last: usualCalls,
	}
	if s := r.FormValue("last"); s != "" {
		if q.Last, err = strconv.Atoi(s); err != nil || q.Last <= 0 || q.Last > mostCalls {
			return q, &misused{fmt.Sprintf("last %q is not a number from 1 to %d", s, mostCalls)}
		}
	}
	if s := r.FormValue("before"); s != "" {
		if q.Before, err = strconv.ParseUint(s, 10, 64); err != nil {
			return q, &misused{fmt.Sprintf("before %q is not a number of a record", s)}
		}
	}
	if q.Since, err = moment(r, "since"); err == nil {
		q.Until, err = moment(r, "until")
	}
	return q, err
}

// moment reads a time: so long ago, or as RFC 3339 or a browser writes it, then in this
// machine's zone.
func moment(r *http.Request, name string) (time.Time, error) {
	s := r.FormValue(name)
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &misused{fmt.Sprintf("%s %q is neither a duration such as 1h nor a time such as 2006-01-02T15:04", name, s)}
}

// find returns what the log has, the newest first.
func (l *auditLog) find(ctx context.Context, q index.Query) ([]audit.Entry, index.Progress, error) {
	all, p, err := l.index.Find(ctx, q)
	if errors.Is(err, path.ErrBadPattern) {
		err = &misused{err.Error()}
	}
	return all, p, err
}

// call returns all records of a call, the oldest first.
func (l *auditLog) call(r *http.Request) ([]audit.Entry, error) {
	if at := r.FormValue("gateway"); at != "" && at != l.nodes.Own() {
		return otherCall(r.Context(), l.nodes, at, r.PathValue("id"))
	}
	all, p, err := l.find(r.Context(), index.Query{Call: r.PathValue("id"), Last: mostCalls})
	if err == nil && len(all) == 0 {
		what := "call " + r.PathValue("id") + " in the log"
		if !p.Done() {
			what += fmt.Sprintf(", as far as it is indexed (%.0f %%)", 100*p.Part)
		}
		err = &missing{what}
	}
	slices.Reverse(all)
	return all, err
}

// otherCall returns all records of a call that another gateway has, the oldest first.
func otherCall(ctx context.Context, nodes *app.Nodes, node, id string) ([]audit.Entry, error) {
	records, err := nodes.Call(ctx, node, id)
	if err != nil {
		return nil, &missing{"answer of gateway " + node + ": " + err.Error()}
	}
	all, err := parsed(records)
	if err == nil && len(all) == 0 {
		err = &missing{"call " + id + " in the log of gateway " + node}
	}
	return all, err
}

// parsed returns the records that another gateway has sent.
func parsed(records []json.RawMessage) ([]audit.Entry, error) {
	all := make([]audit.Entry, len(records))
	for i, raw := range records {
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return nil, err
		}
		all[i].Raw = raw
	}
	return all, nil
}

// ended returns the most informative record of a call: its outcome, or that it was granted.
func (l *auditLog) ended(r *http.Request) (audit.Entry, error) {
	all, err := l.call(r)
	if err != nil {
		return audit.Entry{}, err
	}
	return mainOf(r.PathValue("id"), all), nil
}

// mainOf returns the most informative of the records of a call.
func mainOf(id string, all []audit.Entry) audit.Entry {
	main := all[0]
	for _, e := range all {
		if e.ID == id && (e.Event == gate.Done || e.Event == gate.Granted && main.Event != gate.Done) {
			main = e
		}
	}
	return main
}

// raw are records as they were written.
func raw(entries []audit.Entry) []rawJSON {
	all := make([]rawJSON, 0, len(entries))
	for _, e := range entries {
		all = append(all, rawJSON(e.Raw))
	}
	return all
}

// rawJSON is JSON already.
type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }
