package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// trialHandlers evaluate the policy on calls that were not made.
type trialHandlers struct {
	*frame
	policy    *currentPolicy
	inventory *inventory.Inventory
	principal func(id string) (*gate.Principal, error)
}

// try returns the policy's decision on a hypothetical call.
func (h *trialHandlers) try(ctx context.Context, t replay.Trial) (*replay.Tried, error) {
	who, err := h.principal(t.Principal)
	if err != nil {
		return nil, err
	}
	x, err := h.policy.explainer(ctx)
	if err != nil {
		return nil, err
	}
	return x.Try(ctx, who, t)
}

func (h *trialHandlers) postTrial(w http.ResponseWriter, r *http.Request) error {
	var t replay.Trial
	if err := read(r, &t); err != nil {
		return err
	}
	tried, err := h.try(r.Context(), t)
	return answer(w, tried, err)
}

// trial reads the form of a trial; a page of a call sends the same.
func trial(r *http.Request) replay.Trial {
	labels := strings.FieldsFunc(r.FormValue("labels"), func(r rune) bool { return r == ',' || r == ' ' })
	return replay.Trial{Tool: strings.TrimSpace(r.FormValue("tool")), Arguments: []byte(r.PostFormValue("arguments")), Principal: strings.TrimSpace(r.FormValue("principal")), Labels: labels}
}

func (h *trialHandlers) trialPage(w http.ResponseWriter, r *http.Request) error {
	return h.showTrial(w, r, trial(r), nil)
}

func (h *trialHandlers) tryPage(w http.ResponseWriter, r *http.Request) error {
	t := trial(r)
	tried, err := h.try(r.Context(), t)
	if err != nil {
		return err
	}
	return h.showTrial(w, r, t, tried)
}

func (h *trialHandlers) showTrial(w http.ResponseWriter, r *http.Request, t replay.Trial, tried *replay.Tried) error {
	tools, err := h.inventory.Tools(r.Context(), "", true)
	if err != nil {
		return err
	}
	coerced := false
	if tried != nil {
		var sent bytes.Buffer
		coerced = json.Compact(&sent, t.Arguments) == nil && sent.Len() > 0 && !bytes.Equal(sent.Bytes(), tried.Arguments)
	}
	return h.show(w, r, "trial", "Try a call", map[string]any{"Trial": t, "Labels": strings.Join(t.Labels, ", "), "Tools": tools, "Tried": tried, "Coerced": coerced})
}
