package console

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
)

// A shownCall is a call with the gateway that has recorded it; "" if no others share the database.
type shownCall struct {
	audit.Entry
	Gateway string
}

// A silent is a gateway whose calls are missing.
type silent struct {
	Node string
	Why  string
}

// withOthers adds the calls of other gateways to those of this one, and returns the newest, at most most. Missing are
// the gateways that did not answer.
func withOthers(ctx context.Context, nodes *app.Nodes, own []audit.Entry, query url.Values, most int) (all []shownCall, missing []silent) {
	for _, e := range own {
		all = append(all, shownCall{e, nodes.Own()})
	}
	asked := url.Values{}
	for name, values := range query {
		if name != "gateway" {
			asked[name] = values
		}
	}
	for _, o := range nodes.Calls(ctx, asked) {
		entries, err := parsed(o.Records)
		if o.Err != nil {
			err = o.Err
		}
		if err != nil {
			missing = append(missing, silent{o.Node, err.Error()})
			continue
		}
		for _, e := range entries {
			all = append(all, shownCall{e, o.Node})
		}
	}
	if at := query.Get("gateway"); at != "" {
		all = slices.DeleteFunc(all, func(s shownCall) bool { return s.Gateway != at })
	}
	slices.SortStableFunc(all, func(a, b shownCall) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), most)], missing
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

// ago is how long ago something was, in seconds.
func ago(seconds float64) string {
	return (time.Duration(seconds * float64(time.Second))).Round(time.Second).String() + " ago"
}
