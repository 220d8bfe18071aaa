package gateway_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/sandbox"
)

// buildGuest builds a Go program for WASI.
func buildGuest(t *testing.T, dir, mode string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode="+mode, "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestGuest runs an MCP server written in Go on the official SDK in the sandbox,
// behind the gate as any other server: listed, called, refused, started again
// when a request made it end.
func TestGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an MCP server with the Go toolchain")
	}
	var r records
	g := start(t, gateway.Config{
		Recorder: &r, Policy: granting("wasm__upper", "wasm__spin"), CacheDir: compiled.Folder(t),
		Servers: []options.Endpoint{{Server: "wasm"}, {Server: "broken"}},
		Guests: map[string]gateway.Guest{
			"wasm": {
				WASM:   buildGuest(t, filepath.Join("..", "..", "sandbox", "testdata", "mcpserver"), "exe"),
				Config: sandbox.ModuleConfig{Name: "wasm", Limits: sandbox.Limits{Timeout: 5 * time.Second}},
			},
			"broken": {WASM: []byte("no module")},
		},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Log(err) // of the server that is broken
	}
	offered, err := g.Operator().Tools(t.Context(), gate.Local())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range offered {
		names = append(names, tool.Name.String())
	}
	if want := "wasm__spin wasm__upper"; strings.Join(names, " ") != want {
		t.Errorf("tools %v, want %s", names, want)
	}
	for _, s := range g.Fleet().Status() {
		if want := map[string]status.Phase{"wasm": status.Ready, "broken": status.Faulted}[s.Server]; s.Phase != want {
			t.Errorf("server %s is %v: %v", s.Server, s.Phase, s.Fault)
		}
	}
	for round := range 2 {
		res, err := call(g, "wasm__upper", `{"text":"abc"}`)
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); { // it is being started again, or its first call took more than its limit
			time.Sleep(100 * time.Millisecond)
			res, err = call(g, "wasm__upper", `{"text":"abc"}`)
		}
		if err != nil || !strings.Contains(res.Doc.String(), "ABC") {
			t.Fatalf("round %d: %s, %v", round, res.Doc, err)
		}
		if _, err := call(g, "wasm__count", `{"text":"a"}`); err == nil {
			t.Error("a tool that is not granted answered")
		}
		if _, err := call(g, "wasm__spin", `{"text":"a"}`); err == nil {
			t.Error("a tool that spins answered")
		} else {
			t.Log(fmt.Sprint(err))
		}
	}
}
