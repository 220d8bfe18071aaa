package gateway

import (
	"cmp"
	"context"
	"io"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/web"
)

// ServeHTTP serves MCP at /mcp, of one group at /mcp/GROUP, and its health: at /livez that the process
// answers, at /readyz whether it should be sent clients, at /healthz whether calls can pass.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web.BoundBody(w, r, cmp.Or(g.cfg.Limits.BodyTime, web.BodyTime)) // of what no handler reads, too
	g.mux.ServeHTTP(w, r)
}

// Serve serves one client that speaks MCP in lines, until in or ctx ends.
func (g *Gateway) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	return g.host.Serve(ctx, who, in, out)
}

// handleMCP serves MCP at /mcp, and at /mcp/GROUP what is in that group alone.
func (g *Gateway) handleMCP(mux *http.ServeMux) {
	mux.Handle("/mcp", g.host)
	mux.Handle("/mcp/{"+transport.GroupParam+"}", g.host)
}
