package gateway_test

import (
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// A rawServer is a server with tools and resources in this process. It returns the result of a
// method; "" is an empty list, or an error for any other method.
type rawServer func(method string, params gate.Doc) string

func (s rawServer) Connect(context.Context) (mcp.Connection, error) {
	open, end := context.WithCancel(context.Background())
	return &rawConn{s, make(chan jsonrpc.Message, 100), open.Done(), end}, nil
}

type rawConn struct {
	server rawServer
	out    chan jsonrpc.Message
	done   <-chan struct{}
	end    func()
}

func (*rawConn) SessionID() string { return "" }

func (c *rawConn) Close() error {
	c.end()
	return nil
}

func (c *rawConn) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.out:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	}
}

func (c *rawConn) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return nil
	}
	params, err := gate.ParseDoc(r.Params)
	if err != nil {
		params = gate.MustDoc("{}")
	}
	result := c.server(r.Method, params)
	if result == "" {
		result = map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"raw","version":"1"}}`,
			"tools/list": `{"tools":[]}`, "resources/list": `{"resources":[]}`, "resources/templates/list": `{"resourceTemplates":[]}`, "ping": `{}`,
		}[r.Method]
	}
	answer := &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(result)}
	if result == "" {
		answer.Result, answer.Error = nil, &jsonrpc.Error{Code: -32601, Message: "unknown method"}
	}
	c.out <- answer
	return nil
}
