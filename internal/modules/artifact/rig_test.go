package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociTarGzip  = "application/vnd.oci.image.layer.v1.tar+gzip"
	wasmType    = "application/wasm"
)

// code is a module: as for this package, the first bytes tell.
var code = []byte("\x00asm\x01\x00\x00\x00 and what a module is made of")

// A registry answers as the OCI distribution specification says, in memory.
type registry struct {
	*httptest.Server
	hook func(w http.ResponseWriter, r *http.Request) (done bool) // before each answer; may be nil

	mu        sync.Mutex
	blobs     map[string][]byte // by path below the host
	types     map[string]string
	requests  []string // method, host and path
	authorize []string // what came as Authorization, for each request
}

func newRegistry(t testing.TB) *registry {
	r := &registry{blobs: map[string][]byte{}, types: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// newRemote is a registry with HTTPS at example.com, and the transport to it.
func newRemote(t testing.TB) (*registry, *http.Transport) {
	r := &registry{blobs: map[string][]byte{}, types: map[string]string{}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	r.StartTLS()
	t.Cleanup(r.Close)
	tr := r.Client().Transport.(*http.Transport).Clone()
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "example.com:") {
			addr = r.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return r, tr
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req.Method+" "+req.Host+req.URL.Path)
	r.authorize = append(r.authorize, req.Header.Get("Authorization"))
	b, ok := r.blobs[req.URL.Path]
	kind := r.types[req.URL.Path]
	r.mu.Unlock()
	if r.hook != nil && r.hook(w, req) {
		return
	}
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.Write(b)
}

func (r *registry) host() string { return r.Listener.Addr().String() }

// seen returns the requests so far, and forgets them.
func (r *registry) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.requests
	r.requests = nil
	return s
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

const repository = "/v2/someone/tool/"

// put offers b in place of what digest stands for.
func (r *registry) put(kind, digest, mediaType string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := repository + kind + "/" + digest
	r.blobs[path], r.types[path] = b, mediaType
}

// object is JSON.
type object = map[string]any

// layer offers b, and returns its descriptor with the changes.
func (r *registry) layer(mediaType string, b []byte, changes ...object) object {
	r.put("blobs", "sha256:"+sum(b), "application/octet-stream", b)
	return descriptor(mediaType, b, changes...)
}

func descriptor(mediaType string, b []byte, changes ...object) object {
	d := object{"mediaType": mediaType, "digest": "sha256:" + sum(b), "size": len(b)}
	for _, c := range changes {
		maps.Copy(d, c)
	}
	return d
}

func image(layers ...object) object {
	return object{"schemaVersion": 2, "mediaType": ociManifest, "config": descriptor("application/vnd.oci.empty.v1+json", []byte("{}")), "layers": layers}
}

func index(manifests ...object) object {
	return object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": manifests}
}

// manifest offers m, and returns its descriptor with the changes.
func (r *registry) manifest(m object, changes ...object) object {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	mediaType, _ := m["mediaType"].(string)
	if mediaType == "" {
		mediaType = ociManifest
	}
	r.put("manifests", "sha256:"+sum(b), mediaType, b)
	return descriptor(mediaType, b, changes...)
}

// ref is the reference to a manifest at host.
func ref(host string, manifest object) string {
	return fmt.Sprintf("oci://%s/someone/tool@%s", host, manifest["digest"])
}

// offer offers an image of the layers, and returns the reference to it.
func (r *registry) offer(layers ...object) string {
	return ref(r.host(), r.manifest(image(layers...)))
}

// store makes a Store that reads no configuration file of the user.
func store(t testing.TB, cfg artifact.Config) *artifact.Store {
	t.Helper()
	if cfg.DockerConfig == "" {
		cfg.DockerConfig = filepath.Join(t.TempDir(), "none.json")
	}
	s, err := artifact.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fetch returns the module that ref stands for.
func fetch(t testing.TB, s *artifact.Store, ref string) artifact.Module {
	t.Helper()
	m, err := s.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Bytes, code) || m.Digest != sum(code) {
		t.Fatalf("module %q of digest %s", m.Bytes, m.Digest)
	}
	return m
}

// fails checks that ref is refused with words.
func fails(t testing.TB, s *artifact.Store, ref string, words ...string) {
	t.Helper()
	m, err := s.Fetch(t.Context(), ref)
	if err == nil || m.Bytes != nil || m.Digest != "" {
		t.Fatalf("module %q, %v; want an error", m.Bytes, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

// A file is an entry of an archive; without a type it is a regular one.
type file struct {
	name string
	data []byte
	kind byte
}

func tarred(files ...file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.kind, Mode: 0o644}
		switch f.kind {
		case 0:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.data))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = string(f.data)
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if h.Size > 0 {
			w.Write(f.data)
		}
	}
	w.Close()
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

// records keeps what is logged.
type records struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
