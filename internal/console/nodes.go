package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
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

// withOthers adds the calls of other gateways to those of this one, the newest first, and returns at most most, and who has not answered.
func (c *Console) withOthers(ctx context.Context, own []audit.Entry, query url.Values, most int) (all []shownCall, missing []silent) {
	for _, e := range own {
		all = append(all, shownCall{e, c.app.Nodes.Own()})
	}
	asked := url.Values{}
	for name, values := range query {
		if name != "gateway" {
			asked[name] = values
		}
	}
	for _, o := range c.app.Nodes.Calls(ctx, asked) {
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
func (c *Console) otherCall(ctx context.Context, node, id string) ([]audit.Entry, error) {
	records, err := c.app.Nodes.Call(ctx, node, id)
	if err != nil {
		return nil, &missing{"answer of gateway " + node + ": " + err.Error()}
	}
	all, err := parsed(records)
	if err == nil && len(all) == 0 {
		err = &missing{"call " + id + " in the log of gateway " + node}
	}
	return all, err
}

func (c *Console) getNodes(w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Nodes.All(r.Context())
	return answer(w, all, err)
}

func (c *Console) nodesPage(w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Nodes.All(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		return &missing{"database that gateways share: see docs/how-to/cluster.md"}
	}
	return c.show(w, r, "nodes", "Gateways", map[string]any{"Nodes": all.Nodes, "Problems": all.Problems, "Here": c.app.Nodes.Own()})
}

// ago is how long ago something was, in seconds.
func ago(seconds float64) string {
	return (time.Duration(seconds * float64(time.Second))).Round(time.Second).String() + " ago"
}
