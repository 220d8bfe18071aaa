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

func (h *webHost) KV(_ context.Context, r sandbox.KVRequest) (sandbox.KVResponse, error) {
	return sandbox.KVResponse{Found: r.Op == "get", Value: []byte("kept " + r.Key)}, nil
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
			wasm := goGuest(t, filepath.Join("internal", "extism", "testdata", version), "c-shared")
			m := compile(t, r, wasm, sandbox.ModuleConfig{Name: version})
			report, err := sandbox.Inspect(t.Context(), r, wasm, sandbox.ModuleConfig{})
			if err != nil || report.ABI != "extism" || len(report.Tools) == 0 {
				t.Errorf("inspected: %+v, %v", report, err)
			}
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

// TestPluginAsksItsHost lets a plug-in use Extism's HTTP, variables and
// configuration, as far as they are granted.
func TestPluginAsksItsHost(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plug-in with the Go toolchain")
	}
	wasm := goGuest(t, filepath.Join("internal", "extism", "testdata", "v1"), "c-shared")
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	all := sandbox.Grants{HTTP: true, KV: true, Config: map[string]string{"greeting": "hello"}}
	tests := map[string]struct {
		grants     sandbox.Grants
		tool, args string
		want       string
	}{
		"a request":                  {all, "fetch", `{"URL":"https://a.example/x"}`, "body of https://a.example/x 2"},
		"a request that is denied":   {all, "fetch", `{"URL":"https://denied.example/x"}`, "trap_denied"},
		"a request without a grant":  {sandbox.Grants{}, "fetch", `{"URL":"https://a.example/x"}`, "trap_denied"},
		"variables and a config":     {all, "greet", `{"Name":"Ada"}`, "hello Ada, after kept seenAda;"},
		"variables without a grant":  {sandbox.Grants{}, "greet", `{"Name":"Ada"}`, " Ada, after Ada;"},
		"a tool that reports errors": {all, "fail", `{}`, "no tool fail"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := compile(t, r, wasm, sandbox.ModuleConfig{Grants: tt.grants})
			res, err := m.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{Host: &webHost{denies: "denied"}})
			got := string(res.Output)
			if err != nil {
				got = code(err)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}
