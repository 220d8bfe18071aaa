package kv_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
)

func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range all {
		paths = append(paths, filepath.Join(dir, f.Name()))
	}
	return paths
}

func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "kv")
	synctest.Test(t, func(t *testing.T) {
		other := options.ModuleNamespace{Tool: "notes"}
		s := open(t, dir, kv.Options{})
		set(t, s, ns, "keeps <é> \u2028", "value\x00\xff", 0)
		set(t, s, ns, "expires", "value", time.Hour)
		set(t, s, ns, "expires soon", "value", time.Minute)
		set(t, s, other, "keeps", "other", 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		time.Sleep(time.Minute)
		s = open(t, dir, kv.Options{})
		want(t, s, ns, "keeps <é> \u2028", "value\x00\xff")
		want(t, s, ns, "expires", "value")
		want(t, s, ns, "expires soon", "-")
		want(t, s, other, "keeps", "other")
		s.Close()

		time.Sleep(time.Hour)
		s = open(t, dir, kv.Options{})
		want(t, s, ns, "expires", "-")
	})
}

func TestFilesAreOnlyOurs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{})
	set(t, s, ns, "a", "1", 0)
	modes := map[string]os.FileMode{dir: 0o700, files(t, dir)[0]: 0o600}
	for path, mode := range modes {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), mode)
		}
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Open(dir, kv.Options{}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory that others may look into: %v", err)
	}
}

func TestEmptyNamespaceHasNoFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{})
	set(t, s, ns, "a", "1", 0)
	if n := len(files(t, dir)); n != 1 {
		t.Fatalf("%d files", n)
	}
	if _, err := s.Delete(t.Context(), ns, "a"); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Every operation reports a damaged file, which stays as it is, so that it can be repaired.
func TestCorruptFiles(t *testing.T) {
	tests := map[string]func(own, other []byte) []byte{
		"empty":                func(_, _ []byte) []byte { return nil },
		"cut off":              func(own, _ []byte) []byte { return own[:len(own)-2] },
		"longer":               func(own, _ []byte) []byte { return append(own, ' ') },
		"one bit is wrong":     func(own, _ []byte) []byte { own[len(own)-10] ^= 1; return own },
		"a wrong checksum":     func(own, _ []byte) []byte { own[0] ^= 1; return own },
		"zeros":                func(own, _ []byte) []byte { return make([]byte, len(own)) },
		"of another namespace": func(_, other []byte) []byte { return other },
		"of a later version": func(own, _ []byte) []byte {
			return sealed(bytes.Replace(own[65:], []byte(`"version":1`), []byte(`"version":2`), 1))
		},
		"no JSON": func(own, _ []byte) []byte { return sealed(own[66:]) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kv")
			s := open(t, dir, kv.Options{})
			set(t, s, ns, "a", "value", 0)
			path := files(t, dir)[0]
			set(t, s, options.ModuleNamespace{Tool: "other"}, "a", "value", 0)
			s.Close()
			i := 1 - slices.Index(files(t, dir), path)
			own, other := contents(t, path), contents(t, files(t, dir)[i])
			damaged := damage(bytes.Clone(own), other)
			write(t, path, damaged)

			s = open(t, dir, kv.Options{})
			_, _, get := s.Get(t.Context(), ns, "a")
			_, list := s.List(t.Context(), ns, "")
			_, remove := s.Delete(t.Context(), ns, "a")
			for op, err := range map[string]error{"get": get, "list": list, "delete": remove, "set": s.Set(t.Context(), ns, "a", nil, 0)} {
				if !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", op, err)
				}
			}
			want(t, s, options.ModuleNamespace{Tool: "other"}, "a", "value") // others are not affected
			if !bytes.Equal(contents(t, path), damaged) {
				t.Error("the file was changed")
			}
			write(t, path, own)
			want(t, s, ns, "a", "value") // without a restart
		})
	}
}

// sealed returns the contents of a file with that body and its checksum.
func sealed(body []byte) []byte { return fmt.Appendf(nil, "%x\n%s", sha256.Sum256(body), body) }

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{})
	set(t, s, ns, "a", "old", 0)
	path := files(t, dir)[0]
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := s.Set(t.Context(), ns, key, []byte("new"), 0); err == nil {
			t.Errorf("%s was set", key)
		}
	}
	if found, err := s.Delete(t.Context(), ns, "a"); err == nil || found {
		t.Errorf("deleted: %v, %v", found, err)
	}
	want(t, s, ns, "a", "old")
	want(t, s, ns, "b", "-")
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestUnfinishedFilesAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{})
	set(t, s, ns, "a", "value", 0)
	s.Close()
	write(t, files(t, dir)[0]+".123.tmp", []byte("half"))
	s = open(t, dir, kv.Options{})
	want(t, s, ns, "a", "value")
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A namespace that is in a file can leave memory: a file that another program changes is read again only if
// its namespace was dropped.
func TestFewNamespacesStayInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{Loaded: 2})
	set(t, s, ns, "a", "1", 0)
	path := files(t, dir)[0]
	write(t, path, nil)
	for i := range 2 {
		want(t, s, ns, "a", "1")
		set(t, s, options.ModuleNamespace{Tool: fmt.Sprint(i)}, "a", "1", 0)
	}
	want(t, s, ns, "a", "1") // used more recently than the others
	set(t, s, options.ModuleNamespace{Tool: "0"}, "b", "1", 0)
	set(t, s, options.ModuleNamespace{Tool: "1"}, "b", "1", 0)
	if _, _, err := s.Get(t.Context(), ns, "a"); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("err = %v: it was not read again", err)
	}
}
