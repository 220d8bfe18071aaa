package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/product"
)

// SetRequired says which servers a gateway needs to be ready, by id; none at first.
func (g Operator) SetRequired(ids []string) {
	ids = slices.Clone(ids)
	g.required.Store(&ids)
}

// Ready returns why the gateway should be sent no clients now: it drains, its audit log
// cannot be written, or a server that is required is not ready. Nil is none: then it has a
// policy, too, without which it does not start.
func (g Operator) Ready() (why []status.NotReady) {
	if g.draining.Load() {
		why = append(why, status.NotReady{Part: "draining", Why: ErrDraining.Error()})
	} else if g.leaving.Load() {
		why = append(why, status.NotReady{Part: "draining", Why: "the gateway leaves its cluster: other gateways answer what clients begin"})
	} else if err := g.Healthy(); err != nil {
		why = append(why, status.NotReady{Part: "audit", Why: err.Error()})
	}
	required := g.required.Load()
	if required == nil || len(*required) == 0 {
		return why
	}
	all := g.fleet.Status()
	for _, id := range *required {
		at := slices.IndexFunc(all, func(s status.Server) bool { return s.Server == id })
		switch {
		case at < 0:
			why = append(why, status.NotReady{Part: "servers", Why: id + " is required and not there"})
		case all[at].Phase != status.Ready:
			why = append(why, status.NotReady{Part: "servers", Why: fmt.Sprintf("%s is required and %s", id, all[at].Phase)})
		}
	}
	return why
}

// UnderWay is how many calls and requests of clients have begun and not ended.
func (g Operator) UnderWay() int { return g.underWay() }

// HandleHealth serves the gateway's health: at /livez that the process answers, at /readyz
// whether it should be sent clients, in words that tell nothing of the servers, and at
// /healthz whether calls can pass, with the reason if not.
func (g Operator) HandleHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		answerHealth(w, true, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		why := g.Ready()
		if len(why) == 0 {
			answerHealth(w, true, map[string]any{"status": "ok"})
			return
		}
		var parts []string
		for _, one := range why {
			parts = append(parts, one.Part)
		}
		answerHealth(w, false, map[string]any{"status": "not ready", "parts": slices.Compact(parts)})
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer := map[string]any{"status": "ok", "version": product.Version()}
		err := g.Healthy()
		if err != nil {
			answer["status"], answer["error"] = "failing", err.Error()
		} else if warning := g.AuditWarning(); warning != "" {
			answer["warning"] = "audit log: " + warning
		}
		answerHealth(w, err == nil, answer)
	})
}

func answerHealth(w http.ResponseWriter, ok bool, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// Places returns how many calls are at upstreams, how many wait for a place there, and how many
// places there are.
func (g Operator) Places() (taken, waiting, most int64) { return g.settings.limits.Places() }
