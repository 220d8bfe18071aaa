package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/policy/internal/archive"
)

var (
	contents = []string{".manifest", ".signatures.json", "a.rego", "sub/data.json"}
	// stray is what macOS, editors and Kubernetes add.
	stray = []string{
		"._.manifest", "._a.rego", ".DS_Store", "sub/._data.json", "__MACOSX/._a.rego", "__MACOSX/a.rego", ".#a.rego", "#a.rego#", "a.rego~", "a.rego.bak", ".a.rego.swp", "4913", ".git/a.rego",
		"..2026_01/a.rego", ".hidden/.manifest",
	}
)

func names(files archive.Files) (all []string) {
	for _, f := range files {
		all = append(all, f.Name)
	}
	return all
}

func TestStrayInArchive(t *testing.T) {
	for _, before := range []string{"", "./", "/"} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		w := tar.NewWriter(z)
		for _, name := range append(contents, stray...) {
			if err := w.WriteHeader(&tar.Header{Name: before + name, Mode: 0o600, Size: 1, Typeflag: tar.TypeReg}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		files, err := archive.Unpack(packed.Bytes())
		if diff := cmp.Diff(contents, names(files)); diff != "" || err != nil {
			t.Errorf("names with %q before them (-want +got):\n%s%v", before, diff, err)
		}
	}
}

// A bundle's folder, also one that is a ConfigMap: its files are links.
func TestStrayInFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range append(contents, stray...) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for to, name := range map[string]string{"..2026_01": "..data", filepath.Join("..data", "a.rego"): "b.rego", "user@host.1": ".#lock.rego"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	collect := func() (archive.Files, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		return archive.Collect(root.FS())
	}
	files, err := collect()
	if diff := cmp.Diff([]string{".manifest", ".signatures.json", "a.rego", "b.rego", "sub/data.json"}, names(files)); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("x"), 0o600), os.Symlink(secret, filepath.Join(dir, "out.rego"))); err != nil {
		t.Fatal(err)
	}
	if files, err := collect(); err == nil {
		t.Errorf("a link that leads out is followed: %v", names(files))
	}
}
