package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// BenchmarkList lists 1,000 tools of 20 servers over HTTP, as a client with a session
// does, under a policy that grants them all: at most 20 ms.
func BenchmarkList(b *testing.B) {
	const servers, each = 20, 50
	cfg := gateway.Config{Recorder: new(records), Policy: granting("s*")}
	for i := range servers {
		var tools []*mcp.Tool
		for j := range each {
			tools = append(tools, &mcp.Tool{
				Name: fmt.Sprintf("tool_%d", j), Description: "Looks something up, and says what it has found of it.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"What to look for."},"limit":{"type":"integer","minimum":1}},"required":["query"]}`),
			})
		}
		cfg.Servers = append(cfg.Servers, options.Endpoint{Server: fmt.Sprintf("s%d", i), Dial: newLiar(tools...).dial})
	}
	g, err := gateway.New(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(context.Background())
	if err := g.Connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	front := httptest.NewServer(g)
	defer front.Close()
	// A client that decodes no schemas: what the SDK's does of them takes longer than all else.
	session := ""
	post := func(body string) gate.Doc {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, front.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		resp, err := front.Client().Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
			session = s
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			b.Fatal(err)
		}
		if at := bytes.Index(answer, []byte("data: {")); at >= 0 {
			answer, _, _ = bytes.Cut(answer[at+len("data: "):], []byte("\n"))
		}
		doc, _ := gate.ParseDoc(answer) // that of a notification is empty
		return doc
	}
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for params := "{}"; params != ""; {
			page := post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + params + `}`).Get("result")
			for range page.Get("tools").Elements() {
				n++
			}
			params = ""
			if next := page.Get("nextCursor"); !next.IsZero() {
				params = `{"cursor":` + next.String() + `}`
			}
		}
		if n != servers*each {
			b.Fatalf("%d tools", n)
		}
	}
}
