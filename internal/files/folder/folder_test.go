package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/files/folder"
)

func write(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)); err != nil {
		t.Skip(err)
	}
}

// files returns what a walk visits, by the names below the root.
func files(t *testing.T, root string) (all []string) {
	t.Helper()
	if err := folder.Walk(root, func(path string, err error) error {
		rel, _ := filepath.Rel(root, path)
		all = append(all, filepath.ToSlash(rel))
		return err
	}); err != nil {
		t.Error(err)
	}
	return all
}

// Each name that a program leaves for a file of a person, and the same for a folder.
func TestStray(t *testing.T) {
	root := filepath.Join(t.TempDir(), ".policies.bak") // what a person names is no stray
	want := []string{"a.rego", "data..json", "sub/deep/b.rego", "sub/x#1.rego"}
	for _, name := range want {
		write(t, filepath.Join(root, name))
	}
	for _, base := range []string{"a.rego", "b.rego", "data.json", "new"} {
		names := []string{
			"." + base, "._" + base, ".#" + base, "." + base + ".swp", "." + base + ".swo", "." + base + ".swx", "." + base + ".un~", "#" + base + "#", base + "~", base + ".~1~",
			base + ".bak", base + ".BAK", base + ".swp", base + ".orig", base + ".rej", base + ".tmp", base + ".part", ".~lock." + base + "#", ".goutputstream-" + base, ".nfs0001" + base,
			".syncthing." + base + ".tmp",
		}
		for _, dir := range []string{"", "sub", "sub/deep"} {
			for _, name := range names {
				write(t, filepath.Join(root, dir, name))
			}
		}
	}
	for _, dir := range []string{"", "sub", "sub/deep"} {
		for _, name := range []string{".DS_Store", "Thumbs.db", "desktop.ini", "4913", ".directory", ".localized", ".gitignore", ".gitkeep"} {
			write(t, filepath.Join(root, dir, name))
		}
		for _, name := range []string{".git", ".svn", ".idea", ".vscode", "__MACOSX", ".Trash-0", ".AppleDouble", "..2026_01", "lost+found", ".ipynb_checkpoints", "old.bak"} {
			write(t, filepath.Join(root, dir, name, "c.rego"))
		}
		link(t, "user@host.123:456", filepath.Join(root, dir, ".#lock.rego")) // Emacs', which leads nowhere
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The files of a ConfigMap are links over ..data, and folders of it are links to folders there.
func TestConfigMap(t *testing.T) {
	root := t.TempDir()
	for _, version := range []string{"..2026_01", "..2026_02"} {
		for _, name := range []string{"a.rego", "sub/b.rego", "sub/deep/c.rego"} {
			write(t, filepath.Join(root, version, name))
		}
	}
	link(t, "..2026_01", filepath.Join(root, "..data"))
	link(t, filepath.Join("..data", "a.rego"), filepath.Join(root, "a.rego"))
	link(t, filepath.Join("..data", "sub"), filepath.Join(root, "sub"))
	want := []string{"a.rego", "sub/b.rego", "sub/deep/c.rego"}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	link(t, "..2026_02", filepath.Join(root, "..next"))
	if err := os.Rename(filepath.Join(root, "..next"), filepath.Join(root, "..data")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("after the swap (-want +got):\n%s", diff)
	}
}

// Links make no circle, and a folder is visited once.
func TestLinks(t *testing.T) {
	root := t.TempDir()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "o.rego"))
	write(t, filepath.Join(root, "dir", "a.rego"))
	write(t, filepath.Join(root, "..v", "sub", "b.rego"))
	link(t, root, filepath.Join(root, "self"))
	link(t, "dir", filepath.Join(root, "again"))
	link(t, outside, filepath.Join(root, "out"))
	link(t, filepath.Join(outside, "o.rego"), filepath.Join(root, "file.rego"))
	link(t, filepath.Join("..v", "sub"), filepath.Join(root, "one"))
	link(t, filepath.Join("..v", "sub"), filepath.Join(root, "two"))
	link(t, filepath.Join("..", "..", "..v", "sub"), filepath.Join(root, "..v", "sub", "up"))
	link(t, "nowhere", filepath.Join(root, "..v", "sub", ".#x"))
	if diff := cmp.Diff([]string{"dir/a.rego", "file.rego", "one/b.rego"}, files(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	through := filepath.Join(t.TempDir(), "link")
	link(t, root, through)
	if got := files(t, through); !slices.Contains(got, "dir/a.rego") {
		t.Errorf("through a link: %v", got)
	}
	if got := files(t, filepath.Join(root, "file.rego")); len(got) != 1 {
		t.Errorf("a file: %v", got)
	}
	link(t, "nowhere", filepath.Join(root, "lost.rego"))
	if err := folder.Walk(root, func(_ string, err error) error { return err }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link of a person that leads nowhere: %v", err)
	}
}
