//go:build unix

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// Node returns the folder of the real servers and clients, or skips.
func Node(t *testing.T) string {
	t.Helper()
	toolchain.Need(t, "node", toolchain.NodePackages)
	return filepath.Join(toolchain.Root(), ".ci", "node")
}

// A WantedCall is a call of a tool with one argument, and a part of what it must get.
type WantedCall struct{ Tool, Argument, Value, Want string }

func (c WantedCall) Args() map[string]string { return map[string]string{c.Argument: c.Value} }

// A Client is a kind of MCP client.
type Client interface {
	// Check lists the tools and makes the calls.
	Check(t *testing.T, calls []WantedCall)
}

// A CommandLine is wasmgate's own client.
type CommandLine struct{ *Place }

func (c CommandLine) Check(t *testing.T, calls []WantedCall) {
	list := c.Must("tools")
	for _, call := range calls {
		Holds(t, list, call.Tool)
		args, err := json.Marshal(call.Args())
		if err != nil {
			t.Fatal(err)
		}
		Holds(t, c.Must("call", call.Tool, string(args)), call.Want)
	}
}

// A GoSDK is a client of the Go SDK that speaks a revision over a transport.
type GoSDK struct {
	Revision  string
	Transport mcp.Transport
}

func (c GoSDK) Check(t *testing.T, calls []WantedCall) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(t.Context(), c.Transport, &mcp.ClientSessionOptions{ProtocolVersion: c.Revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != c.Revision {
		t.Errorf("speaks %s, want %s", got, c.Revision)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		if !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == call.Tool }) {
			t.Errorf("%s is not listed", call.Tool)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.Tool, Arguments: call.Args()})
		if err != nil {
			t.Fatal(err)
		}
		Holds(t, FirstText(res), call.Want)
	}
}

// FirstText returns the first text of a result; "" if it begins with something else.
func FirstText(res *mcp.CallToolResult) string {
	if len(res.Content) > 0 {
		if text, ok := res.Content[0].(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// Holds checks that a text contains another.
func Holds(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q is not in %.2000s", want, text)
	}
}
