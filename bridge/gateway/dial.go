package gateway

import (
	"context"
	"net"

	"github.com/wasmgate/wasmgate/gate"
)

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
