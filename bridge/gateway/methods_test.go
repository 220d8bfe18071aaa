package gateway_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/policy"
)

type sumParams struct {
	mcp.ParamsBase
	Of []int `json:"of"`
}

type sum struct {
	mcp.ResultBase
	Of []int `json:"of"`
}

func sumOf(_ context.Context, _ *mcp.ServerSession, p *sumParams) (*sum, error) {
	all := 0
	for _, n := range p.Of {
		all += n
	}
	return &sum{Of: []int{all}}, nil
}

// A client uses methods that MCP does not have as far as grants say, by their names or
// those of their servers.
func TestClientMethod(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	for _, method := range []string{"acme/sum", "acme/secret"} {
		if err := mcp.AddReceivingCustomMethod(s, method, sumOf); err != nil {
			t.Fatal(err)
		}
	}
	methods := []string{"acme/sum", "acme/secret", "acme/none"}
	g := start(t, gateway.Config{
		Servers: []options.Endpoint{{Server: "s", Dial: gateway.InProcess(s), Methods: methods}},
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{
			{To: []string{"local"}, Methods: []string{"acme/*"}, Except: []string{"acme/secret"}}, {To: []string{"local"}, Tools: []string{"*"}},
		}}},
		Recorder: new(records),
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := g.NewClient(gateway.ClientConfig{})
	for name, tt := range map[string]struct {
		method string
		params any
		want   gateway.ErrorCode
		sum    string
	}{
		"by its name":              {"acme/sum", map[string]any{"of": []int{1, 2}}, "", "[3]"},
		"by its server's":          {"s__acme/sum", map[string]any{"of": []int{1, 2}}, "", "[3]"},
		"without parameters":       {"acme/sum", nil, "", "[0]"},
		"by another server's":      {"t__acme/sum", nil, gateway.ToolNotFound, ""},
		"one that is not granted":  {"acme/secret", nil, gateway.ToolNotFound, ""},
		"one that nobody lists":    {"acme/other", nil, gateway.ToolNotFound, ""},
		"one that MCP has":         {"sampling/createMessage", nil, gateway.InvalidParameters, ""},
		"parameters that are none": {"acme/sum", []int{1}, gateway.InvalidParameters, ""},
		"with _meta among them":    {"acme/sum", map[string]any{"_meta": 1}, gateway.InvalidParameters, ""},
		"one that fails there":     {"acme/none", nil, gateway.ServerError, ""},
	} {
		res, err := c.Method(t.Context(), tt.method, tt.params)
		if code(err) != tt.want || res.Doc.Get("of").String() != tt.sum {
			t.Errorf("%s: %s, %v; want %q", name, res.Doc, err, tt.want)
		}
	}
}
