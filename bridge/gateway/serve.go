package gateway

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"

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

// Dial connects an MCP client in this process, without a socket: it returns the
// client's end of a connection in memory, which speaks MCP in lines, as a client on
// standard input and output does. The gateway serves it until either end is closed, or
// the gateway is; after [Gateway.Close] it is not to be called.
//
//	conn := gw.Dial(gate.Local())
//	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
func (g *Gateway) Dial(who *gate.Principal) net.Conn {
	ours, theirs := net.Pipe()
	g.serving.Go(func() {
		defer ours.Close()
		defer context.AfterFunc(g.life, func() { ours.Close() })() // what waits for a line is not woken otherwise
		_ = g.Serve(g.life, who, ours, ours)                       // its end is the client's, or the gateway's
	})
	return theirs
}
