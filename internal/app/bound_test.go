package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asServer has the test's binary be a server on stdio.
const asServer = "be-a-server"

// newTimes returns a server with a tool.
func newTimes() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "times", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "now"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// TestBoundToFilesAlone: what an approval is bound to does not depend on the process that
// computes it: its environment, its folder, the place of the files, their modes, the order of
// starts. With other files it is different.
func TestBoundToFilesAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the server is found by a link")
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newTimes() }, nil))
	t.Cleanup(web.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const yaml = `version: 1
policy: {paths: [p]}
servers:
  web: {url: URL, headers: {X-Place: "env:BOUND_PLACE", X-Home: "${HOME}"}}
  by-path: {command: ./server, args: [` + asServer + `, "${HOME}"], env: {PLACE: "env:BOUND_PLACE", SAID: here}, cwd: work}
  by-file: {command: ./server, args: [` + asServer + `], env_file: their.env}
`
	bound := func(place string, mode os.FileMode, change func(string) string) map[string]string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), place)
		for _, name := range []string{"HOME", "TMPDIR", "BOUND_PLACE", "LANG", "HTTP_PROXY"} {
			t.Setenv(name, map[bool]string{true: dir, false: "http://127.0.0.1:9"}[name != "HTTP_PROXY"])
		}
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		for name, text := range map[string]string{
			"p/a.rego": "package wasmgate\n\nallow contains \"all\" if true\n", "p/b.rego": "package wasmgate\n\nask contains \"b\" if input.tool.server == \"web\"\n",
			"their.env": "TOLD=1\n", "work/x": "", "wasmgate.yaml": strings.Replace(yaml, "URL", web.URL, 1),
		} {
			write(t, filepath.Join(dir, name), change(text))
			if name == "their.env" { // which others may not read
				continue
			}
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		withCompiled(t, dir)
		if err := os.Symlink(self, filepath.Join(dir, "server")); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		a := start(t, reload(t, filepath.Join(dir, "wasmgate.yaml"), change(strings.Replace(yaml, "URL", web.URL, 1))))
		all, err := a.Bound(t.Context())
		if faulted := a.Overview.Status().Faulted(); err != nil || len(faulted) > 0 {
			t.Fatalf("not ready: %v, %v, %v", faulted, err, a.Overview.Status().Problems)
		}
		return all
	}
	as := func(text string) string { return text }
	first := bound("one", 0o600, as)
	for _, name := range []string{"web__now", "by-path__now", "by-file__now"} {
		if first[name] == "" {
			t.Fatalf("%s is not there: %v", name, first)
		}
	}
	if diff := cmp.Diff(first, bound("another", 0o640, as)); diff != "" {
		t.Errorf("the same files elsewhere (-first +second):\n%s", diff)
	}
	changed := strings.NewReplacer("TOLD=1", "TOLD=2", "SAID: here", "SAID: there", "X-Home", "X-House", `"b"`, `"c"`)
	for name, got := range bound("changed", 0o600, changed.Replace) {
		if got == first[name] && !strings.HasPrefix(name, "local__") {
			t.Errorf("with other files %s is bound to the same", name)
		}
	}
}
