package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// text reads a file of a log from a byte of its text on.
func text(tb testing.TB, name string, at int64) []byte {
	tb.Helper()
	r, err := audit.OpenText(name, at)
	if err != nil {
		tb.Fatalf("at %d: %v", at, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatalf("at %d: %v", at, err)
	}
	return b
}

// A packed file is read from any place on, by other programs too, and of it is read what is near
// that place alone: all before it may be damaged.
func TestPackedTextIsReadFromAnyPlace(t *testing.T) {
	unraced.Long(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate, o.Compress = time.Hour, true
	l := mustOpen(t, path, o)
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 128<<10) // which does not compress
	for range 10 {
		if _, err := random.Read(noise); err != nil {
			t.Fatal(err)
		}
		args, err := json.Marshal(noise)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(audit.Entry{Event: gate.Done, ID: "a", Arguments: args}); err != nil {
			t.Fatal(err)
		}
	}
	turned(t, l, "b")
	turned(t, l, "c") // the newest is not packed
	name := filepath.Join(filepath.Dir(path), "audit-000001.jsonl.gz")
	whole := text(t, name, 0)
	if len(whole) < 3<<19 {
		t.Fatalf("%d bytes", len(whole))
	}
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(z); err != nil || !bytes.Equal(all, whole) {
		t.Errorf("another program reads %d bytes: %v", len(all), err)
	}
	size := int64(len(whole))
	for _, at := range []int64{1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 19, size - 1, size} {
		if !bytes.Equal(text(t, name, at), whole[at:]) {
			t.Errorf("from %d on it is another text", at)
		}
	}
	clear(packed[64 : 500<<10]) // of the first member, but for its header
	if err := os.WriteFile(name, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	if at := size - 10; !bytes.Equal(text(t, name, at), whole[at:]) {
		t.Error("what comes before was read")
	}
	// One that has no such members is read nevertheless.
	var other bytes.Buffer
	w := gzip.NewWriter(&other)
	if _, err := w.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, other.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if at := size - 10; !bytes.Equal(text(t, name, at), whole[at:]) {
		t.Error("what another program has packed is another text")
	}
}
