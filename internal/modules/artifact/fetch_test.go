package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := store(t, artifact.Config{})
	path := write("a.wasm", code)
	if m := fetch(t, s, path); m.Source != path {
		t.Errorf("source %q", m.Source)
	}
	large := write("large.wasm", code)
	if err := os.Truncate(large, 64<<20+1); err != nil {
		t.Fatal(err)
	}
	fails(t, s, large, "has 67108865 bytes; at most 67108864 are allowed")
	fails(t, s, write("a.txt", []byte("text")), `is not a WASM module: it does not begin with \0asm`)
	fails(t, s, filepath.Join(dir, "none.wasm"), "none.wasm")
	fails(t, s, dir, "is not a regular file")
	if runtime.GOOS == "linux" {
		fails(t, s, "/dev/zero", "is not a regular file")
	}
}

// All the ways in which modules are published lead to the same bytes.
func TestFetch(t *testing.T) {
	plugin := zipped(tarred(file{name: "plugin.wasm", data: code}))
	tests := map[string]func(r *registry) object{
		"as the CNCF says": func(r *registry) object { return r.manifest(image(r.layer(wasmType, code))) },
		"as wasm-to-oci does": func(r *registry) object {
			return r.manifest(image(r.layer("application/vnd.wasm.content.layer.v1+wasm", code)))
		},
		"as Solo's WASM images": func(r *registry) object {
			return r.manifest(image(r.layer("application/vnd.module.wasm.content.layer.v1+wasm", code)))
		},
		"as a component": func(r *registry) object {
			return r.manifest(image(r.layer("application/vnd.bytecodealliance.wasm.component.layer.v0+wasm", code)))
		},
		"beside other layers": func(r *registry) object {
			return r.manifest(image(r.layer("text/markdown", []byte("# Read me")), r.layer(wasmType, code), r.layer(ociTarGzip, plugin)))
		},
		"as the only layer, of a type that says nothing": func(r *registry) object {
			return r.manifest(image(r.layer("application/octet-stream", code)))
		},
		"as a container image": func(r *registry) object { return r.manifest(image(r.layer(ociTarGzip, plugin))) },
		"as a container image of Docker": func(r *registry) object {
			m := image(r.layer("application/vnd.docker.image.rootfs.diff.tar.gzip", plugin))
			m["mediaType"] = "application/vnd.docker.distribution.manifest.v2+json"
			return r.manifest(m)
		},
		"as a container image of several layers": func(r *registry) object {
			return r.manifest(image(r.layer(ociTarGzip, zipped(tarred(file{name: "README.md"}))), r.layer("application/vnd.oci.image.layer.v1.tar", tarred(file{name: "./plugin.wasm", data: code}))))
		},
		"with a manifest that does not say its type": func(r *registry) object {
			m := image(r.layer(wasmType, code))
			delete(m, "mediaType")
			return r.manifest(m)
		},
		"in an index, for wasm": func(r *registry) object {
			other := r.manifest(image(r.layer(wasmType, []byte("\x00asm other"))), object{"platform": object{"architecture": "amd64", "os": "linux"}})
			return r.manifest(index(other, r.manifest(image(r.layer(wasmType, code)), object{"platform": object{"architecture": "wasm", "os": "wasip1"}})))
		},
		"in an index, for wasi": func(r *registry) object {
			other := r.manifest(image(r.layer(wasmType, []byte("\x00asm other"))), object{"platform": object{"architecture": "amd64", "os": "linux"}})
			return r.manifest(index(r.manifest(image(r.layer(wasmType, code)), object{"platform": object{"architecture": "unknown", "os": "wasi"}}), other))
		},
		"in an index, as the only image beside its attestation": func(r *registry) object {
			note := r.manifest(image(r.layer("application/vnd.in-toto+json", []byte("{}"))),
				object{"platform": object{"architecture": "unknown", "os": "unknown"}, "annotations": object{"vnd.docker.reference.type": "attestation-manifest"}})
			return r.manifest(index(note, r.manifest(image(r.layer(ociTarGzip, plugin)), object{"platform": object{"architecture": "amd64", "os": "linux"}})))
		},
		"in a list of Docker that does not say its type": func(r *registry) object {
			m := index(r.manifest(image(r.layer(wasmType, code))))
			delete(m, "mediaType")
			return r.manifest(m)
		},
	}
	for name, offer := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			at := ref(r.host(), offer(r))
			r.hook = chunkBlobs(r) // registries need not say how much they send
			if m := fetch(t, store(t, artifact.Config{}), at); !strings.HasPrefix(m.Source, at+", ") {
				t.Errorf("source %q", m.Source)
			}
			r.hook = nil
			fetch(t, store(t, artifact.Config{}), strings.Replace(at, "@", ":v1@", 1))
		})
	}
}

// chunkBlobs answers for blobs without Content-Length.
func chunkBlobs(r *registry) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, req *http.Request) bool {
		b, ok := r.blobs[req.URL.Path]
		if !ok || !strings.Contains(req.URL.Path, "/blobs/") {
			return false
		}
		w.Write(b[:1])
		w.(http.Flusher).Flush()
		w.Write(b[1:])
		return true
	}
}

// A registry that is elsewhere is asked by HTTPS.
func TestHTTPS(t *testing.T) {
	r, tr := newRemote(t)
	at := ref("example.com", r.manifest(image(r.layer(wasmType, code))))
	fetch(t, store(t, artifact.Config{Transport: tr}), at)
	if n := len(r.seen()); n != 2 {
		t.Errorf("%d requests", n)
	}
	// Its certificate is checked.
	tr = tr.Clone()
	tr.TLSClientConfig.RootCAs = nil
	fails(t, store(t, artifact.Config{Transport: tr}), at, "certificate")
}

func TestProgress(t *testing.T) {
	r := newRegistry(t)
	large := append(bytes.Clone(code), make([]byte, 4<<20)...) // more than is read at once
	at := r.offer(r.layer(wasmType, large))
	var done []int64
	s := store(t, artifact.Config{Dir: filepath.Join(t.TempDir(), "cache"), Progress: func(n, total int64) {
		if total != int64(len(large)) {
			t.Errorf("%d bytes of %d", n, total)
		}
		done = append(done, n)
	}})
	for range 2 { // the second time nothing arrives
		if m, err := s.Fetch(t.Context(), at); err != nil || !bytes.Equal(m.Bytes, large) {
			t.Fatal(len(m.Bytes), err)
		}
		if len(done) < 2 || !slices.IsSorted(done) || done[0] == 0 || done[len(done)-1] != int64(len(large)) {
			t.Errorf("progress %v", done)
		}
	}
}

func TestContext(t *testing.T) {
	r := newRegistry(t)
	begun := make(chan struct{}, 1)
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "1000000") // and then nothing more comes
		w.Write(code[:4])
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-req.Context().Done()
		return true
	}
	at := r.offer(r.layer(wasmType, code, object{"size": 1000000}))

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := store(t, artifact.Config{}).Fetch(ctx, at); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it waits: %v", err)
	}
	if len(r.seen()) != 2 {
		t.Error("it was not asked for the layer")
	}
	for _, s := range []string{at, "a.wasm"} {
		if _, err := store(t, artifact.Config{}).Fetch(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
	}
	if n := len(r.seen()); n != 0 {
		t.Errorf("%d requests after the end of the context", n)
	}

	_, err := store(t, artifact.Config{Timeout: 200 * time.Millisecond}).Fetch(t.Context(), at)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "took longer than 200ms") {
		t.Errorf("timeout: %v", err)
	}
	if _, err := artifact.New(artifact.Config{Timeout: -1}); err == nil {
		t.Error("a negative timeout is accepted")
	}
}

// What a registry cannot do at the moment is asked for again, a few times.
func TestRetry(t *testing.T) {
	unraced.Long(t)
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	first := true
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if first {
			first = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	fetch(t, store(t, artifact.Config{}), at)
	r.seen()
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	fails(t, store(t, artifact.Config{}), at, "503")
	if n := len(r.seen()); n != 3 {
		t.Errorf("%d requests", n)
	}
}
