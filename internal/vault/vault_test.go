package vault

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, dir string) *Vault {
	t.Helper()
	return New(filepath.Join(dir, "vault"), func() ([]byte, error) { return KeyFile(filepath.Join(dir, "vault.key")) })
}

var (
	alice = Key{Kind: "login", Principal: "alice", Server: "jira"}
	bob   = Key{Kind: "login", Principal: "bob", Server: "jira"}
)

func get(t *testing.T, v *Vault, k Key, want string) {
	t.Helper()
	if got, err := v.Get(k); err != nil || string(got) != want {
		t.Errorf("%+v: %q, %v; want %q", k, got, err, want)
	}
}

// A value is there after a restart, under its own key, and goes when it is deleted.
func TestVault(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	for k, value := range map[Key]string{alice: "a", bob: "b", {Kind: "login", Tenant: "acme", Principal: "alice", Server: "jira"}: "c", {Kind: "client", Server: "x"}: "d"} {
		if err := errors.Join(v.Put(k, []byte("before")), v.Put(k, []byte(value))); err != nil {
			t.Fatal(err)
		}
	}
	v = open(t, dir)
	get(t, v, alice, "a")
	get(t, v, bob, "b")
	get(t, v, Key{Kind: "login", Tenant: "acme", Principal: "alice", Server: "jira"}, "c")
	all, err := v.List("login")
	if err != nil || len(all) != 3 || all[0] != alice || all[1] != bob || all[2].Tenant != "acme" {
		t.Errorf("list: %+v, %v", all, err)
	}
	if err := errors.Join(v.Delete(alice), v.Delete(alice)); err != nil {
		t.Error(err)
	}
	if _, err := v.Get(alice); !errors.Is(err, ErrNone) {
		t.Errorf("after it was deleted: %v", err)
	}
	get(t, v, bob, "b")
}

// Nothing in the folder reveals the value, and no one else may read the files.
func TestSealed(t *testing.T) {
	dir, canary := t.TempDir(), rand.Text()
	if err := open(t, dir).Put(alice, []byte(canary)); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		info, _ := d.Info()
		if runtime.GOOS != "windows" && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if d.Type().IsRegular() {
			raw, _ := os.ReadFile(path)
			if n++; bytes.Contains(raw, []byte(canary)) {
				t.Errorf("%s has the value", path)
			}
		}
		return err
	})
	if err != nil || n != 2 {
		t.Errorf("%d files: %v", n, err)
	}
}

// A row opens only under its own key: not in another row's place, not if its key was rewritten, not
// with another secret, and not if a byte has changed.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	if err := errors.Join(v.Put(alice, []byte("a")), v.Put(bob, []byte("b"))); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(v.rows.(folder).path(bob))
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"another's row": whole, "another's value": bytes.Replace(whole, []byte(`"bob"`), []byte(`"alice"`), 1),
		"cut": whole[:len(whole)/2], "empty": nil,
	} {
		if err := os.WriteFile(v.rows.(folder).path(alice), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if value, err := v.Get(alice); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %q, %v", name, value, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "vault.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).Get(bob); !errors.Is(err, ErrUnreadable) {
		t.Errorf("with another key: %v", err)
	}
	if _, err := os.Stat(v.rows.(folder).path(bob)); err != nil {
		t.Errorf("the row was not kept: %v", err)
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := KeyFile(path); err != nil {
		t.Fatal(err)
	}
	short := New(t.TempDir(), func() ([]byte, error) { return []byte("short"), nil })
	if err := short.Put(alice, nil); err == nil {
		t.Error("a short key was taken")
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := KeyFile(path); err == nil {
		t.Error("a key that others can read was taken")
	}
}

// Without its key nothing is kept or read, and the error says why.
func TestNoKey(t *testing.T) {
	away := errors.New("the keyring is locked")
	v := New(t.TempDir(), func() ([]byte, error) { return make([]byte, minKey), away })
	if err := v.Put(alice, nil); !errors.Is(err, away) {
		t.Errorf("kept without a key: %v", err)
	}
	dir := t.TempDir()
	if err := open(t, dir).Put(alice, []byte("a")); err != nil {
		t.Fatal(err)
	}
	v = New(filepath.Join(dir, "vault"), func() ([]byte, error) { return nil, away })
	if _, err := v.Get(alice); !errors.Is(err, ErrKey) || !errors.Is(err, away) {
		t.Errorf("read without a key: %v", err)
	}
}

// TestKeyLater: a key that is available only later, such as that of a keyring which is unlocked, opens
// the vault then. It is not asked for with each call.
func TestKeyLater(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Put(alice, []byte("a")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		asked, locked := 0, errors.New("the keyring is locked")
		v := New(filepath.Join(dir, "vault"), func() ([]byte, error) {
			if asked++; locked != nil {
				return nil, locked
			}
			return KeyFile(filepath.Join(dir, "vault.key"))
		})
		for range 3 {
			if _, err := v.Get(alice); !errors.Is(err, locked) {
				t.Errorf("locked: %v", err)
			}
		}
		if locked = nil; asked != 1 {
			t.Errorf("asked %d times at once", asked)
		}
		time.Sleep(retry)
		get(t, v, alice, "a")
		get(t, v, alice, "a")
		if asked != 2 {
			t.Errorf("asked %d times; want 2", asked)
		}
	})
	fails := true
	v := New(filepath.Join(dir, "vault"), func() ([]byte, error) {
		if fails {
			return nil, errors.New("locked")
		}
		return KeyFile(filepath.Join(dir, "vault.key"))
	})
	first := v.Ready()
	if fails = false; !errors.Is(first, ErrKey) || v.Ready() != nil {
		t.Errorf("who asks whether it is ready: %v", first)
	}
}

// A failure to read a file is an error, not the same as a row that does not exist or was deleted.
func TestBrokenFiles(t *testing.T) {
	v := open(t, t.TempDir())
	if all, err := v.List("login"); err != nil || all != nil {
		t.Errorf("no folder: %v, %v", all, err)
	}
	if err := v.Put(bob, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes", ".half.json"} { // neither is a row
		if err := os.Mkdir(filepath.Join(string(v.rows.(folder)), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := v.List("login"); err != nil || len(all) != 1 {
		t.Errorf("beside other files: %v, %v", all, err)
	}
	if err := os.MkdirAll(filepath.Join(v.rows.(folder).path(alice), "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get(alice); err == nil || errors.Is(err, ErrNone) || errors.Is(err, ErrUnreadable) {
		t.Errorf("a row that cannot be read: %v", err)
	}
	if err := v.Delete(alice); err == nil {
		t.Error("a row that is still there was deleted")
	}
	if _, err := v.List("login"); err == nil {
		t.Error("a row that cannot be read is in no list, and no error")
	}
	if _, err := New(v.rows.(folder).path(bob), nil).List("login"); err == nil {
		t.Error("a file was listed as a folder")
	}
}
