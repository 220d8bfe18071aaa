package documents_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/background/documents"
)

var secret = bytes.Repeat([]byte{7}, 32)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func open(t *testing.T, dir string, secret []byte) *documents.Store {
	t.Helper()
	s, err := documents.New(dir, secret, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep keeps texts, and returns when they are written.
func keep(t *testing.T, dir string, texts ...string) {
	t.Helper()
	s := open(t, dir, secret)
	for _, text := range texts {
		s.Keep(digest(text), []byte(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what waits is written all the same
	s.Run(ctx, 24*time.Hour)
}

// keepOn is keep in a folder with damage, and returns what was said of it.
func keepOn(t *testing.T, dir string, texts ...string) (said []string) {
	t.Helper()
	s, err := documents.New(dir, secret, func(err error) {
		if err != nil {
			said = append(said, err.Error())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		s.Keep(digest(text), []byte(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ctx, 24*time.Hour)
	return said
}

// No byte of a file that cannot be read is lost, whichever of its bits was changed: the day
// goes on in another file.
func TestDamageIsKept(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, `{"a":1}`, `{"b":2}`, `{"c":3}`)
	name := file(t, dir)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, bit := range []int{0, 8, 17, 24, 31, 40, 8 * len(whole) / 2} { // of the first length, a nonce, what is sealed
		changed := bytes.Clone(whole)
		changed[bit/8] ^= 1 << (bit % 8)
		folder := t.TempDir()
		first := filepath.Join(folder, filepath.Base(name))
		if err := os.WriteFile(first, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if said := keepOn(t, folder, `{"d":4}`); len(said) != 1 {
			t.Errorf("bit %d: said %q", bit, said)
		}
		if now, err := os.ReadFile(first); err != nil || !bytes.Equal(now, changed) {
			t.Errorf("bit %d: %d bytes of %d are left: %v", bit, len(now), len(changed), err)
		}
		if got, _ := open(t, folder, secret).Read(map[string]bool{digest(`{"d":4}`): true}, 0); len(got) != 1 {
			t.Errorf("bit %d: what came after is not kept", bit)
		}
	}
}

func file(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sealed"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names[len(names)-1]
}

// TestKeep: documents are found by their digests, once each, over restarts and a death in
// the middle of one; nothing of them can be read in the files.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "arguments")
	keep(t, dir, `{"a":"canary"}`, `{"b":2}`, `{"a":"canary"}`)
	before, err := os.ReadFile(file(t, dir))
	if err != nil || bytes.Contains(before, []byte("canary")) || bytes.Contains(before, []byte(digest(`{"b":2}`))) {
		t.Fatalf("%d bytes, %v: a document or its digest is there to be read", len(before), err)
	}
	keep(t, dir, `{"b":2}`)
	if now, _ := os.ReadFile(file(t, dir)); len(now) != len(before) {
		t.Error("a document is kept twice")
	}
	if err := os.WriteFile(file(t, dir), append(before, before[:40]...), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := keepOn(t, dir, `{"c":3}`)
	if len(broken) != 1 || !strings.Contains(broken[0], "the file is kept") {
		t.Errorf("said %q of a file that ends in the middle of a document", broken)
	}
	wanted := map[string]bool{digest(`{"a":"canary"}`): true, digest(`{"c":3}`): true, digest("none"): true}
	got, err := open(t, dir, secret).Read(wanted, 0)
	if err != nil || len(got) != 2 || string(got[digest(`{"a":"canary"}`)]) != `{"a":"canary"}` || string(got[digest(`{"c":3}`)]) != `{"c":3}` {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSealed: another secret opens nothing, and what was changed or moved to another day is
// an error.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, `{"a":1}`)
	wanted := map[string]bool{digest(`{"a":1}`): true}
	if got, err := open(t, dir, bytes.Repeat([]byte{8}, 32)).Read(wanted, 0); err == nil || len(got) > 0 {
		t.Errorf("with another secret: %q, %v", got, err)
	}
	name := file(t, dir)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := open(t, dir, secret).Read(wanted, 0); len(got) > 0 {
			t.Fatalf("byte %d was changed, and the document is still found", i)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "2020-01-01.sealed"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	if got, err := open(t, dir, secret).Read(wanted, 0); err == nil || len(got) > 0 {
		t.Errorf("moved to another day: %q, %v", got, err)
	}
}

// TestExpire removes files by the day in their names.
func TestExpire(t *testing.T) {
	dir := t.TempDir()
	for days := range 5 {
		name := time.Now().UTC().AddDate(0, 0, -days).Format("2006-01-02") + ".sealed"
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	open(t, dir, secret).Run(ctx, 48*time.Hour)
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 3 { // today, yesterday, and what ended less than two days ago
		t.Errorf("files %q", names)
	}
}

// TestFull never blocks, and says what is lost.
func TestFull(t *testing.T) {
	var said []string
	s, err := documents.New(t.TempDir(), secret, func(err error) { said = append(said, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1030 {
		text := fmt.Sprint(i)
		s.Keep(digest(text), []byte(text))
	}
	if len(said) != 6 || !strings.HasPrefix(said[5], "6 arguments or results") {
		t.Errorf("said %q", said)
	}
}
