package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// stuckTime is how long a message may be in writing after its sender has gone.
const stuckTime = 2 * time.Second

// sdkConn speaks over a transport of the MCP SDK: the old HTTP+SSE one, or one
// that a program injects.
type sdkConn struct {
	conn   mcp.Connection
	ctx    context.Context // of the connection
	stop   context.CancelFunc
	client *http.Client // what the transport sends with; nil if that is not known
	max    int64
	to     func(gate.Doc, int64)
	ending func(error)
}

// dialSDK connects. ctx bounds the connecting, not the connection.
func dialSDK(ctx context.Context, t mcp.Transport, max int64) (*sdkConn, error) {
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
	return &sdkConn{conn: c, ctx: life, stop: stop, max: max}, nil
}

func (c *sdkConn) send(ctx context.Context, msg []byte, _ http.Header) error {
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
	if _, never := errors.AsType[*unseen](err); never { // nobody is there
		c.ending(err)
		c.conn.Close()
	}
	return err
}

func (c *sdkConn) bind(deliver func(gate.Doc, int64), ending func(error)) {
	c.to, c.ending = deliver, ending
}

func (c *sdkConn) receive() error {
	for {
		m, err := c.conn.Read(c.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return &nonsense{err}
		}
		if err != nil {
			return err
		}
		b, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		if int64(len(b)) > c.max {
			return &nonsense{fmt.Errorf("a message of more than %d bytes", c.max)}
		}
		doc, err := parseMessage(b)
		if err != nil {
			return err
		}
		c.to(doc, 0)
	}
}

func (c *sdkConn) close() error {
	err := c.conn.Close()
	c.stop()
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	return err
}
