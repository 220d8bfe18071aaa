package policy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/bundle"
)

// The files of a bundle that allows what its data lists, with a test of its own.
var acme = map[string]string{
	".manifest": `{"revision": "1.2.3", "roots": ["wasmgate", "acme"]}`,
	"data.json": `{"acme": {"tools": ["files__read"]}}`,
	"wasmgate/acme.rego": `package wasmgate

allow contains "acme lists it" if input.tool.name in data.acme.tools
`,
	"wasmgate/acme_test.rego": `package wasmgate.acme_test

import data.wasmgate

test_listed if "acme lists it" in wasmgate.allow with input as {"action": "tools/call", "tool": {"name": "files__read"}}
`,
}

// with returns the files with others in their place; "" removes one.
func with(files map[string]string, changes map[string]string) map[string]string {
	all := maps.Clone(files)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// archive packs files as OPA does.
func archive(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	var entries []tar.Header
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, tar.Header{Typeflag: tar.TypeReg, Name: "/" + name})
	}
	return tarball(tb, entries, func(h tar.Header) string { return files[strings.TrimPrefix(h.Name, "/")] })
}

func tarball(tb testing.TB, entries []tar.Header, text func(tar.Header) string) []byte {
	tb.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, h := range entries {
		data := ""
		if h.Typeflag == tar.TypeReg {
			data = text(h)
		}
		h.Mode, h.Size = 0o600, int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// A signer is a pair of keys.
type signer struct{ private, public string }

func newSigner(tb testing.TB) signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return signer{
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
	}
}

// sign adds the signatures that OPA makes for the files.
func (s signer) sign(tb testing.TB, files map[string]string, id string) map[string]string {
	tb.Helper()
	b, err := opa.NewReader(bytes.NewReader(archive(tb, files))).WithRegoVersion(ast.RegoV1).Read()
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.GenerateSignature(opa.NewSigningConfig(s.private, "ES256", ""), id, false); err != nil {
		tb.Fatal(err)
	}
	// OPA hashes all data as one file, and its manifest as it writes it.
	var out bytes.Buffer
	if err := opa.NewWriter(&out).DisableFormat(true).Write(b); err != nil {
		tb.Fatal(err)
	}
	return entries(tb, out.Bytes())
}

// entries is the inverse of archive.
func entries(tb testing.TB, archive []byte) map[string]string {
	tb.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string]string{}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err != nil {
			return files
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(r); err != nil {
			tb.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "/")] = text.String()
	}
}

func readBundle(tb testing.TB, files map[string]string, name string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Read(archive(tb, files), bundle.Options{Name: name})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func decide(tb testing.TB, e *policy.Engine, tool string) gate.Decision {
	tb.Helper()
	d, err := e.Authorize(tb.Context(), gate.Query{
		Call: &gate.Call{Action: gate.CallTool, Name: tool, Who: gate.Local(), Args: gate.MustDoc("{}")},
		Tool: newTool(tool),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestABundleDecides(t *testing.T) {
	dir := t.TempDir()
	for name, text := range acme {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := bundle.ReadFolder(os.DirFS(dir), bundle.Options{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	packed := readBundle(t, acme, "acme")
	again, err := packed.Archive()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := bundle.Read(again, bundle.Options{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	for how, b := range map[string]*bundle.Bundle{"an archive": packed, "a folder": folder, "an archive made of it": kept} {
		t.Run("read from "+how, func(t *testing.T) {
			if b.Revision() != "1.2.3" || b.Digest() != packed.Digest() {
				t.Errorf("revision %q, digest %s, want 1.2.3 and %s", b.Revision(), b.Digest(), packed.Digest())
			}
			e := load(t, nil, policy.Options{Packs: []string{}, Bundles: []*bundle.Bundle{b}})
			if d := decide(t, e, "files__read"); d.Effect != gate.Allow || d.Reasons[0] != "acme lists it" {
				t.Errorf("decided %+v, want allow by the bundle's data", d)
			}
			if d := decide(t, e, "files__write"); d.Effect != gate.Deny {
				t.Errorf("decided %+v, want deny", d)
			}
		})
	}
}

func TestABundleOfAnotherContentIsAnotherRevision(t *testing.T) {
	revision := func(files map[string]string) string {
		return load(t, nil, policy.Options{Bundles: []*bundle.Bundle{readBundle(t, files, "acme")}}).Revision()
	}
	before := revision(acme)
	if after := revision(with(acme, map[string]string{"data.json": `{"acme": {"tools": ["files__read", "x__y"]}}`})); after == before {
		t.Error("other data, and the same revision")
	}
	if again := revision(acme); again != before {
		t.Errorf("revision %s, want %s again", again, before)
	}
}

func TestSignaturesOfABundle(t *testing.T) {
	release, other := newSigner(t), newSigner(t)
	keys := func(k map[string]string) *bundle.Verification { return &bundle.Verification{Keys: k} }
	only := keys(map[string]string{"release": release.public})
	signed := release.sign(t, acme, "release")
	tests := map[string]struct {
		files  map[string]string
		verify *bundle.Verification
		want   string // part of the error; "" for none
	}{
		"signed with the key":                   {signed, only, ""},
		"signed with one of the keys":           {signed, keys(map[string]string{"release": release.public, "next": other.public}), ""},
		"not signed":                            {acme, only, "missing .signatures.json"},
		"signed with another key":               {other.sign(t, acme, "release"), only, "verify JWT signature"},
		"signed with another key of that name":  {other.sign(t, acme, "release"), keys(map[string]string{"release": release.public, "next": other.public}), "verify JWT signature"},
		"the key was revoked":                   {signed, keys(map[string]string{"next": other.public, "later": newSigner(t).public}), "release not found"},
		"all keys were revoked":                 {signed, keys(nil), "verify.keys is empty"},
		"no signatures in the file":             {with(signed, map[string]string{".signatures.json": `{"signatures": []}`}), only, "missing JWT"},
		"an empty file of signatures":           {with(signed, map[string]string{".signatures.json": `{}`}), only, "missing .signatures.json"},
		"a policy beside the signed ones":       {with(signed, map[string]string{"wasmgate/more.rego": "package wasmgate\n\nallow contains \"all\""}), only, "not included in bundle signature"},
		"data beside the signed ones":           {with(signed, map[string]string{"acme/more/data.json": `{}`}), only, "not included in bundle signature"},
		"a policy that was changed":             {with(signed, map[string]string{"wasmgate/acme.rego": "package wasmgate\n\nallow contains \"all\""}), only, "digest mismatch"},
		"data that was changed":                 {with(signed, map[string]string{"data.json": `{"acme": {"tools": ["x__y"]}}`}), only, "digest mismatch"},
		"a manifest that was changed":           {with(signed, map[string]string{".manifest": `{"revision": "9", "roots": ["wasmgate", "acme"]}`}), only, "digest mismatch"},
		"a signed policy that is missing":       {with(signed, map[string]string{"wasmgate/acme_test.rego": ""}), only, "not found in the target bundle"},
		"another scope":                         {signed, &bundle.Verification{Keys: only.Keys, Scope: "production"}, "scope mismatch"},
		"another algorithm":                     {signed, &bundle.Verification{Keys: only.Keys, Algorithm: "ES384"}, "bundle acme"},
		"an unknown algorithm":                  {signed, &bundle.Verification{Keys: only.Keys, Algorithm: "none"}, "bundle acme"},
		"a changed bundle that changes another": {with(signed, map[string]string{"patch.json": `{"data": [{"op": "upsert", "path": "/acme", "value": 1}]}`}), only, "delta"},
		"the private key":                       {signed, keys(map[string]string{"release": release.private}), "a public key"},
		"a key that is none":                    {signed, keys(map[string]string{"release": "secret"}), "not a key in PEM"},
		"signed, and nobody looks":              {signed, nil, "configure verify.keys"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.Read(archive(t, tt.files), bundle.Options{Name: "acme", Verify: tt.verify})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestABundleThatIsNoneIsRefused(t *testing.T) {
	unraced.Long(t)
	if unraced.Short() {
		t.Skip("one goroutine: the race detector finds nothing in it")
	}
	good := archive(t, acme)
	zeros := strings.Repeat("\x00", 80<<20)
	one := func(h tar.Header, text string) []byte {
		return tarball(t, []tar.Header{h}, func(tar.Header) string { return text })
	}
	regular := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	many := make([]tar.Header, 10_001)
	for i := range many {
		many[i] = regular(fmt.Sprintf("f%d", i))
	}
	tests := map[string]struct {
		archive []byte
		want    string
	}{
		"no archive":                       {[]byte("package wasmgate"), "not an archive of tar and gzip"},
		"nothing":                          {nil, "not an archive of tar and gzip"},
		"a truncated archive":              {good[:len(good)/2], "unexpected EOF"},
		"an archive without its sum":       {good[:len(good)-4], "unpack"},
		"an archive with a changed sum":    {append(slices.Clone(good[:len(good)-8]), 0, 0, 0, 0, 0, 0, 0, 0), "unpack"},
		"an archive that is too large":     {make([]byte, bundle.MaxBytes+1), "more than 16777216 bytes"},
		"a bomb in a file":                 {one(regular("data.json"), zeros), "more than 67108864 bytes"},
		"a bomb behind the archive":        {append(slices.Clone(good), gzipped(t, zeros)...), "more than 67108864 bytes"},
		"too many files":                   {tarball(t, many, func(tar.Header) string { return "" }), "more than 10000 files"},
		"a file above the root":            {one(regular("../acme.rego"), "package acme"), "not a valid path"},
		"a file above the root, in a path": {one(regular("a/../../acme.rego"), "package acme"), "not a valid path"},
		"an absolute file of two slashes":  {one(regular("//etc/acme.rego"), "package acme"), "not a valid path"},
		"a file by a backslash":            {one(regular(`..\acme.rego`), "package acme"), "not a valid path"},
		"a symbolic link":                  {one(tar.Header{Typeflag: tar.TypeSymlink, Name: "a.rego", Linkname: "/etc/passwd"}, ""), "a link"},
		"a hard link":                      {one(tar.Header{Typeflag: tar.TypeLink, Name: "a.rego", Linkname: "/etc/passwd"}, ""), "a link"},
		"a file twice":                     {tarball(t, []tar.Header{regular("/a.rego"), regular("a.rego")}, func(tar.Header) string { return "package a" }), "a.rego twice"},
		"a manifest that is not JSON":      {archive(t, with(acme, map[string]string{".manifest": "{"})), "manifest"},
		"data that is not JSON":            {archive(t, with(acme, map[string]string{"data.json": "{"})), "data.json"},
		"a policy that is not a Rego":      {archive(t, with(acme, map[string]string{"wasmgate/acme.rego": "package wasmgate\n\nallow if {"})), "acme.rego:3"},
		"a policy outside of the roots":    {archive(t, with(acme, map[string]string{"x.rego": "package other"})), "do not permit"},
		"data outside of the roots":        {archive(t, with(acme, map[string]string{"other/data.json": "1"})), "do not permit"},
		"roots that overlap":               {archive(t, with(acme, map[string]string{".manifest": `{"roots": ["acme", "acme/x", "wasmgate"]}`})), "overlapped roots"},
		"data in the place of the rules":   {archive(t, with(acme, map[string]string{"wasmgate/data.json": `{"decision": {"effect": "allow"}}`})), "belongs to the gateway"},
		"data in the place of the grants":  {archive(t, map[string]string{"grants/data.json": `[]`}), "belongs to the gateway"},
		"data in the place of the limits":  {archive(t, map[string]string{"ratelimit/data.json": `[]`}), "belongs to the gateway"},
		"no files at all":                  {archive(t, map[string]string{}), "neither rules nor data"},
		"a manifest alone":                 {archive(t, map[string]string{".manifest": `{"roots": ["acme"]}`}), "neither rules nor data"},
		"rules in files that are not read": {archive(t, map[string]string{"a.regO": "package wasmgate\n\ndeny contains \"x\""}), `not read: ["a.regO"]`},
		"no rules in its files":            {archive(t, map[string]string{"a.rego": "package wasmgate\n\n# deny contains \"x\""}), "neither rules nor data"},
		"tests alone":                      {archive(t, map[string]string{"a_test.rego": "package wasmgate.a_test\n\ntest_a if true"}), "neither rules nor data"},
		"data without anything in it":      {archive(t, map[string]string{"acme/data.json": `{"tools": {}}`}), "neither rules nor data"},
		"compiled policies":                {archive(t, map[string]string{"policy.wasm": "x"}), "only Rego is evaluated"},
		"a change of another bundle":       {archive(t, map[string]string{"patch.json": `{"data": [{"op": "upsert", "path": "/a", "value": 1}]}`}), "delta bundle"},
		"policies in Rego v0":              {archive(t, map[string]string{".manifest": `{"rego_version": 0}`, "a.rego": "package a\n\nx { true }"}), "not Rego v1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.Read(tt.archive, bundle.Options{Name: "acme"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "bundle acme: ") {
				t.Errorf("error %q does not name the bundle", err)
			}
		})
	}
}

func gzipped(tb testing.TB, text string) []byte {
	tb.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestAFolderWithALinkIsNoBundle(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "..", "elsewhere.rego"), filepath.Join(dir, "a.rego")); err != nil {
		t.Skip("this system makes no links:", err)
	}
	_, err := bundle.ReadFolder(os.DirFS(dir), bundle.Options{Name: "acme"})
	if err == nil || !strings.Contains(err.Error(), "a link") {
		t.Errorf("error %v, want one that names the link", err)
	}
}

func TestABundleThatDoesNotLoadIsRefused(t *testing.T) {
	unraced.Long(t)
	base := map[string]string{".manifest": `{"roots": ["base"]}`, "base.rego": "package base\n\nsize := 1"}
	tests := map[string]struct {
		bundles []map[string]string
		user    string
		want    string
	}{
		"a test of its own fails": {
			bundles: []map[string]string{with(acme, map[string]string{"data.json": `{"acme": {"tools": []}}`})},
			want:    "bundle://one/wasmgate/acme_test.rego:5: the bundle's own test data.wasmgate.acme_test.test_listed does not pass",
		},
		"a test of its own is an error": {
			bundles: []map[string]string{with(acme, map[string]string{"wasmgate/acme_test.rego": "package wasmgate.acme_test\n\ntest_x if to_number(\"x\") == 1"})},
			want:    "test_x does not pass",
		},
		"a test of its own does not compile": {
			bundles: []map[string]string{with(acme, map[string]string{"wasmgate/acme_test.rego": "package wasmgate.acme_test\n\ntest_x if nonsense(1)"})},
			want:    "bundle://one/wasmgate/acme_test.rego:3: ",
		},
		"it defines the decision": {
			bundles: []map[string]string{with(acme, map[string]string{"wasmgate/d.rego": "package wasmgate\n\ndecision := {\"effect\": \"allow\"}"})},
			want:    "bundle://one/wasmgate/d.rego:3: decision belongs to the gateway",
		},
		"it defines the decision in a test": {
			bundles: []map[string]string{with(acme, map[string]string{"wasmgate/d_test.rego": "package wasmgate\n\ndecision := {\"effect\": \"allow\"}"})},
			want:    "bundle://one/wasmgate/d_test.rego:3: decision belongs to the gateway",
		},
		"it reaches the network": {
			bundles: []map[string]string{with(acme, map[string]string{"wasmgate/d.rego": "package wasmgate\n\nallow contains \"x\" if http.send({\"url\": \"https://example.com\", \"method\": \"get\"}).status_code == 200"})},
			want:    "bundle://one/wasmgate/d.rego:3: undefined function http.send",
		},
		"its data is in the place of its rules": {
			bundles: []map[string]string{with(base, map[string]string{"base/data.json": `{"size": 2}`})},
			want:    "bundle://one/base.rego:3: ",
		},
		"two bundles claim the same": {
			bundles: []map[string]string{base, {".manifest": `{"roots": ["base/x"]}`, "x.rego": "package base.x\n\nsize := 1"}},
			want:    `the bundles one and two claim the same data: their roots "base" and "base/x" overlap; change the roots in one of the manifests`,
		},
		"a bundle without roots claims all": {
			bundles: []map[string]string{base, {"other.rego": "package other\n\nx := 1"}},
			want:    "the bundles one and two claim the same data",
		},
		"a file of the user's defines the same": {
			bundles: []map[string]string{base},
			user:    "package base\n\nsize := 2",
			want:    "data.base.size is defined in bundle://one/base.rego too",
		},
		"a function of a pack is defined again": {
			bundles: []map[string]string{{"w.rego": "package wasmgate\n\ncatalogued if true"}},
			user:    "package wasmgate\n\ncatalogued if input.x",
			want:    "data.wasmgate.catalogued is defined in bundle://one/w.rego too",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := policy.Options{}
			for i, files := range tt.bundles {
				o.Bundles = append(o.Bundles, readBundle(t, files, []string{"one", "two"}[i]))
			}
			var fsys fs.FS
			if tt.user != "" {
				fsys = fstest.MapFS{"user.rego": {Data: []byte(tt.user)}}
			}
			_, err := policy.Load(t.Context(), fsys, o)
			var compile *policy.CompileError
			if !errors.As(err, &compile) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a CompileError with %q", err, tt.want)
			}
		})
	}
}

func TestTwoBundlesOfOneNameAreRefused(t *testing.T) {
	b := readBundle(t, map[string]string{".manifest": `{"roots": ["a"]}`, "a.rego": "package a\n\nx := 1"}, "acme")
	c := readBundle(t, map[string]string{".manifest": `{"roots": ["b"]}`, "b.rego": "package b\n\nx := 1"}, "acme")
	if _, err := policy.Load(t.Context(), nil, policy.Options{Bundles: []*bundle.Bundle{b, c}}); err == nil || !strings.Contains(err.Error(), "called acme") {
		t.Errorf("error %v, want one that names both", err)
	}
}

// Several sources add to the sets, each in its own way.
func TestBundlesFilesAndPacksAddUp(t *testing.T) {
	unraced.Long(t)
	deny := readBundle(t, map[string]string{
		".manifest": `{"roots": ["wasmgate"]}`,
		"d.rego":    "package wasmgate\n\ndeny contains \"not by the second\" if input.tool.name == \"files__read\"",
	}, "second")
	o := policy.Options{Bundles: []*bundle.Bundle{readBundle(t, acme, "acme"), deny}}
	e := load(t, user(`allow contains "the user" if input.tool.server == "mail"`), o)
	if d := decide(t, e, "files__read"); d.Effect != gate.Deny || d.Reasons[0] != "not by the second" {
		t.Errorf("decided %+v, want the second bundle's deny", d)
	}
	if d := decide(t, e, "mail__send"); d.Effect != gate.Allow {
		t.Errorf("decided %+v, want the user's allow", d)
	}
	results, coverage, err := policy.Test(t.Context(), user("allow contains \"the user\" if input.tool.server == \"mail\""), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(results, func(r policy.TestResult) bool {
		return r.File == "bundle://acme/wasmgate/acme_test.rego" && r.Outcome == policy.Passed
	}) {
		t.Errorf("the bundle's test is not among %+v", results)
	}
	if !slices.ContainsFunc(coverage.Files, func(f policy.FileCoverage) bool {
		return f.File == "bundle://acme/wasmgate/acme.rego" && f.Covered == f.Lines
	}) {
		t.Errorf("the bundle's coverage is not among %+v", coverage.Files)
	}
}
