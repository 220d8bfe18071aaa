//go:build unix

package gateway

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// mount puts files into a folder as the kubelet mounts them: each is a link over ..data, a link to a folder that is swapped by
// a rename. No one may write in it.
func mount(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(os.MkdirAll(folder, 0o755))
	fail(os.Chmod(folder, 0o755))
	version := ".." + rand.Text()
	fail(os.Mkdir(filepath.Join(folder, version), 0o755))
	for name, text := range files {
		fail(os.WriteFile(filepath.Join(folder, version, name), []byte(text), 0o444))
		if _, err := os.Lstat(filepath.Join(folder, name)); err != nil {
			fail(os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)))
		}
	}
	fail(os.Chmod(filepath.Join(folder, version), 0o555))
	fail(os.Symlink(version, filepath.Join(folder, "..next")))
	fail(os.Rename(filepath.Join(folder, "..next"), filepath.Join(folder, "..data")))
	fail(os.Chmod(folder, 0o555))
	t.Cleanup(func() { // so that it can be removed
		_ = os.Chmod(folder, 0o755)
		_ = os.Chmod(filepath.Join(folder, version), 0o755)
	})
}

// testMounted runs a gateway on a ConfigMap and a Secret: it follows their swaps, and writes in neither.
func testMounted(t *testing.T, p *e2e.Program) {
	var sent atomic.Value // the credential of the last call
	up := &e2e.Stub{Tools: `[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]`}
	up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
		sent.Store(r.Header.Get("Authorization"))
		e2e.AnswerFine(w, r, c)
	}
	url, pl := up.Start(t), p.Place(t, "")
	etc, secret := pl.File("etc"), pl.File("secret")
	first, second := rand.Text(), rand.Text()
	files := map[string]string{
		"wasmgate.yaml": fmt.Sprintf(`version: 1
policy: {packs: [grants], timeout: 5s, data: {grants: grants.yaml}}
servers: {up: {url: %q, headers: {Authorization: "Bearer ${file:%s/token}"}}}
state: %q
audit: {path: %q}
pins: {lockfile: %q}
console: {listen: "off"}
`, url, secret, pl.File("state"), pl.File("audit.jsonl"), pl.File("wasmgate.lock")),
		"grants.yaml": "- {to: [local], tools: [up__one]}\n",
	}
	mount(t, secret, map[string]string{"token": first + "\n"})
	mount(t, etc, files)
	mounted := &e2e.Place{T: t, Program: p, Dir: etc}
	gw := mounted.Serve()
	w := e2e.MustWire(t, gw.URL)
	if a := w.MustCall(t, "up__one", "{}"); a.Error != nil || sent.Load() != "Bearer "+first {
		t.Fatalf("a granted call: %+v", a.Error)
	}
	if a := w.MustCall(t, "up__two", "{}"); a.Error == nil {
		t.Fatal("a call without a grant is carried out")
	}

	taken := func(what string, is func() bool) {
		t.Helper()
		began := time.Now()
		timelimit.Wait(t, what, is)
		t.Logf("%s, after %v", what, time.Since(began).Round(10*time.Millisecond))
	}
	files["grants.yaml"] = "- {to: [local], tools: [up__one, up__two]}\n"
	mount(t, etc, files)
	taken("the grants are taken over", func() bool { return w.MustCall(t, "up__two", "{}").Error == nil })
	mount(t, secret, map[string]string{"token": second + "\n"})
	taken("the secret is taken over", func() bool {
		_, _ = w.Call(t.Context(), "up__one", "{}") // one may meet the server while it is connected again
		return sent.Load() == "Bearer "+second
	})
}
