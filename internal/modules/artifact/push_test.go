package artifact_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

// takes lets a registry be written to, as the OCI distribution specification says.
func (r *registry) takes(w http.ResponseWriter, req *http.Request) bool {
	body, _ := io.ReadAll(req.Body)
	digest := req.URL.Query().Get("digest")
	switch {
	case req.Method == http.MethodPost:
		w.Header().Set("Location", repository+"blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case req.Method == http.MethodPut && digest != "":
		r.put("blobs", digest, "application/octet-stream", body)
		w.WriteHeader(http.StatusCreated)
	case req.Method == http.MethodPut:
		digest = "sha256:" + sum(body)
		for _, name := range []string{digest, path.Base(req.URL.Path)} {
			r.put("manifests", name, req.Header.Get("Content-Type"), body)
		}
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
	default:
		return false
	}
	return true
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestResolve: a name that docker takes has the digest that its registry names now.
func TestResolve(t *testing.T) {
	r := newRegistry(t)
	r.hook = r.takes
	s := store(t, artifact.Config{})
	var last string
	for _, module := range [][]byte{code, append(slices.Clone(code), 0, 2, 1, 'a')} {
		to, err := artifact.ParseTag("oci://" + r.host() + "/someone/tool:latest")
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := s.Push(t.Context(), to, module)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/someone/tool:latest", "/someone/tool"} {
			if got, err := s.Resolve(t.Context(), r.host()+name); got != pushed.Digest || got == last || err != nil {
				t.Errorf("%s: %s, %v; want %s", name, got, err, pushed.Digest)
			}
		}
		last = pushed.Digest
	}
	for name, part := range map[string]string{"/someone/none:v1": "digest of", "/Some one": "repository", "/someone/tool@" + last: "oci://registry/repository:tag"} {
		if got, err := s.Resolve(t.Context(), r.host()+name); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var asked []string
	s = store(t, artifact.Config{Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
		asked = append(asked, q.URL.String())
		return nil, errors.New("no network")
	})})
	for name, want := range map[string]string{
		"weather": "https://registry-1.docker.io/v2/library/weather/manifests/latest", "acme/weather:1.2": "https://registry-1.docker.io/v2/acme/weather/manifests/1.2",
		"docker.io/weather:2": "https://registry-1.docker.io/v2/library/weather/manifests/2", "ghcr.io/acme/weather": "https://ghcr.io/v2/acme/weather/manifests/latest",
	} {
		asked = nil
		if _, err := s.Resolve(t.Context(), name); err == nil || len(asked) == 0 || asked[0] != want {
			t.Errorf("%s: asked %v, %v", name, asked, err)
		}
	}
}

// What is pushed is fetched by the reference that Push returns, and has it again when it is pushed again.
func TestPush(t *testing.T) {
	r := newRegistry(t)
	r.hook = r.takes
	s, err := artifact.New(artifact.Config{DockerConfig: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	to, err := artifact.ParseTag("oci://" + r.host() + "/someone/tool:v1")
	if err != nil {
		t.Fatal(err)
	}
	var pushed []string
	for range 2 {
		ref, err := s.Push(t.Context(), to, code)
		if err != nil {
			t.Fatal(err)
		}
		pushed = append(pushed, ref.String())
	}
	if pushed[0] != pushed[1] || !strings.Contains(pushed[0], "/someone/tool:v1@sha256:") {
		t.Errorf("pushed as %q", pushed)
	}
	if m, err := s.Fetch(t.Context(), pushed[0]); err != nil || !bytes.Equal(m.Bytes, code) {
		t.Errorf("fetched %q, %v", m.Bytes, err)
	}
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	r.seen()
	if _, err := s.Push(t.Context(), to, code); err == nil || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("refused: %v", err)
	}
	r.seen()
	if _, err := s.Push(t.Context(), to, []byte("no module")); err == nil || len(r.seen()) > 0 {
		t.Errorf("what is not a module: %v", err)
	}
}

func TestParseTag(t *testing.T) {
	if r, err := artifact.ParseTag("oci://ghcr.io/someone/tool:v1"); err != nil || !slices.Equal([]string{r.Registry, r.Repository, r.Tag, r.Digest}, []string{"ghcr.io", "someone/tool", "v1", ""}) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{
		"", "tool.wasm", "https://ghcr.io/someone/tool:v1", "oci://ghcr.io/someone/tool", "oci://ghcr.io:v1", "oci://ghcr.io/someone/tool:",
		"oci://ghcr.io/someone/tool:v1@sha256:" + strings.Repeat("0", 64), "oci://ghcr.io/Someone/tool:v1", "oci://ghcr.io/" + strings.Repeat("a", 2000) + ":v1",
	} {
		if r, err := artifact.ParseTag(bad); err == nil {
			t.Errorf("%q is %+v", bad, r)
		}
	}
}
