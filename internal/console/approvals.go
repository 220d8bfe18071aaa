package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
)

// approvalHandlers serve what needs approval, and what was approved of destinations.
type approvalHandlers struct {
	*frame
	access    *access
	approvals *approvals.Approvals
	inventory *inventory.Inventory
}

func (h *approvalHandlers) list(ctx context.Context) ([]approvals.Approval, error) {
	if !h.approvals.On() {
		return []approvals.Approval{}, nil
	}
	return h.approvals.List(ctx)
}

func (h *approvalHandlers) getApprovals(w http.ResponseWriter, r *http.Request) error {
	all, err := h.list(r.Context())
	return answer(w, all, err)
}

func (h *approvalHandlers) getApproval(w http.ResponseWriter, r *http.Request) error {
	one, err := h.approvals.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return &missing{err.Error()}
	}
	return answer(w, one, nil)
}

// A decision answers an approval as it was seen: Binding is the one that it had.
type decision struct {
	Verdict gate.Verdict `json:"verdict"`
	Binding string       `json:"binding"`
	Note    string       `json:"note"`
	Always  bool         `json:"always"`
	// Destination approves the call's destinations, too, until its session ends.
	Destination bool `json:"destination"`
	// Also approve the values that are shown next to the destinations.
	Beside bool `json:"beside"`
}

func (h *approvalHandlers) decide(ctx context.Context, id string, d decision) (*approvals.Decided, error) {
	if d.Verdict != gate.Approved && d.Verdict != gate.Denied {
		return nil, &misused{"verdict is approved or denied"}
	}
	one, err := h.approvals.Show(ctx, id)
	if err != nil {
		return nil, &missing{err.Error()}
	}
	if one.Binding != d.Binding {
		return nil, &conflict{"approval " + id}
	}
	if d.Always {
		if err := h.access.may(ctx, "admin/grant", "grant.always", one.Tool, true); err != nil {
			return nil, err
		}
	}
	request := approvals.DecideRequest{ID: id, Verdict: d.Verdict, Note: d.Note, Always: d.Always, Destination: d.Destination, Beside: d.Beside}
	request.Token = by(ctx).key // whose answer it is then
	return h.approvals.Decide(ctx, request)
}

func (h *approvalHandlers) postDecision(w http.ResponseWriter, r *http.Request) error {
	var d decision
	if err := read(r, &d); err != nil {
		return err
	}
	done, err := h.decide(r.Context(), r.PathValue("id"), d)
	return answer(w, done, err)
}

func (h *approvalHandlers) getDestinations(w http.ResponseWriter, r *http.Request) error {
	all, err := h.approvals.Destinations(r.Context())
	return answer(w, all, err)
}

// revoke takes back the destinations that an approval was for.
func (h *approvalHandlers) revoke(r *http.Request) ([]gate.Destination, error) {
	return h.approvals.RevokeDestinations(r.Context(), r.PathValue("id"), named(r.Context()))
}

func (h *approvalHandlers) postRevocation(w http.ResponseWriter, r *http.Request) error {
	gone, err := h.revoke(r)
	return answer(w, gone, err)
}

// asked is a question with what the server says about its tool.
type asked struct {
	approvals.Approval
	Description string
	Annotations []byte // JSON; empty if there are none
}

func (h *approvalHandlers) describe(a approvals.Approval) asked {
	q := asked{Approval: a}
	known := h.inventory.KnownTools()
	if i := slices.IndexFunc(known, func(t *gate.Tool) bool { return t.Name.String() == a.Tool }); i >= 0 {
		q.Description = known[i].Definition.Get("description").Text()
		if hints := known[i].Definition.Get("annotations"); !hints.IsZero() {
			q.Annotations = hints.Raw()
		}
	}
	return q
}

func (h *approvalHandlers) approvalsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := h.list(r.Context())
	if err != nil {
		return err
	}
	for i, a := range all { // with their arguments, which lists leave out
		if one, err := h.approvals.Show(r.Context(), a.ID); err == nil {
			all[i] = *one
		}
	}
	still, err := h.approvals.StillAsked(r.Context())
	if err != nil {
		return err
	}
	var asked []asked
	for _, a := range all {
		asked = append(asked, h.describe(a))
	}
	destinations, missing := h.approvals.Destinations(r.Context())
	return h.show(w, r, "approvals", "Approvals", map[string]any{"All": asked, "Asks": h.approvals.On(), "Destinations": destinations, "Missing": missing, "Still": still})
}

func (h *approvalHandlers) decidePage(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	d := decision{Binding: r.PostFormValue("binding"), Note: r.PostFormValue("note")}
	switch r.PostFormValue("verdict") {
	case "once":
		d.Verdict = gate.Approved
	case "always":
		d.Verdict, d.Always = gate.Approved, true
	case "destination":
		d.Verdict, d.Destination = gate.Approved, true
	case "beside":
		d.Verdict, d.Destination, d.Beside = gate.Approved, true, true
	case "deny":
		d.Verdict = gate.Denied
	}
	decided, err := h.decide(r.Context(), id, d)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s by %s is %s.", decided.Approval.Tool, decided.Approval.Principal, d.Verdict)
	if a := decided.Always; a != nil && a.Still != "" {
		said += " No grant was written: the policy will still say " + a.Still + "."
	}
	return h.done(w, r, "/ui/approvals", said)
}

func (h *approvalHandlers) revokePage(w http.ResponseWriter, r *http.Request) error {
	gone, err := h.revoke(r)
	if err != nil {
		return err
	}
	return h.done(w, r, "/ui/approvals", fmt.Sprintf("the approval of %d destinations was removed", len(gone)))
}
