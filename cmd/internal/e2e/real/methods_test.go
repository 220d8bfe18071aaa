//go:build unix

package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testMethods has clients of both protocol revisions ask servers of both for a method that MCP does
// not have: as far as the configuration lists it and a grant allows it, which may change.
func testMethods(t *testing.T, p *e2e.Program) {
	p = &e2e.Program{Path: p.Plain, Plain: p.Plain, WASM: p.WASM} // the packages' tests look for races
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const listed = "methods: [tailor/price, tailor/secret]"
	servers := func(stdio string) string {
		return fmt.Sprintf("servers:\n  stdio: {command: %q, env: {WASMGATE_TEST_TAILOR: stdio}, %s}\n", self, stdio)
	}
	over := fmt.Sprintf("  sessions: {url: %q, %s}\n  stateless: {url: %q, %s}\n", startTailor(t, self, "sessions"), listed, startTailor(t, self, "stateless"), listed)
	pl := p.Place(t, servers(listed)+over)
	pl.Write("grants.yaml", "- {to: [\"*\"], methods: [\"tailor/p*\"], tools: [\"*\"]}\n")
	gw := pl.Serve()
	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio")...)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for front, transport := range map[string]mcp.Transport{
			"HTTP":  &mcp.StreamableClientTransport{Endpoint: gw.URL},
			"stdio": &mcp.CommandTransport{Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...)},
		} {
			c := methodClient(t, transport, revision)
			for _, server := range []string{"", "stdio__", "sessions__", "stateless__"} {
				if got := c.price(t, server+"tailor/price"); got != `coat 4200` {
					t.Errorf("%s over %s, %stailor/price: %s", revision, front, server, got)
				}
			}
			for _, method := range []string{"tailor/secret", "stateless__tailor/secret", "tailor/none"} {
				if got := c.price(t, method); got != "-32601 method not found" {
					t.Errorf("%s over %s, %s: %s", revision, front, method, got)
				}
			}
			c.Close()
		}
	}
	passed, refused := 0, 0
	for _, e := range pl.Log() {
		switch {
		case e.Event != "done":
		case e.Action == "tailor/price" && e.Code == "ok" && strings.HasSuffix(e.Tool, "__tailor/price"):
			passed++
		case e.Action == "tailor/secret" && e.Code == "refused_authorize":
			refused++
		}
	}
	if passed != 2*2*4 || refused != 2*2*2 {
		t.Errorf("the audit log has %d calls and %d refusals", passed, refused)
	}
	pl.Verify()
	if out := pl.Must("audit", "--format", "decision-log", "--last", "100"); !strings.Contains(out, `"method":{"name":"sessions__tailor/price","server":"sessions"}`) {
		t.Errorf("decisions: %.1000s", out)
	}
	if s := pl.Must("status"); !strings.Contains(s, "METHODS") || !strings.Contains(s, "note: sessions method tailor/price: offered as sessions__tailor/price") {
		t.Errorf("status: %s", s)
	}

	pl.Write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s}\n"+servers("methods: [tailor/secret]")+over)
	c := methodClient(t, &mcp.StreamableClientTransport{Endpoint: gw.URL}, "2025-11-25")
	timelimit.Wait(t, "the server has lost its method", func() bool { return c.price(t, "stdio__tailor/price") == "-32601 method not found" })
	if got := c.price(t, "tailor/price"); got != `coat 4200` {
		t.Errorf("of the next server: %s", got)
	}
	c.Close()
	pl.Write("bad.yaml", "version: 1\n"+servers("methods: [tools/call]"))
	if o := pl.Run("status", "--config", pl.File("bad.yaml")); o.Code != 2 || !strings.Contains(o.Stderr, `bad.yaml:3: servers.stdio.methods[0]: "tools/call" begins with tools/, as methods of MCP or of the gateway do`) {
		t.Errorf("a method of MCP: exit %d, %s", o.Code, o.Stderr)
	}
}

// A pricing is a client that asks for prices.
type pricing struct{ *mcp.ClientSession }

func methodClient(t *testing.T, transport mcp.Transport, revision string) pricing {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	for _, server := range []string{"", "stdio__", "sessions__", "stateless__"} {
		for _, method := range []string{"tailor/price", "tailor/secret", "tailor/none"} {
			if err := mcp.AddSendingCustomMethod[*askedPrice, *saidPrice](client, server+method); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	return pricing{c}
}

type askedPrice struct {
	mcp.ParamsBase
	Of string `json:"of"`
}

type saidPrice struct {
	mcp.ResultBase
	Of    string      `json:"of"`
	Cents json.Number `json:"cents"`
}

// price returns the answer to a method, or its error, on one line.
func (c pricing) price(t *testing.T, method string) string {
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	res, err := mcp.CallCustomMethod[*askedPrice, *saidPrice](ctx, c.ClientSession, method, &askedPrice{Of: "coat"})
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprintf("%d %s", rpc.Code, rpc.Message)
	}
	if err != nil {
		return err.Error()
	}
	return res.Of + " " + res.Cents.String()
}
