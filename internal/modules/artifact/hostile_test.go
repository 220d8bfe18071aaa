package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

// What a registry sends in place of what the reference names is never used, kept,
// or a reason to ask for more.
func TestHostileRegistry(t *testing.T) {
	evil := []byte("\x00asm\x01\x00\x00\x00 of the same length as the module!!")[:len(code)]
	const sentOther = "the registry sent other bytes than the digest and size stand for"
	tests := map[string]struct {
		offer func(r *registry) object
		words string
	}{
		"a tampered layer": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			r.put("blobs", "sha256:"+sum(code), wasmType, evil)
			return m
		}, sentOther},
		"a tampered layer, in chunks": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			r.put("blobs", "sha256:"+sum(code), wasmType, evil)
			r.hook = chunkBlobs(r)
			return m
		}, sentOther},
		"a tampered manifest": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			other := r.manifest(image(r.layer(wasmType, evil)))
			r.put("manifests", m["digest"].(string), ociManifest, r.blobs[repository+"manifests/"+other["digest"].(string)])
			return m
		}, "digest"},
		"a tampered manifest whose header lies": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			other := r.manifest(image(r.layer(wasmType, evil)))
			r.put("manifests", m["digest"].(string), ociManifest, r.blobs[repository+"manifests/"+other["digest"].(string)])
			r.hook = func(w http.ResponseWriter, req *http.Request) bool {
				w.Header().Set("Docker-Content-Digest", m["digest"].(string))
				return false
			}
			return m
		}, sentOther},
		"a tampered manifest behind an index": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			other := r.manifest(image(r.layer(wasmType, evil)))
			r.put("manifests", m["digest"].(string), ociManifest, r.blobs[repository+"manifests/"+other["digest"].(string)])
			return r.manifest(index(m))
		}, "digest"},
		"a size that is too small": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"size": len(code) - 1})))
		}, "mismatch Content-Length"},
		"a size that is too small, in chunks": {func(r *registry) object {
			r.hook = chunkBlobs(r)
			return r.manifest(image(r.layer(wasmType, code, object{"size": len(code) - 1})))
		}, sentOther},
		"a size that is too large, in chunks": {func(r *registry) object {
			r.hook = chunkBlobs(r)
			return r.manifest(image(r.layer(wasmType, code, object{"size": len(code) + 1})))
		}, "expected content size"},
		"a size below zero": {func(r *registry) object { return r.manifest(image(r.layer(wasmType, code, object{"size": -1}))) }, "has -1 bytes"},
		"a size beyond the limit": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"size": 64<<20 + 1})))
		}, "at most 67108864"},
		"a size that is not a number": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"size": "many"})))
		}, "the artifact's manifest is not valid"},
		"a layer without end": {func(r *registry) object {
			r.hook = endless("/blobs/")
			return r.manifest(image(r.layer(wasmType, code)))
		}, sentOther},
		"a manifest without end": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			r.hook = endless("/manifests/")
			return m
		}, sentOther},
		"a manifest beyond the limit": {func(r *registry) object {
			m := image(r.layer(wasmType, code))
			m["annotations"] = object{"a": strings.Repeat("a", 4<<20)}
			return r.manifest(m)
		}, "manifest"},
		"a manifest beyond the limit, by its header": {func(r *registry) object {
			m := r.manifest(image(r.layer(wasmType, code)))
			r.hook = func(w http.ResponseWriter, req *http.Request) bool {
				w.Header().Set("Content-Type", ociManifest)
				w.Header().Set("Docker-Content-Digest", m["digest"].(string))
				w.Header().Set("Content-Length", "4194305")
				w.WriteHeader(http.StatusOK)
				return true
			}
			return m
		}, "has 4194305 bytes; at most 4194304"},
		"a digest that is a path": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"digest": "sha256:../../../../etc/passwd"})))
		}, "is not sha256: and 64 hex digits"},
		"a digest of another kind": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"digest": "sha512:" + strings.Repeat("0a", 64)})))
		}, "is not sha256: and 64 hex digits"},
		"an entry's digest that is a path": {func(r *registry) object {
			return r.manifest(index(r.manifest(image(r.layer(wasmType, code)), object{"digest": "../../tags/list"})))
		}, "is not sha256: and 64 hex digits"},
		"nothing": {func(r *registry) object { return object{"digest": someDigest} }, "the registry does not have it"},
		"no layer behind a manifest": {func(r *registry) object {
			return r.manifest(image(descriptor(wasmType, code)))
		}, "the registry does not have it"},
		"words for a terminal": {func(r *registry) object {
			r.hook = func(w http.ResponseWriter, req *http.Request) bool {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"errors":[{"code":"A","message":"\u001b[2J\nadmin: %s"}]}`, strings.Repeat("x", 5000))
				return true
			}
			return object{"digest": someDigest}
		}, "a: .[2J.admin: xxx"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			dir := filepath.Join(t.TempDir(), "cache")
			s := store(t, artifact.Config{Dir: dir})
			at := ref(r.host(), tt.offer(r))
			fails(t, s, at, tt.words)
			if _, err := s.Fetch(t.Context(), at); err == nil || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("the second time: %v", err)
			}
			for _, f := range files(t, dir) {
				b, err := os.ReadFile(filepath.Join(dir, f))
				if err != nil || f != "sha256-"+sum(b) {
					t.Errorf("cached %s: %q, %v", f, b, err)
				}
			}
		})
	}
}

// endless answers for paths with part, and does not stop.
func endless(part string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, part) || req.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Type", ociManifest)
		w.Write(code)
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return true
			}
		}
	}
}

// Manifests that do not lead to exactly one module say why, and what there was.
func TestManifestRefused(t *testing.T) {
	other := []byte("\x00asm other")
	linux := object{"platform": object{"architecture": "amd64", "os": "linux"}}
	arm := object{"platform": object{"architecture": "arm64", "os": "linux"}}
	wasip1 := object{"platform": object{"architecture": "wasm", "os": "wasip1"}}
	tests := map[string]struct {
		offer func(r *registry) object
		words []string
	}{
		"two modules": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, code, object{"annotations": object{"org.opencontainers.image.title": "a.wasm"}}), r.layer(wasmType, other)))
		}, []string{"2 layers with a WebAssembly module", "a.wasm", sum(code), sum(other)}},
		"no layer of a known type": {func(r *registry) object {
			return r.manifest(image(r.layer("application/pdf", code), r.layer("text/plain\x1b", other)))
		}, []string{"no layer of the artifact is a WebAssembly module", "application/pdf", `text/plain\x1b`}},
		"the only layer is something else": {func(r *registry) object {
			return r.manifest(image(r.layer("application/octet-stream", []byte("\x7fELF"))))
		}, []string{`does not begin with \0asm`}},
		"a layer of the right type is something else": {func(r *registry) object {
			return r.manifest(image(r.layer(wasmType, zipped(code))))
		}, []string{`does not begin with \0asm`}},
		"no layer": {func(r *registry) object { return r.manifest(image()) }, []string{"names no layer"}},
		"an artifact manifest": {func(r *registry) object {
			return r.manifest(object{"mediaType": "application/vnd.oci.artifact.manifest.v1+json", "blobs": []object{r.layer(wasmType, code)}})
		}, []string{"application/vnd.oci.artifact.manifest.v1+json", "not supported"}},
		"layers and manifests": {func(r *registry) object {
			m := image(r.layer(wasmType, code))
			m["manifests"] = []object{r.manifest(image(r.layer(wasmType, other)))}
			return r.manifest(m)
		}, []string{"both layers and manifests"}},
		"an index that calls itself an image": {func(r *registry) object {
			m := index(r.manifest(image(r.layer(wasmType, code))))
			m["mediaType"] = ociManifest
			return r.manifest(m)
		}, []string{"names no layer"}},
		"an index for two machines": {func(r *registry) object {
			return r.manifest(index(r.manifest(image(r.layer(wasmType, code)), linux), r.manifest(image(r.layer(wasmType, other)), arm)))
		}, []string{"2 manifests", "linux/amd64", "linux/arm64"}},
		"an index with two for wasm": {func(r *registry) object {
			return r.manifest(index(r.manifest(image(r.layer(wasmType, code)), wasip1), r.manifest(image(r.layer(wasmType, other)), wasip1)))
		}, []string{"2 manifests", "wasip1/wasm"}},
		"an index in an index": {func(r *registry) object {
			return r.manifest(index(r.manifest(index(r.manifest(image(r.layer(wasmType, code)))))))
		}, []string{"is an index itself"}},
		"an index of thousands": {func(r *registry) object {
			var all []object
			for range 5000 {
				all = append(all, descriptor(ociManifest, code))
			}
			return r.manifest(index(all...))
		}, []string{"5000 manifests", "and 4992 more"}},
		"an image of many layers": {func(r *registry) object {
			var all []object
			for i := range 9 {
				all = append(all, r.layer(ociTarGzip, []byte{byte(i)}))
			}
			return r.manifest(image(all...))
		}, []string{"9 layers"}},
		"an image packed by zstd": {func(r *registry) object {
			return r.manifest(image(r.layer("application/vnd.oci.image.layer.v1.tar+zstd", []byte("\x28\xb5\x2f\xfd"))))
		}, []string{`does not begin with \0asm`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			at := ref(r.host(), tt.offer(r))
			fails(t, store(t, artifact.Config{}), at, tt.words...)
		})
	}
}

// Archives are searched in memory. Only a regular file at the root counts, and
// nothing comes to lie anywhere but in the cache.
func TestArchive(t *testing.T) {
	plugin := file{name: "plugin.wasm", data: code}
	evil := []byte("\x00asm evil")
	whole := zipped(tarred(plugin))
	tests := map[string]struct {
		layers [][]byte // packed
		words  string   // of the error; "" means the module is found
	}{
		"among other things": {[][]byte{zipped(tarred(file{name: "etc/", kind: tar.TypeDir}, file{name: "etc/x.wasm", data: evil}, plugin, file{name: "README"}))}, ""},
		"beside names that climb": {[][]byte{zipped(tarred(file{name: "../plugin.wasm", data: evil}, file{name: "../../../../tmp/a.wasm", data: evil},
			file{name: `..\a.wasm`, data: evil}, file{name: "a/../b.wasm", data: evil}, file{name: "./../c.wasm", data: evil}, file{name: "/etc/d.wasm", data: evil}, plugin))}, ""},
		"beside links": {[][]byte{zipped(tarred(file{"a.wasm", []byte("/etc/passwd"), tar.TypeSymlink}, file{"b.wasm", []byte("plugin.wasm"), tar.TypeLink},
			file{"c.wasm", nil, tar.TypeFifo}, file{"d.wasm", nil, tar.TypeDir}, plugin))}, ""},
		"with / before its name":      {[][]byte{zipped(tarred(file{name: "/plugin.wasm", data: code}))}, ""},
		"only a link":                 {[][]byte{zipped(tarred(file{"plugin.wasm", []byte("../secret"), tar.TypeSymlink}))}, "has no *.wasm file at its root"},
		"only names that climb":       {[][]byte{zipped(tarred(file{name: "../plugin.wasm", data: code}))}, "has no *.wasm file at its root"},
		"nothing":                     {[][]byte{zipped(tarred())}, "has no *.wasm file at its root"},
		"two of them":                 {[][]byte{zipped(tarred(plugin, file{name: "b\n.wasm", data: evil}))}, `["plugin.wasm" "b\n.wasm"]`},
		"two of one name":             {[][]byte{zipped(tarred(plugin, file{name: "plugin.wasm", data: evil}))}, `["plugin.wasm" "plugin.wasm"]`},
		"replaced by a later layer":   {[][]byte{whole, zipped(tarred(file{name: "plugin.wasm", data: evil}))}, `["plugin.wasm" "plugin.wasm"]`},
		"removed by a later layer":    {[][]byte{whole, zipped(tarred(file{name: ".wh.plugin.wasm"}))}, `["plugin.wasm" ".wh.plugin.wasm"]`},
		"hundreds of them":            {[][]byte{zipped(tarred(many(300)...))}, "has 300 *.wasm files"},
		"something else by that name": {[][]byte{zipped(tarred(file{name: "plugin.wasm", data: []byte("#!/bin/sh")}))}, `does not begin with \0asm`},
		"cut off":                     {[][]byte{whole[:len(whole)/2]}, "unexpected EOF"},
		"without its checksum":        {[][]byte{whole[:len(whole)-8]}, "unexpected EOF"},
		"with bytes after it":         {[][]byte{append(bytes.Clone(whole), "more"...)}, "unpack: "},
		"not packed":                  {[][]byte{tarred(plugin)}, "gzip: invalid header"},
		"not an archive":              {[][]byte{zipped([]byte(strings.Repeat("text ", 1000)))}, "invalid tar header"},
		"cut off inside":              {[][]byte{zipped(tarred(plugin)[:520])}, "unexpected EOF"},
		"a bomb of one file":          {[][]byte{bomb("plugin.wasm", 64<<20+1)}, `"plugin.wasm" has 67108865 bytes`},
		"a bomb beside the file":      {[][]byte{bomb("data", 129<<20)}, "unpacks to more than 134217728 bytes"},
		"a bomb in two layers":        {[][]byte{bomb("data", 64<<20), bomb("more", 64<<20)}, "unpacks to more than 134217728 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			var layers []object
			for _, b := range tt.layers {
				layers = append(layers, r.layer(ociTarGzip, b))
			}
			at := r.offer(layers...)
			root := t.TempDir()
			s := store(t, artifact.Config{Dir: filepath.Join(root, "cache")})
			if tt.words == "" {
				fetch(t, s, at)
			} else {
				fails(t, s, at, tt.words)
			}
			if got := files(t, root); len(got) != 1 {
				t.Errorf("files %v", got)
			}
			for _, f := range files(t, filepath.Join(root, "cache")) {
				if !strings.HasPrefix(f, "sha256-") {
					t.Errorf("file %s in the cache", f)
				}
			}
		})
	}
}

func many(n int) []file {
	var all []file
	for i := range n {
		all = append(all, file{name: fmt.Sprint(i, ".wasm")})
	}
	return all
}

// bomb packs size zeros.
func bomb(name string, size int64) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size})
	for zeros := make([]byte, 1<<20); size > 0; size -= int64(len(zeros)) {
		w.Write(zeros[:min(size, int64(len(zeros)))])
	}
	w.Close()
	z.Close()
	return b.Bytes()
}

// Any bytes as a manifest or a layer, with digests that agree, are a module or an
// error; the cache makes a registry of them.
func FuzzContent(f *testing.F) {
	m := newRegistry(f)
	for _, o := range []object{image(m.layer(wasmType, code)), index(descriptor(ociManifest, code)), image(), {"mediaType": 1}} {
		d := m.manifest(o)
		f.Add(m.blobs[repository+"manifests/"+d["digest"].(string)], false)
	}
	for _, b := range [][]byte{tarred(file{name: "a.wasm", data: code}), tarred(file{"a.wasm", nil, tar.TypeSymlink}), []byte("noise"), nil} {
		f.Add(b, true)
	}
	dir := filepath.Join(f.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	s := store(f, artifact.Config{Dir: dir, Transport: offline{}})
	f.Fuzz(func(t *testing.T, b []byte, layer bool) {
		keep := func(b []byte) string {
			path := filepath.Join(dir, "sha256-"+sum(b))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(path) })
			return "oci://example.com/a@sha256:" + sum(b)
		}
		at := keep(b)
		if layer {
			at = keep(fmt.Appendf(nil, `{"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%d}]}`, sum(b), len(b)))
		}
		got, err := s.Fetch(t.Context(), at)
		if (err == nil) != bytes.HasPrefix(got.Bytes, code[:4]) || err == nil && got.Digest != sum(got.Bytes) || err != nil && len(err.Error()) > 4000 {
			t.Fatalf("module %q, %v", got.Bytes, err)
		}
		if err != nil && strings.Contains(err.Error(), "panic") {
			t.Fatal(err)
		}
	})
}

// offline sends nothing.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, http.ErrServerClosed
}
