package console

import (
	"net/http"

	"github.com/wasmgate/wasmgate/internal/app"
)

// nodeHandlers serve the gateways that share a database.
type nodeHandlers struct {
	*frame
	nodes *app.Nodes
}

func (h *nodeHandlers) getNodes(w http.ResponseWriter, r *http.Request) error {
	all, err := h.nodes.All(r.Context())
	return answer(w, all, err)
}

func (h *nodeHandlers) nodesPage(w http.ResponseWriter, r *http.Request) error {
	all, err := h.nodes.All(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		return &missing{"database that gateways share: see docs/how-to/cluster.md"}
	}
	return h.show(w, r, "nodes", "Gateways", map[string]any{"Nodes": all.Nodes, "Problems": all.Problems, "Here": h.nodes.Own()})
}
