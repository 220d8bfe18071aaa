package artifact_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What was fetched once needs no network again, and lies in private files that
// are named by their digests.
func TestCache(t *testing.T) {
	r := newRegistry(t)
	layer := r.layer(ociTarGzip, zipped(tarred(file{name: "plugin.wasm", data: code})))
	inner := r.manifest(image(layer))
	outer := r.manifest(index(inner))
	dir := filepath.Join(t.TempDir(), "new", "cache")
	fetch(t, store(t, artifact.Config{Dir: dir}), ref(r.host(), outer))

	var want []string
	for _, d := range []object{layer, inner, outer} {
		want = append(want, strings.Replace(d["digest"].(string), ":", "-", 1))
	}
	slices.Sort(want)
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if runtime.GOOS != "windows" {
		modes := map[string]fs.FileMode{dir: 0o700}
		for _, name := range want {
			modes[filepath.Join(dir, name)] = 0o600
		}
		for path, mode := range modes {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	r.Close()
	var log records
	fetch(t, store(t, artifact.Config{Dir: dir, Log: log.logger()}), ref(r.host(), outer))
	if log.String() != "" {
		t.Errorf("logged %s", &log)
	}
}

// Files of the cache that are not what they were are fetched anew, and repaired;
// without a registry they are not used.
func TestCacheChanged(t *testing.T) {
	changes := map[string]func(path string) error{
		"a changed byte":   func(path string) error { return os.WriteFile(path, []byte("\x00asm evil"), 0o600) },
		"nothing in it":    func(path string) error { return os.Truncate(path, 0) },
		"too much":         func(path string) error { return os.Truncate(path, 65<<20) },
		"a folder instead": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link to another file": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("elsewhere", path), os.WriteFile(filepath.Join(filepath.Dir(path), "elsewhere"), []byte("\x00asm evil"), 0o600))
		},
	}
	for name, change := range changes {
		for _, kind := range []string{"manifest", "layer"} {
			t.Run(name+" as "+kind, func(t *testing.T) {
				r := newRegistry(t)
				layer := r.layer(wasmType, code)
				m := r.manifest(image(layer))
				at := ref(r.host(), m)
				dir := filepath.Join(t.TempDir(), "cache")
				fetch(t, store(t, artifact.Config{Dir: dir}), at)
				r.seen()
				path := filepath.Join(dir, "sha256-"+strings.TrimPrefix(map[string]object{"manifest": m, "layer": layer}[kind]["digest"].(string), "sha256:"))
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				var log records
				s := store(t, artifact.Config{Dir: dir, Log: log.logger()})
				fetch(t, s, at)
				if n := len(r.seen()); n != 1 || !strings.Contains(log.String(), "cached artifact unusable") || !strings.Contains(log.String(), path) {
					t.Errorf("%d requests; logged %s", n, &log)
				}
				if err := change(path); err != nil && name != "a folder instead" {
					t.Fatal(err)
				}
				r.Close()
				fails(t, s, at)
			})
		}
	}
}

// What is in the cache has to be what the manifest says, size included.
func TestCacheOtherSize(t *testing.T) {
	r := newRegistry(t)
	s := store(t, artifact.Config{Dir: filepath.Join(t.TempDir(), "cache")})
	fetch(t, s, r.offer(r.layer(wasmType, code)))
	fails(t, s, r.offer(r.layer(wasmType, code, object{"size": len(code) + 1})), "mismatch Content-Length")
}

func TestCacheOpenToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fails(t, store(t, artifact.Config{Dir: dir}), at, "run chmod 700 on it")
	if n := len(r.seen()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A cache that cannot be written costs time, and no module.
func TestCacheNotWritable(t *testing.T) {
	r := newRegistry(t)
	layer := r.layer(wasmType, code)
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.MkdirAll(filepath.Join(dir, "sha256-"+sum(code), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log records
	fetch(t, store(t, artifact.Config{Dir: dir, Log: log.logger()}), r.offer(layer))
	if !strings.Contains(log.String(), "artifact not cached") {
		t.Errorf("logged %s", &log)
	}
	for _, name := range files(t, dir) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s is left over", name)
		}
	}
}

// Several stores, as several processes, fetch into one cache while somebody
// damages it.
func TestHammer(t *testing.T) {
	r := newRegistry(t)
	layer := r.layer(wasmType, code)
	at := r.offer(layer)
	dir := filepath.Join(t.TempDir(), "cache")
	path := filepath.Join(dir, "sha256-"+sum(code))
	var all sync.WaitGroup
	for range 4 {
		s := store(t, artifact.Config{Dir: dir})
		for range 2 {
			all.Go(func() {
				for i := range 20 {
					if m, err := s.Fetch(t.Context(), at); err != nil || m.Digest != sum(code) {
						t.Errorf("module %q, %v", m.Bytes, err)
					}
					if i%5 == 0 {
						os.WriteFile(path, []byte("\x00asm evil"), 0o600)
					}
				}
			})
		}
	}
	all.Wait()
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("files %v", got)
	}
}
