package console

import (
	"net/http"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy/study"
)

// explanationHandlers explain why calls were decided as they were.
type explanationHandlers struct {
	*frame
	log    *auditLog
	policy *currentPolicy
}

// explained is a record, and why it was decided so.
func (h *explanationHandlers) explained(r *http.Request) (audit.Entry, *study.Explanation, error) {
	e, err := h.log.ended(r)
	if err != nil || !replay.Decided(e) {
		return e, nil, err
	}
	x, err := h.policy.explainer(r.Context())
	if err != nil {
		return e, nil, err
	}
	why, err := x.Explain(r.Context(), e)
	return e, why, err
}

func (h *explanationHandlers) getExplanation(w http.ResponseWriter, r *http.Request) error {
	e, why, err := h.explained(r)
	return answer(w, map[string]any{"id": e.ID, "code": e.Code, "effect": e.Effect, "reasons": e.Reasons, "policy_revision": e.PolicyRevision, "explanation": why}, err)
}

func (h *explanationHandlers) explanationPage(w http.ResponseWriter, r *http.Request) error {
	e, why, err := h.explained(r)
	if err != nil {
		return err
	}
	return h.show(w, r, "explanation", "Why it was decided so", map[string]any{"Call": e, "Why": why})
}
