package policyfiles_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
)

// A folder of policies is read and watched without what editors and systems leave in it, and as a
// ConfigMap, whose files change all at once by a link.
func TestFolderOfPolicies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"1", "2"} {
		write("..v"+version+"/a.rego", "package wasmgate\n# version "+version)
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	link("..v1", "..data")
	link(filepath.Join("..data", "a.rego"), "a.rego")
	files := policyfiles.New(&config.Config{File: filepath.Join(filepath.Dir(dir), "wasmgate.yaml"), Policy: config.Policy{Paths: []string{dir}}})
	read := func() (text map[string]string) {
		t.Helper()
		p, err := files.Load()
		if err != nil {
			t.Fatal(err)
		}
		text = make(map[string]string)
		if err := fs.WalkDir(p.Files, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var b []byte
				b, err = fs.ReadFile(p.Files, name)
				text[name] = string(b)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := map[string]string{"policies/a.rego": "package wasmgate\n# version 1"}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	state := files.State()
	for i, name := range []string{".#b.rego", "._a.rego", ".hidden.rego", ".git/x.rego", "#a.rego#", "a.rego~", ".a.rego.swp", "old.bak/a.rego", "__MACOSX/a.rego", ".DS_Store"} {
		write(name, fmt.Sprintf("not Rego %d", i))
	}
	link("user@host.123", ".#a.rego")
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("with what programs leave (-want +got):\n%s", diff)
	}
	if files.State() != state {
		t.Error("what programs leave is a change of the policy")
	}
	link("..v2", "..next")
	if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if files.State() == state {
		t.Error("the swap is not a change of the policy")
	}
	if diff := cmp.Diff(map[string]string{"policies/a.rego": "package wasmgate\n# version 2"}, read()); diff != "" {
		t.Errorf("after the swap (-want +got):\n%s", diff)
	}
}
