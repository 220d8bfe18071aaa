package console

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// callHandlers serve the calls of the audit log.
type callHandlers struct {
	*frame
	log   *auditLog
	nodes *app.Nodes
}

// getCalls also says how much of the log was looked at.
func (h *callHandlers) getCalls(w http.ResponseWriter, r *http.Request) error {
	q, err := filter(r)
	if err != nil {
		return err
	}
	all, p, err := h.log.find(r.Context(), q)
	if err != nil {
		return err
	}
	w.Header().Set("Wasmgate-Indexed", strconv.FormatFloat(p.Part, 'f', 4, 64))
	return answer(w, raw(all), nil)
}

func (h *callHandlers) getCall(w http.ResponseWriter, r *http.Request) error {
	all, err := h.log.call(r)
	return answer(w, raw(all), err)
}

// outcomes are the codes by which calls are found most often.
var outcomes = []string{
	codes.OK, codes.ToolError, "refused_authorize", "refused_approve", "refused_pin", "refused_lookup", "refused_validate_input", "refused_validate_output",
	"refused_limit", "refused_busy", "refused_store", codes.Timeout, codes.Cancelled, "transport", codes.Protocol,
}

// rareFilters are the filters of calls that are folded unless one of them is used.
var rareFilters = []string{"server", "session", "until", "text", "findings", "gateway"}

func (h *callHandlers) callsPage(w http.ResponseWriter, r *http.Request) error {
	q, err := filter(r)
	if err != nil {
		return err
	}
	own, p, err := h.log.find(r.Context(), q)
	if err != nil {
		return err
	}
	query, older := r.URL.Query(), template.URL("")
	all, missing := withOthers(r.Context(), h.nodes, own, query, q.Last)
	if len(all) == q.Last {
		next := r.URL.Query()
		if last := all[len(all)-1]; h.nodes.Own() == "" {
			next.Set("before", strconv.FormatUint(last.Seq, 10))
		} else { // each log has numbers of its own
			next.Set("until", last.Time.Format(time.RFC3339Nano))
		}
		older = template.URL(next.Encode()) // which has escaped it
	}
	var over template.HTML
	if len(all) > 1 {
		span := pages.Around(all[len(all)-1].Time, all[0].Time)
		for _, e := range all {
			span.Add(e.Time, e.Code)
		}
		over = pages.Chart(span)
	}
	return h.show(w, r, "calls", "Calls", map[string]any{"Calls": all, "Query": query, "Outcomes": outcomes, "More": slices.ContainsFunc(rareFilters, query.Has), "Live": r.URL.RawQuery == "", "Older": older, "Chart": over, "Indexed": p, "Here": h.nodes.Own(), "Missing": missing})
}

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
		entries, err := parsed(o.Value)
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

func (h *callHandlers) callPage(w http.ResponseWriter, r *http.Request) error {
	all, err := h.log.call(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	main, related := mainOf(id, all), []audit.Entry{}
	for _, e := range all {
		if e.Seq != main.Seq && !(e.ID == id && e.Event == gate.Granted) {
			related = append(related, e)
		}
	}
	elsewhere := r.FormValue("gateway") // whose console has more
	if elsewhere == h.nodes.Own() {
		elsewhere = ""
	}
	return h.show(w, r, "call", "Call", map[string]any{"Call": main, "Related": related, "Values": flow.Values(main), "Steps": pages.Steps(main), "Raw": all, "Elsewhere": elsewhere, "Test": replay.Test(main), "IsTool": main.Action == gate.CallTool && elsewhere == ""})
}
