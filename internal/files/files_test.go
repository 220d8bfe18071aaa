package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestReplace(t *testing.T) {
	for name, replace := range map[string]func(string, []byte, fs.FileMode) error{"not synced": Replace, "synced": ReplaceSynced} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			for _, text := range []string{"first", "second, which is longer"} {
				if err := replace(path, []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != text {
					t.Errorf("file has %q, want %q: %v", got, text, err)
				}
			}
			if mode := Mode(path, 0o600); runtime.GOOS != "windows" && mode != 0o640 {
				t.Errorf("its mode is %o", mode)
			}
			only(t, path)
		})
	}
	if mode := Mode(filepath.Join(t.TempDir(), "none"), 0o644); mode != 0o644 {
		t.Errorf("the mode of no file is %o", mode)
	}
}

// only fails if anything but the file at path is in its folder.
func only(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("the folder has %v: %v", entries, err)
	}
}

// If a file cannot be put in place, the old one stays, and nothing else is left.
func TestReplaceFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder")
	if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("text"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	only(t, path)
	if err := Replace(filepath.Join(path, "none", "file"), nil, 0o600); err == nil {
		t.Error("no error in a folder that is not there")
	}
}

// A reader gets one of the texts, whole, while others write.
func TestReplaceIsOneStep(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be replaced there")
	}
	path := filepath.Join(t.TempDir(), "file")
	texts := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<15)}
	if err := Replace(path, []byte(texts[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, text := range texts {
		writers.Go(func() {
			for range 50 {
				if err := Replace(path, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if got, err := os.ReadFile(path); err != nil || string(got) != texts[0] && string(got) != texts[1] {
			t.Fatalf("read %d bytes that nobody wrote: %v", len(got), err)
		}
	}
	writers.Wait()
	only(t, path)
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	for _, tt := range []struct {
		f    *os.File
		want bool
	}{{first, true}, {second, false}} {
		if ok, err := TryLock(tt.f); ok != tt.want || err != nil {
			t.Errorf("locked: %t, want %t: %v", ok, tt.want, err)
		}
	}
	first.Close()
	if ok, err := TryLock(second); !ok || err != nil {
		t.Errorf("not locked once the first was closed: %v", err)
	}
}

// Edits under the lock follow each other.
func TestLockBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var edits sync.WaitGroup
	for range 4 {
		edits.Go(func() {
			for range 5 {
				unlock, err := LockBeside(path)
				if err != nil {
					t.Error(err)
					return
				}
				old, _ := os.ReadFile(path) // none at first
				time.Sleep(time.Millisecond)
				if err := Replace(path, append(old, 'x'), 0o600); err != nil {
					t.Error(err)
				}
				unlock()
			}
		})
	}
	edits.Wait()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("x"), 20)) {
		t.Errorf("after 20 edits the file has %q: %v", got, err)
	}
}
