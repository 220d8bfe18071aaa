package console

import (
	"net/http"

	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/config/except"
)

// findingHandlers serve what was found in calls.
type findingHandlers struct {
	*frame
	log *auditLog
}

// findings are what was found in the calls that a request asks about, the most frequent first.
func (h *findingHandlers) findings(r *http.Request) ([]except.Finding, index.Progress, error) {
	q, err := filter(r)
	if err != nil {
		return nil, index.Progress{}, err
	}
	q.Findings = true
	if r.FormValue("last") == "" {
		q.Last = except.MostCalls
	}
	calls, p, err := h.log.find(r.Context(), q)
	return except.Count(calls), p, err
}

func (h *findingHandlers) getFindings(w http.ResponseWriter, r *http.Request) error {
	list, _, err := h.findings(r)
	return answer(w, list, err)
}

func (h *findingHandlers) findingsPage(w http.ResponseWriter, r *http.Request) error {
	list, p, err := h.findings(r)
	if err != nil {
		return err
	}
	return h.show(w, r, "findings", "Findings", map[string]any{"All": list, "Query": r.URL.Query(), "Indexed": p})
}
