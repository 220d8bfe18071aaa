package dispatch

import (
	"cmp"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/internal/product"
)

// A backend knows the gate and the fleet: what they offer to a client, on the terms of the gateway.
type backend struct {
	cfg   Config
	terms atomic.Pointer[Terms]
}

// Change replaces the terms for requests to come.
func (b *backend) Change(t Terms) {
	t.info = mcp.MustJSON(serverInfo{cmp.Or(t.Name, product.Name), cmp.Or(t.Version, product.Version()), t.Description})
	b.terms.Store(&t)
}

// info is how the gateway describes itself to clients.
func (b *backend) info() []byte { return b.terms.Load().info }

// serverInfo describes the gateway to clients.
type serverInfo struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}
