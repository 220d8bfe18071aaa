package host

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/drain"
	"github.com/wasmgate/wasmgate/internal/product"
)

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	cfg   Config
	terms atomic.Pointer[Terms]

	states    sealed.Sealer
	parking   *parking.Lot[*parked]
	taskCalls taskCalls
	listeners listeners
	changes   changes

	offer   gate.Groups // what clients over HTTP are offered
	clients clients

	calls      drain.Counter // under way
	endStreams context.CancelFunc
}

// info is what clients are told of the gateway.
func (h *Host) info() []byte { return h.terms.Load().info }

// UnderWay is how many requests of clients have begun and not ended.
func (h *Host) UnderWay() int { return h.calls.Count() }

// Change puts other terms in place, for requests to come.
func (h *Host) Change(t Terms) {
	t.MaxBody = cmp.Or(t.MaxBody, defaultMaxBody)
	t.info = mcp.MustJSON(serverInfo{cmp.Or(t.Name, product.Name), cmp.Or(t.Version, product.Version()), t.Description})
	h.terms.Store(&t)
}

// serverInfo is who answers, as clients are told.
type serverInfo struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}
