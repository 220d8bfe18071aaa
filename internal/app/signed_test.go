package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// silent is a WASI command that answers nothing.
var silent = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")

// carrying is it with a manifest of one tool.
func carrying(tool string) []byte {
	manifest := fmt.Sprintf(`{"tools":[{"name":%q,"inputSchema":{"type":"object"}}]}`, tool)
	section := "\x08wasmgate" + manifest
	return append(append([]byte{}, silent...), append([]byte{0, byte(len(section))}, section...)...)
}

// A signer signs as cosign does.
type signer struct {
	*ecdsa.PrivateKey
	t *testing.T
}

func newSigner(t *testing.T) signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, t}
}

func (s signer) public() (text, id string) {
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "sha256:" + hex.EncodeToString(sum[:])
}

func (s signer) sign(b []byte) string {
	sum := sha256.Sum256(b)
	sig, err := ecdsa.SignASN1(rand.Reader, s.PrivateKey, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(sig)
}

func (s signer) bundle(b []byte) string {
	return fmt.Sprintf(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":""}},"messageSignature":{"signature":%q}}`, s.sign(b))
}

// A registry holds what the OCI distribution specification names by path.
type registry struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
}

func newRegistry(t *testing.T) *registry {
	r := &registry{files: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		b, ok := r.files[req.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, req)
			return
		}
		switch {
		case strings.Contains(req.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		case strings.Contains(req.URL.Path, "/referrers/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if req.Method == http.MethodGet {
			w.Write(b)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) put(path string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files["/v2/someone/tool/"+path] = b
}

type object = map[string]any

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// blob offers b, and returns its descriptor with annotations.
func (r *registry) blob(kind string, b []byte, annotations object) object {
	r.put("blobs/"+digestOf(b), b)
	return object{"mediaType": kind, "digest": digestOf(b), "size": len(b), "annotations": annotations}
}

// image offers an image of layers, by its digest and under names.
func (r *registry) image(layers []object, more object, names ...string) []byte {
	all := object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers}
	all["config"] = r.blob("application/vnd.oci.empty.v1+json", []byte("{}"), nil)
	for k, v := range more {
		all[k] = v
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	for _, name := range append(names, digestOf(b)) {
		r.put("manifests/"+name, b)
	}
	return b
}

// signed puts signatures of an image next to it, as `cosign sign` does: a payload and its signature for
// each.
func (r *registry) signed(image []byte, pairs ...[2]string) {
	var layers []object
	for _, p := range pairs {
		layers = append(layers, r.blob("application/vnd.dev.cosign.simplesigning.v1+json", []byte(p[0]), object{"dev.cosignproject.cosign/signature": p[1]}))
	}
	r.image(layers, nil, strings.Replace(digestOf(image), ":", "-", 1)+".sig")
}

func (r *registry) payload(image []byte, reference string) string {
	return fmt.Sprintf(`{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, reference, digestOf(image))
}

// modules starts a gateway on a configuration and returns how its modules are, with the
// tools that are offered.
func modules(t *testing.T, dir, yaml string) (errs map[string]string, offered string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	withCompiled(t, dir)
	a := start(t, reload(t, filepath.Join(dir, "wasmgate.yaml"), yaml))
	errs = map[string]string{}
	if err := a.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools, err := a.Inventory.Tools(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tools {
		offered += " " + one.Local
	}
	for _, m := range a.Overview.Status().Modules {
		errs[m.Module] = m.Error
	}
	for _, s := range a.Overview.Status().Servers {
		errs["server "+s.Server] = s.Error
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return errs, offered
}

const required = "version: 1\npolicy: {packs: [grants]}\ntools_verify: required\n"

// Modules run if the key of their entry has signed them, and policies know the signer.
func TestSignedFiles(t *testing.T) {
	unraced.Long(t)
	dir, s, other := t.TempDir(), newSigner(t), newSigner(t)
	public, id := s.public()
	wasm := carrying("signed")
	files := map[string]string{
		"cosign.pub": public, "signed.wasm": string(wasm), "signed.wasm.sigstore.json": s.bundle(wasm),
		"other.json": other.bundle(wasm), "empty.json": "", "bare.wasm": string(carrying("bare")), "private.pem": "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
		"p/p.rego": "package wasmgate\n\ndeny contains \"foreign\" if {\n\tinput.tool.server == \"local\"\n\tinput.tool.local_name in {\"signed\", \"bare\"}\n\tinput.tool.origin.signer != \"" + id + "\"\n}\n",
	}
	for _, name := range []string{"apart", "foreign", "both"} { // each with its manifest next to it
		files[name+".wasm"], files[name+".wasm.sigstore.json"] = string(silent), s.bundle(silent)
		files[name+".yaml"] = fmt.Sprintf("tools: [{name: %s, inputSchema: {type: object}}]\n", name)
	}
	files["foreign.yaml.sigstore.json"], files["both.yaml.sigstore.json"] = other.bundle([]byte(files["foreign.yaml"])), s.bundle([]byte(files["both.yaml"]))
	for _, name := range []string{"twice", "unlike"} {
		files[name+".wasm"], files[name+".wasm.sigstore.json"] = string(carrying("twice")), s.bundle(carrying("twice"))
		files[name+".yaml"] = fmt.Sprintf("tools: [{name: %s, inputSchema: {type: object}}]\n", name)
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	for name, tt := range map[string]struct{ tools, err string }{
		"signed":                {"m: {module: signed.wasm, verify: {key: cosign.pub}}", ""},
		"signed by another":     {"m: {module: signed.wasm, verify: {key: cosign.pub, bundle: other.json}}", "with another key"},
		"another file":          {"m: {module: bare.wasm, verify: {key: cosign.pub, bundle: signed.wasm.sigstore.json}}", "over other content"},
		"an empty bundle":       {"m: {module: signed.wasm, verify: {key: cosign.pub, bundle: empty.json}}", "not acceptable JSON"},
		"no bundle":             {"m: {module: bare.wasm, verify: {key: cosign.pub}}", "cosign sign-blob"},
		"a private key":         {"m: {module: signed.wasm, verify: {key: private.pem}}", "private"},
		"unsigned":              {"m: {module: bare.wasm}", "tools_verify: required lets only signed modules be run"},
		"unsigned, by a digest": {"m: {module: bare.wasm, sha256: " + strings.TrimPrefix(digestOf(carrying("bare")), "sha256:") + "}", "tools_verify: required"},
		"part of the program":   {`m: {module: "embedded:files"}`, ""},

		"a manifest next to it":                 {"m: {module: apart.wasm, verify: {key: cosign.pub}}", "the manifest " + filepath.Join(dir, "apart.yaml") + " is not signed by"},
		"a manifest signed by another":          {"m: {module: foreign.wasm, verify: {key: cosign.pub}}", "with another key"},
		"a manifest signed by the key":          {"m: {module: both.wasm, verify: {key: cosign.pub}}", ""},
		"a manifest that the module carries":    {"m: {module: twice.wasm, verify: {key: cosign.pub}}", ""},
		"a manifest other than the carried one": {"m: {module: unlike.wasm, verify: {key: cosign.pub}}", "the manifest " + filepath.Join(dir, "unlike.yaml") + " is not signed by"},
	} {
		t.Run(name, func(t *testing.T) {
			errs, offered := modules(t, dir, required+"tools:\n  "+tt.tools+"\n")
			if got := errs["m"]; (got == "") != (tt.err == "") || !strings.Contains(got, tt.err) {
				t.Errorf("%q, want %q", got, tt.err)
			}
			if tt.err != "" && (strings.Contains(offered, "signed") || strings.Contains(offered, "bare")) {
				t.Errorf("offered are %s", offered)
			}
		})
	}
	errs, _ := modules(t, dir, required+"servers:\n  s: {module: bare.wasm}\n")
	if !strings.Contains(errs["server s"], "tools_verify: required") {
		t.Errorf("a server: %q", errs["server s"])
	}
	_, offered := modules(t, dir, "version: 1\npolicy: {packs: [grants], paths: [p]}\ntools:\n  a: {module: signed.wasm, verify: {key: cosign.pub}}\n  b: {module: bare.wasm}\n")
	if !strings.Contains(offered, " signed") || strings.Contains(offered, " bare") {
		t.Errorf("a policy that looks at signers offers %s", offered)
	}
}

// Of artifacts the registry has the signatures, among those of others.
func TestSignedArtifacts(t *testing.T) {
	unraced.Long(t)
	dir, s, other := t.TempDir(), newSigner(t), newSigner(t)
	public, _ := s.public()
	write(t, filepath.Join(dir, "cosign.pub"), public)
	for name, tt := range map[string]struct {
		sign   func(r *registry, host string, image []byte)
		verify string
		err    string
	}{
		"signed": {func(r *registry, host string, image []byte) {
			p := r.payload(image, host+"/someone/tool")
			r.signed(image, [2]string{p, s.sign([]byte(p))})
		}, "", ""},
		"signed by another as well": {func(r *registry, host string, image []byte) {
			p := r.payload(image, host+"/someone/tool")
			r.signed(image, [2]string{p, other.sign([]byte(p))}, [2]string{p, s.sign([]byte(p))})
		}, "", ""},
		"signed by another": {func(r *registry, host string, image []byte) {
			p := r.payload(image, host+"/someone/tool")
			r.signed(image, [2]string{p, other.sign([]byte(p))})
		}, "", "with another key"},
		"a signature of another image": {func(r *registry, host string, image []byte) {
			p := r.payload([]byte("x"), host+"/someone/tool")
			r.signed(image, [2]string{p, s.sign([]byte(p))})
		}, "", "another artifact"},
		"a copy of another place": {func(r *registry, host string, image []byte) {
			p := r.payload(image, "example.com/first/tool")
			r.signed(image, [2]string{p, s.sign([]byte(p))})
		}, "", "signed_as"},
		"a copy that is meant": {func(r *registry, host string, image []byte) {
			p := r.payload(image, "example.com/first/tool")
			r.signed(image, [2]string{p, s.sign([]byte(p))})
		}, ", signed_as: example.com/first/tool", ""},
		"no signature": {func(*registry, string, []byte) {}, "", "no signature of it"},
		"a bundle that refers to it": {func(r *registry, host string, image []byte) {
			r.refer(image, s.statement(digestOf(image)))
		}, "", ""},
		"a bundle about another": {func(r *registry, host string, image []byte) {
			r.refer(image, s.statement(digestOf([]byte("x"))))
		}, "", "another artifact"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			host := r.Listener.Addr().String()
			image := r.image([]object{r.blob("application/wasm", carrying("far"), nil)}, nil)
			tt.sign(r, host, image)
			errs, offered := modules(t, dir, fmt.Sprintf("%stools:\n  m: {module: \"oci://%s/someone/tool@%s\", verify: {key: cosign.pub%s}}\n", required, host, digestOf(image), tt.verify))
			if got := errs["m"]; (got == "") != (tt.err == "") || !strings.Contains(got, tt.err) || (tt.err == "") != strings.Contains(offered, " far") {
				t.Errorf("%q, want %q; offered are %s", got, tt.err, offered)
			}
		})
	}
}

// A signature that was found needs no registry again, and no other key has it.
func TestSignatureIsKept(t *testing.T) {
	dir, s, other := t.TempDir(), newSigner(t), newSigner(t)
	withCompiled(t, dir)
	public, _ := s.public()
	foreign, _ := other.public()
	write(t, filepath.Join(dir, "cosign.pub"), public)
	write(t, filepath.Join(dir, "other.pub"), foreign)
	r := newRegistry(t)
	host := r.Listener.Addr().String()
	image := r.image([]object{r.blob("application/wasm", carrying("far"), nil)}, nil)
	p := r.payload(image, host+"/someone/tool")
	r.signed(image, [2]string{p, s.sign([]byte(p))})
	opened := func(key string) string {
		cfg := reload(t, filepath.Join(dir, "wasmgate.yaml"), fmt.Sprintf("version: 1\ntools:\n  m: {module: \"oci://%s/someone/tool@%s\", verify: {key: %s}}\n", host, digestOf(image), key))
		a := start(t, cfg)
		defer a.Close(t.Context())
		return a.Overview.Status().Modules[0].Error
	}
	if got := opened("cosign.pub"); got != "" {
		t.Fatal(got)
	}
	r.Close()
	if got := opened("cosign.pub"); got != "" {
		t.Errorf("without its registry: %s", got)
	}
	if got := opened("other.pub"); got == "" {
		t.Error("another key has the signature that was kept")
	}
}

// statement is a bundle of a signed statement about a digest.
func (s signer) statement(digest string) []byte {
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1"}`, strings.TrimPrefix(digest, "sha256:"))
	const kind = "application/vnd.in-toto+json"
	sig := s.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload))
	return fmt.Appendf(nil, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":""}},"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`,
		base64.StdEncoding.EncodeToString([]byte(payload)), kind, sig)
}

// refer offers a bundle as a referrer of an image.
func (r *registry) refer(image, bundle []byte) {
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	subject := object{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digestOf(image), "size": len(image)}
	m := r.image([]object{r.blob(kind, bundle, nil)}, object{"artifactType": kind, "subject": subject})
	b, err := json.Marshal(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []object{
		{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digestOf(m), "size": len(m), "artifactType": kind},
	}})
	if err != nil {
		panic(err)
	}
	r.put("referrers/"+digestOf(image), b)
}

// A new requirement of signatures holds from the next reading of the configuration on, also for a
// module that runs, but not for one in development.
func TestSignedReload(t *testing.T) {
	dir := t.TempDir()
	withCompiled(t, dir)
	write(t, filepath.Join(dir, "bare.wasm"), string(carrying("bare")))
	file := filepath.Join(dir, "wasmgate.yaml")
	const tools = "tools:\n  m: {module: bare.wasm}\n"
	cfg := reload(t, file, "version: 1\n"+tools)
	a := start(t, cfg)
	failed := func(a *app.App) string { return a.Overview.Status().Modules[0].Error }
	if err := a.Connect(t.Context()); err != nil || failed(a) != "" {
		t.Fatal(err, failed(a))
	}
	write(t, file, "version: 1\ntools_verify: required\n"+tools)
	if err := a.Reread(t.Context()); err != nil || !strings.Contains(failed(a), "tools_verify: required") {
		t.Errorf("%v, %q", err, failed(a))
	}
	other := load(t, "version: 1\ntools_verify: required\n")
	if err := other.Develop(filepath.Join(dir, "bare.wasm")); err != nil {
		t.Fatal(err)
	}
	if got := failed(start(t, other)); !strings.Contains(got, "in development") {
		t.Errorf("in development: %q", got)
	}
}
