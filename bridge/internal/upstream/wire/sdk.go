package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// stuckTime is how long a message may be in writing after its sender has gone.
const stuckTime = 2 * time.Second

// SDKConn speaks over a transport of the MCP SDK: the old HTTP+SSE one, or one
// that a program injects.
type SDKConn struct {
	conn   sdk.Connection
	ctx    context.Context // of the connection
	stop   context.CancelFunc
	Client *http.Client // what the transport sends with; nil if that is not known
	max    int64
	to     func(gate.Doc, int64)
	ending func(error)
}

// DialSDK connects. ctx bounds the connecting, not the connection.
func DialSDK(ctx context.Context, t sdk.Transport, max int64) (*SDKConn, error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	unbind := context.AfterFunc(ctx, stop)
	c, err := t.Connect(life)
	if !unbind() && err == nil {
		c.Close()
		err = ctx.Err()
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &SDKConn{conn: c, ctx: life, stop: stop, max: max}, nil
}

// Send implements [Conn].
func (c *SDKConn) Send(ctx context.Context, msg []byte, _ http.Header) error {
	m, err := jsonrpc.DecodeMessage(msg)
	if err != nil {
		return err
	}
	written := make(chan struct{})
	defer close(written)
	// A transport may be stuck with half of the message, and heed no context; the
	// connection is of no use then.
	defer context.AfterFunc(ctx, func() {
		select {
		case <-written:
		case <-time.After(stuckTime):
			c.conn.Close()
		}
	})()
	err = notDialled(c.conn.Write(ctx, m))
	if _, never := errors.AsType[*Unseen](err); never { // there is no server
		c.ending(err)
		c.conn.Close()
	}
	return err
}

func (c *SDKConn) bind(deliver func(gate.Doc, int64), _ func(string, *mcp.TooLarge), ending func(error)) {
	c.to, c.ending = deliver, ending
}

func (c *SDKConn) receive() error {
	for {
		m, err := c.conn.Read(c.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return &mcp.ProtocolError{Err: err}
		}
		if err != nil {
			return err
		}
		b, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		if int64(len(b)) > c.max {
			return &mcp.ProtocolError{Err: fmt.Errorf("the message has more than %d bytes", c.max)}
		}
		doc, err := parseMessage(b)
		if err != nil {
			return err
		}
		c.to(doc, 0)
	}
}

// Close implements [Conn].
func (c *SDKConn) Close() error {
	err := c.conn.Close()
	c.stop()
	if c.Client != nil {
		c.Client.CloseIdleConnections()
	}
	return err
}
