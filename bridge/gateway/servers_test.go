package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// The log tells when so many calls of a server failed that no more are let through, and
// when they are again.
func TestCircuitsAreRecorded(t *testing.T) {
	unraced.Long(t)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	l := newLiar()
	var hangs atomic.Bool
	hangs.Store(true)
	l.server.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if hangs.Load() {
			<-ctx.Done()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	g := start(t, gateway.Config{
		Audit: file, AuditOptions: audit.Options{Node: "n"}, Policy: granting("s__*"),
		Servers: []options.Endpoint{{Server: "s", Dial: l.dial, CallTimeout: 200 * time.Millisecond}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := call(g, "s__t", `{}`); gate.Code(err) != "timeout" {
			t.Fatal(err)
		}
	}
	timelimit.Wait(t, "no call gets through an open circuit", func() bool { // but one that tries the server, now and then
		_, err := call(g, "s__t", `{}`)
		return gate.Code(err) == "not_connected"
	})
	hangs.Store(false)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := call(g, "s__t", `{}`); err == nil {
			break
		}
	}
	var got []string
	for e, err := range audit.Read(t.Context(), file, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Server {
			got = append(got, e.Server+" "+e.Code+" "+e.Error)
		}
	}
	want := []string{"s ok ", "s not_connected the circuit is open", "s ok "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The log tells when a server could be called and when it could not: once for
// each change, and with the reason.
func TestServersAreRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	l := newLiar(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)})
	var down atomic.Bool
	down.Store(true)
	g := start(t, gateway.Config{
		Audit: file, AuditOptions: audit.Options{Node: "n"}, Policy: granting("s__*"),
		Servers: []options.Endpoint{{Server: "s", Dial: func() (mcp.Transport, error) {
			if down.Load() {
				return nil, errors.New("the cable is out")
			}
			return l.dial()
		}}},
	})
	_ = g.Connect(t.Context()) // it is down
	down.Store(false)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := call(g, "s__t", `{}`); err == nil {
			break
		}
	}
	var got []string
	for e, err := range audit.Read(t.Context(), file, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Server {
			got = append(got, e.Server+" "+e.Code+" "+e.Error)
		}
	}
	want := []string{"s transport the cable is out", "s ok "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
