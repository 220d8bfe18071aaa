package console

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/audit/index"
)

// moduleHandlers serve the modules, and what their calls have used.
type moduleHandlers struct {
	*frame
	log *auditLog
}

// sandboxed is what calls of a sandboxed tool have used.
type sandboxed struct {
	Tool      string `json:"tool"`
	Server    string `json:"server"`
	Calls     int    `json:"calls"`
	Refused   int    `json:"refused"` // or failed
	Fuel50    uint64 `json:"fuel_p50"`
	Fuel99    uint64 `json:"fuel_p99"`
	Memory    int64  `json:"memory_peak"` // bytes
	HostCalls uint64 `json:"host_calls"`
}

// modules are what the configuration has, and what the newest calls of their tools used.
type modules struct {
	Modules any         `json:"modules"` // as the status has them
	Used    []sandboxed `json:"used"`
}

func (h *moduleHandlers) modules(ctx context.Context) (m modules, p index.Progress, err error) {
	m.Modules = h.status().Modules
	calls, p, err := h.log.find(ctx, index.Query{Event: gate.Done, Fuel: true, Last: mostCalls})
	by := make(map[string][]audit.Entry)
	for _, e := range calls {
		by[e.Tool] = append(by[e.Tool], e)
	}
	m.Used = []sandboxed{}
	for _, tool := range slices.Sorted(maps.Keys(by)) {
		m.Used = append(m.Used, usedBy(tool, by[tool]))
	}
	return m, p, err
}

func usedBy(tool string, calls []audit.Entry) sandboxed {
	u := sandboxed{Tool: tool, Server: calls[0].Server, Calls: len(calls)}
	var fuel []uint64
	for _, e := range calls {
		fuel = append(fuel, e.Fuel)
		u.Memory, u.HostCalls = max(u.Memory, e.MemoryPeak), u.HostCalls+e.HostCalls
		if e.Code != codes.OK {
			u.Refused++
		}
	}
	slices.Sort(fuel)
	u.Fuel50, u.Fuel99 = fuel[len(fuel)/2], fuel[len(fuel)*99/100]
	return u
}

func (h *moduleHandlers) getModules(w http.ResponseWriter, r *http.Request) error {
	m, _, err := h.modules(r.Context())
	return answer(w, m, err)
}

func (h *moduleHandlers) modulesPage(w http.ResponseWriter, r *http.Request) error {
	m, p, err := h.modules(r.Context())
	if err != nil {
		return err
	}
	return h.show(w, r, "modules", "Modules", map[string]any{"Of": m, "Indexed": p})
}
