//go:build unix

package modules

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A signer is a pair of keys in PEM.
type signer struct{ private, public string }

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return signer{text("PRIVATE KEY", private), text("PUBLIC KEY", public)}
}

// pack makes a bundle.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(files[name]))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sign makes a bundle with the signatures that OPA makes.
func (s signer) sign(t *testing.T, files map[string]string) []byte {
	t.Helper()
	b, err := bundle.NewReader(bytes.NewReader(pack(t, files))).WithRegoVersion(ast.RegoV1).Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.GenerateSignature(bundle.NewSigningConfig(s.private, "ES256", ""), "release", false); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := bundle.NewWriter(&out).DisableFormat(true).Write(b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A depot serves one bundle over HTTPS.
type depot struct {
	*httptest.Server
	now           atomic.Pointer[[]byte] // nil: the server is out of order
	full, notAnew atomic.Int64           // answers with the bundle, and that it is still the same
}

func newDepot(t *testing.T) *depot {
	d := new(depot)
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
	d.Config.ErrorLog = log.New(io.Discard, "", 0)
	d.StartTLS()
	t.Cleanup(d.Close)
	return d
}

func (d *depot) serve(w http.ResponseWriter, r *http.Request) {
	archive := d.now.Load()
	if archive == nil || r.Header.Get("Authorization") != "Bearer fetch" {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	sum := sha256.Sum256(*archive)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		d.notAnew.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	d.full.Add(1)
	_, _ = w.Write(*archive)
}

func (d *depot) put(archive []byte) { d.now.Store(&archive) }

// rules are the files of a bundle with a rule and a test of it.
func rules(revision, rule, test string) map[string]string {
	return map[string]string{
		".manifest":               fmt.Sprintf(`{"revision": %q, "roots": ["wasmgate", "acme"]}`, revision),
		"data.json":               `{"acme": {"tools": ["local__hash"]}}`,
		"wasmgate/acme.rego":      "package wasmgate\n\n" + rule + "\n",
		"wasmgate/acme_test.rego": "package wasmgate.acme_test\n\nimport data.wasmgate\n\ntest_it if " + test + " with input as {\"tool\": {\"name\": \"local__hash\"}}\n",
	}
}

const (
	allowHash = `allow contains "acme lists it" if input.tool.name in data.acme.tools`
	denyHash  = `deny contains "acme denies it" if input.tool.name in data.acme.tools`
)

// testBundles fetches a policy over HTTPS, changes it in every bad and good way,
// and starts again without its source.
func testBundles(t *testing.T, p *e2e.Program) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a process be told which certificates to trust (SSL_CERT_FILE)")
	}
	d, release, other := newDepot(t), newSigner(t), newSigner(t)
	pl := p.Place(t, "")
	pl.Write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw})))
	pl.Env = []string{"SSL_CERT_FILE=" + pl.File("ca.pem"), "SSL_CERT_DIR=" + pl.File("none"), "FETCH=fetch"}
	pl.Write("release.pem", release.public)
	pl.Write("other.pem", other.public)
	configure := func(private bool, key string) {
		pl.Write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy:
  packs: []
  timeout: 5s
  bundles:
    - url: %s/acme.tar.gz?version=latest
      headers: {Authorization: "Bearer ${FETCH}"}
      private: %v
      poll: 1s
      verify: {keys: {release: %s}}
`, d.URL, private, key))
	}
	first := func(want string) {
		t.Helper()
		if o := pl.Run("serve", "--listen", "127.0.0.1:0"); o.Code != 2 || !strings.Contains(o.Stderr, want) {
			t.Errorf("serve: exit %d, want 2 for %q\n%s", o.Code, want, o.Stderr)
		}
	}
	configure(true, "release.pem")
	first("the server answered with status 503; there is no copy of an earlier one in ")
	one := rules("1", allowHash, `"acme lists it" in wasmgate.allow`)
	d.put(release.sign(t, one))
	configure(false, "release.pem")
	first("127.0.0.1 is a loopback address; if it is meant, add private: true")
	configure(true, "other.pem")
	first("failed to verify JWT signature")

	configure(true, "release.pem")
	gw := pl.Serve()
	hashes := func() e2e.Outcome { return pl.Run("call", "local__hash", `{"text":"hello","algorithm":"sha256"}`) }
	if o := hashes(); o.Code != 0 {
		t.Fatalf("a call under the first bundle: %+v", o)
	}
	d.full.Store(0)
	same := d.notAnew.Load()
	timelimit.Wait(t, "it is asked for again, and not sent again", func() bool { return d.notAnew.Load() >= same+2 })
	if n := d.full.Load(); n != 0 {
		t.Errorf("the bundle was sent %d times although it is the same", n)
	}
	if s := pl.Must("status"); !strings.Contains(s, `/acme.tar.gz): revision "1", verified`) || strings.Contains(s, "version=latest") {
		t.Errorf("status does not tell of the bundle, or tells its query: %s", s)
	}
	refuseEach(t, pl, d, release, other, func() bool { return hashes().Code == 0 })

	if n := strings.Count(gw.Stderr.String(), "test_it does not pass"); n != 1 {
		t.Errorf("the last bad bundle was tried %d times, want once: nothing has changed since", n)
	}

	// A key that is taken away verifies nothing more.
	two := release.sign(t, rules("2", denyHash, `"acme denies it" in wasmgate.deny`))
	if err := os.Remove(pl.File("release.pem")); err != nil {
		t.Fatal(err)
	}
	d.put(two)
	timelimit.Wait(t, "status tells of the key", func() bool { return strings.Contains(pl.Must("status"), "key release: ") })
	if o := hashes(); o.Code != 0 {
		t.Errorf("under the last good bundle: %+v", o)
	}
	pl.Write("release.pem", release.public)
	swapUnderLoad(t, gw.URL, func() bool { return hashes().Code == 3 })
	if s := pl.Must("status"); strings.Contains(s, "problem: policy") {
		t.Errorf("status has a problem yet: %s", s)
	}
	copies, err := filepath.Glob(pl.File("state/bundles/*"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("kept copies: %q, %v; want one", copies, err)
	}
	if info, err := os.Stat(copies[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v, %v; want 0600", info.Mode(), err)
	}

	// Without its source it begins where it ended.
	gw.Signal(os.Interrupt)
	gw.Wait()
	d.now.Store(nil)
	gw = pl.Serve()
	if o := hashes(); o.Code != 3 || !strings.Contains(o.Stderr, "acme denies it") {
		t.Errorf("under the kept copy: %+v", o)
	}
	if s := pl.Must("status"); !strings.Contains(s, "the kept copy") || !strings.Contains(s, "status 503") {
		t.Errorf("status does not tell that the source is out of reach: %s", s)
	}
	d.put(release.sign(t, one))
	timelimit.Wait(t, "the source is in use again", func() bool { return hashes().Code == 0 })
	gw.Signal(os.Interrupt)
	gw.Wait()
	configure(true, "other.pem")
	first("the kept copy: bundle acme: failed to verify JWT signature")
	pl.Verify()
}

// refuseEach puts each kind of bad bundle into the depot: the last good one is still in use,
// and status, the audit log and the operator's log tell why.
func refuseEach(t *testing.T, pl *e2e.Place, d *depot, release, other signer, works func() bool) {
	t.Helper()
	good := rules("1", allowHash, `"acme lists it" in wasmgate.allow`)
	signed := release.sign(t, good)
	changed := func(name, text string) map[string]string {
		all := maps.Clone(good)
		all[name] = text
		return all
	}
	partly := unpack(t, signed)
	partly["wasmgate/more.rego"] = "package wasmgate\n\nallow contains \"all\""
	for _, bad := range []struct {
		what    string
		archive []byte
		want    string
	}{
		{"not signed", pack(t, good), "missing .signatures.json"},
		{"signed with another key", other.sign(t, good), "failed to verify JWT signature"},
		{"partly signed", pack(t, partly), "not included in bundle signature"},
		{"truncated", signed[:len(signed)/2], "unexpected EOF"},
		{"too large", make([]byte, 20<<20), "more than 16"},
		{"a bomb", pack(t, map[string]string{"data.json": strings.Repeat(" ", 65<<20)}), "more than 67108864 bytes"},
		{"a file outside of the root", pack(t, map[string]string{"../x.rego": "package x"}), "not a valid path"},
		{"not Rego", release.sign(t, changed("wasmgate/x.rego", "package wasmgate\n\nallow contains \"x\" if nonsense(1)")), "undefined function nonsense"},
		{"a decision of its own", release.sign(t, changed("wasmgate/x.rego", "package wasmgate\n\ndecision := 1")), "decision belongs to the gateway"},
		{"a test that fails", release.sign(t, rules("2", denyHash, `"acme lists it" in wasmgate.allow`)), "test_it does not pass"},
	} {
		d.put(bad.archive)
		timelimit.Wait(t, "status tells of a bundle that is "+bad.what, func() bool {
			var s struct {
				Bundles  []struct{ Error string }
				Problems []string
			}
			if err := json.Unmarshal([]byte(pl.Must("--json", "status")), &s); err != nil {
				t.Fatal(err)
			}
			return len(s.Bundles) == 1 && strings.Contains(s.Bundles[0].Error, bad.want) &&
				strings.Contains(strings.Join(s.Problems, "\n"), "the last good one is in use")
		})
		if !works() {
			t.Errorf("%s: the last good policy is not in use", bad.what)
		}
		if !slices.ContainsFunc(pl.Log(), func(e e2e.Logged) bool {
			return e.Event == "policy" && e.Code == "failed" && strings.Contains(e.Error, bad.want)
		}) {
			t.Errorf("%s: no event policy tells of it", bad.what)
		}
	}
}

func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "/")] = string(text)
	}
}

// swapUnderLoad makes calls from several clients until swapped. Each is allowed by
// the one policy or denied by the other: none is lost in between.
func swapUnderLoad(t *testing.T, url string, swapped func() bool) {
	t.Helper()
	var calls, wrong atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		w := e2e.MustWire(t, url)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := w.Call(t.Context(), "local__hash", `{"text":"hello","algorithm":"sha256"}`)
				calls.Add(1)
				// Denied whatever its arguments are, the tool is hidden.
				if err != nil || a.Error == nil && !strings.Contains(string(a.Result), "2cf24dba") || a.Error != nil && a.Error.Code != -32602 {
					wrong.Add(1)
				}
			}
		})
	}
	timelimit.Wait(t, "the new bundle is in use", swapped)
	timelimit.Wait(t, "a hundred calls were made", func() bool { return calls.Load() >= 100 })
	close(stop)
	wg.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d calls were neither allowed nor denied", wrong.Load(), calls.Load())
	}
}
