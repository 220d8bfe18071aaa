package gateway_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A web is an origin that shows what it was sent.
type web struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // Authorization of each request
}

func newWeb(t *testing.T) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.keys = append(w.keys, r.Header.Get("Authorization"))
		if r.URL.Path == "/v1/away" {
			http.Redirect(out, r, "/v2/secret", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(out, "%s %s %s with %s", r.Method, r.URL.Path, body, r.Header.Get("Authorization"))
	}))
	t.Cleanup(w.Close)
	return w
}

const asker = `{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}`

// TestHostCalls lets a guest in the sandbox ask for everything that there is, under
// grants, a policy about single host calls, and narrowings by the decision on the
// call; and looks at what the log says of it.
func TestHostCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest with the Go toolchain")
	}
	origin := newWeb(t)
	value := rand.Text()
	secret, err := dial.NewSecret("API", "Bearer "+value, origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"docs/a.txt": "a text", "docs/private/b.txt": "another", "out/.keep": "", "out/a/private/c.txt": ""} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	docs, out := filepath.Join(dir, "docs"), filepath.Join(dir, "out")
	manifest, err := sandbox.ParseManifest([]byte(asker))
	if err != nil {
		t.Fatal(err)
	}
	policy := granting("local__*")
	policy.Files = fstest.MapFS{"a.rego": {Data: []byte(fmt.Sprintf(`
		package wasmgate
		deny contains "no private files" if { input.action == "sandbox/file"; contains(input.request.path, "/private/") }
		deny contains "no admin" if { input.action == "sandbox/http"; startswith(input.request.path, "/v1/admin") }
		deny contains "no keys" if { input.action == "sandbox/http"; input.request.names[1] == "keys" }
		deny contains "no such key" if { input.action == "sandbox/kv"; input.request.key == "forbidden" }
		obligations contains {"sandbox": {"http": [], "dirs": [%q], "secrets": [], "kv": false}} if input.arguments.narrow == true
		obligations contains {"sandbox": {"fuel": 1000}} if input.arguments.starve == true
	`, filepath.ToSlash(out)))}}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var logged strings.Builder
	g := start(t, gateway.Config{
		Audit: path, AuditOptions: audit.Options{Node: "n"}, Policy: policy, Secrets: []dial.Secret{secret}, Log: slog.New(slog.NewTextHandler(&logged, nil)), CacheDir: compiled.Folder(t),
		Modules: []gateway.Module{{
			WASM:   buildGuest(t, filepath.Join("..", "..", "sandbox", "testdata", "asker"), "c-shared"),
			Config: sandbox.ModuleConfig{Name: "asker", Manifest: &manifest},
			Grant: gateway.Grant{
				HTTP:    []dial.Rule{{Origin: origin.URL, Methods: []string{"GET", "POST"}, Path: "/v1/", Private: true}},
				Dirs:    []sandbox.Dir{{Path: docs, As: "/docs"}, {Path: out, Write: true}},
				Secrets: []string{"API"}, KV: true, Config: map[string]string{"GREETING": "hello"},
			},
		}},
	})
	get := func(path, rest string) string {
		return fmt.Sprintf(`{"do":"http","request":{"url":"%s%s"%s`, origin.URL, path, rest)
	}
	const key = `,"headers":{"Authorization":["{{secret:API}}"]}}`
	steps := []struct{ name, args, want string }{
		{"a request", get("/v1/x", "}") + "}", `"body":"GET /v1/x  with "`},
		{"a request with a secret", get("/v1/x", key) + "}", `with {{secret:API}}`},
		{"a path that is not granted", get("/v2/x", "}") + "}", "denied"},
		{"a method that is not granted", get("/v1/x", `,"method":"DELETE"}`) + "}", "denied"},
		{"a redirect to what is not granted", get("/v1/away", "}") + "}", "denied"},
		{"a path that the policy denies, in another spelling", get("/v1/%61dmin/x", "}") + "}", "denied: the policy"},
		{"names that the policy denies, behind an escaped slash", get("/v1/keys%2fx", "}") + "}", "denied: the policy"},
		{"an address inside", `{"do":"http","request":{"url":"http://169.254.169.254/"}}`, "denied"},
		{"a secret that there is not", get("/v1/x", `,"headers":{"Authorization":["{{secret:OTHER}}"]}}`) + "}", "denied"},
		{"a request in a narrowed call", get("/v1/x", "}") + `,"narrow":true}`, "denied"},
		{"a value", `{"do":"kv","request":{"op":"set","key":"k","value":"v"}}`, `"found":false`},
		{"a value again", `{"do":"kv","request":{"op":"get","key":"k"}}`, `"value":"v"`},
		{"a key that the policy denies", `{"do":"kv","request":{"op":"get","key":"forbidden"}}`, "no such key"},
		{"a value in a narrowed call", `{"do":"kv","request":{"op":"get","key":"k"},"narrow":true}`, "may keep no values"},
		{"a file", fmt.Sprintf(`{"do":"read","path":%q}`, "/docs/a.txt"), "a text"},
		{"a file by the path that it has on the host", fmt.Sprintf(`{"do":"read","path":%q}`, filepath.Join(docs, "a.txt")), "open "},
		{"a file that the policy denies", fmt.Sprintf(`{"do":"read","path":%q}`, "/docs/private/b.txt"), "ermission denied"},
		{"a file outside", fmt.Sprintf(`{"do":"read","path":%q}`, path), "open "},
		{"a write where only reading is granted", fmt.Sprintf(`{"do":"write","path":%q,"text":"x"}`, "/docs/new"), "open "},
		{"a write", fmt.Sprintf(`{"do":"write","path":%q,"text":"written"}`, filepath.Join(out, "new")), "{}"},
		{"a read in a narrowed call", fmt.Sprintf(`{"do":"read","path":%q,"narrow":true}`, "/docs/a.txt"), "ermission denied"},
		{"a read of what is left", fmt.Sprintf(`{"do":"read","path":%q,"narrow":true}`, filepath.Join(out, "new")), "written"},
		{"metadata in a narrowed call", fmt.Sprintf(`{"do":"stat","path":%q,"narrow":true}`, "/docs/a.txt"), "ermission denied"},
		{"metadata of what is left", fmt.Sprintf(`{"do":"stat","path":%q,"narrow":true}`, filepath.Join(out, "new")), "{}"},
		{"a folder above a private one, renamed", fmt.Sprintf(`{"do":"rename","path":%q,"text":%q}`, filepath.Join(out, "a"), filepath.Join(out, "b")), "ermission denied"},
		{"its configuration", `{"do":"env"}`, `["GREETING=hello"]`},
		{"a log", `{"do":"log","text":"to\nthe log"}`, "{}"},
		{"too little fuel", `{"do":"env","starve":true}`, "trap_fuel"},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			res, err := call(g, "local__ask", s.args)
			got := res.Doc.Get("content").String()
			if err != nil {
				got = gate.Code(err) + ": " + err.Error()
			}
			if got = strings.ReplaceAll(got, `\"`, `"`); !strings.Contains(got, s.want) || strings.Contains(got, value) {
				t.Errorf("got %s\nwant %s", got, s.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"", "Bearer " + value, ""}, origin.keys); diff != "" {
		t.Errorf("the origin was sent these (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(out, "new")); err != nil || string(b) != "written" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if !strings.Contains(logged.String(), `text="to\nthe log"`) {
		t.Errorf("the log: %s", logged.String())
	}
	hostCallsAreRecorded(t, g, path, value)
}

// hostCallsAreRecorded checks that the log has each decision about a host call, with
// the call on whose behalf it was made, and no secret.
func hostCallsAreRecorded(t *testing.T, g *gateway.Gateway, path, secret string) {
	t.Helper()
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), secret) {
		t.Error("the log holds the secret")
	}
	count := map[string]int{}
	calls := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		doc := gate.MustDoc(strings.TrimSpace(line))
		switch doc.Get("event").Text() {
		case "granted":
			calls[doc.Get("id").Text()] = true
		case "host_call":
			count[doc.Get("action").Text()+" "+doc.Get("effect").Text()]++
			if parent := doc.Get("parent").Text(); !calls[parent] {
				t.Errorf("a host call of a call that is not there: %s", line)
			}
		}
	}
	want := map[string]int{
		"sandbox/http allow": 4, "sandbox/http deny": 8, "sandbox/secret allow": 1, "sandbox/kv allow": 2, "sandbox/kv deny": 2,
		"sandbox/file allow": 7, "sandbox/file deny": 4,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("host calls in the log (-want +got):\n%s", diff)
	}
}
