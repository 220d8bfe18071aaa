package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// goGuest builds a Go program for WASI; with mode c-shared it is a reactor.
func goGuest(t testing.TB, dir, mode string) []byte {
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

// webHost answers every request with its URL, but for those that it denies.
type webHost struct {
	denies string
	asked  []string
}

func (h *webHost) HTTP(_ context.Context, r sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	h.asked = append(h.asked, r.Method+" "+r.URL)
	if h.denies != "" && strings.Contains(r.URL, h.denies) {
		return sandbox.HTTPResponse{}, sandbox.ErrDenied
	}
	return sandbox.HTTPResponse{Status: 200, Header: map[string][]string{"X-Test": {"1"}}, Body: []byte("body of " + r.URL)}, nil
}

func (h *webHost) KV(context.Context, sandbox.KVRequest) (sandbox.KVResponse, error) {
	return sandbox.KVResponse{}, sandbox.ErrDenied
}

func (h *webHost) File(context.Context, string, string) error { return sandbox.ErrDenied }

// TestPlugins runs plug-ins of both conventions: they list their tools when they
// are loaded, and answer in instances that are reset.
func TestPlugins(t *testing.T) {
	if testing.Short() {
		t.Skip("builds plug-ins with the Go toolchain")
	}
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			m := compile(t, r, goGuest(t, filepath.Join("extism", "testdata", version), "c-shared"), sandbox.ModuleConfig{Name: version})
			tools := m.Tools()
			if len(tools) == 0 {
				t.Fatal("no tools")
			}
			for _, tool := range tools {
				t.Logf("tool %s: %s", tool.Name, tool.Description)
			}
			first, err := m.Call(t.Context(), tools[0].Name, []byte(`{"text":"hello"}`), sandbox.CallConfig{})
			if err != nil || !first.Whole || !strings.Contains(string(first.Output), `"content":[`) {
				t.Fatalf("got %s, %v, want a whole result", first.Output, err)
			}
			for range 20 {
				res, err := m.Call(t.Context(), tools[0].Name, []byte(`{"text":"hello"}`), sandbox.CallConfig{})
				if err != nil || string(res.Output) != string(first.Output) {
					t.Fatalf("got %s, %v, want %s again", res.Output, err, first.Output)
				}
			}
			if n, err := m.CheckIdle(); err != nil || n != 1 {
				t.Errorf("%d instances wait: %v", n, err)
			}
		})
	}
}
