package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// files returns the names of a log's files.
func files(tb testing.TB, path string) (names []string) {
	tb.Helper()
	all, err := audit.Files(path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range all {
		names = append(names, filepath.Base(f))
	}
	return names
}

// turned writes a record and has the file renamed for its age.
func turned(tb testing.TB, l *audit.Log, id string) {
	tb.Helper()
	write(tb, l, id, 1)
	l.SetBegun(time.Now().Add(-2 * time.Hour))
	l.Tidy()
}

// TestRotateByTime: a file is renamed at an age, whether or not more is written, and one
// without records is not.
func TestRotateByTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate = time.Hour
	l := mustOpen(t, path, o)
	l.SetBegun(time.Now().Add(-2 * time.Hour))
	l.Tidy()
	if got := files(t, path); len(got) != 1 {
		t.Errorf("files %q before the first record", got)
	}
	turned(t, l, "a")
	if diff := cmp.Diff([]string{"audit-000001.jsonl"}, files(t, path)); diff != "" {
		t.Error(diff)
	}
	write(t, l, "b", 1)
	l.SetBegun(time.Now().Add(-2 * time.Hour))
	write(t, l, "c", 1)
	if diff := cmp.Diff([]string{"audit-000001.jsonl", "audit-000002.jsonl", "audit.jsonl"}, files(t, path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a-1", "b-1", "c-1"}, ids(t, path)); diff != "" {
		t.Error(diff)
	}
	verified(t, path)
	l.Close()
	old := time.Now().Add(-2 * time.Hour)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	at := strings.Index(first, `"time":"`) + len(`"time":"`)
	first = first[:at] + old.UTC().Format("2006-01-02T15:04:05.000000Z") + first[at+27:]
	if err := os.WriteFile(path, []byte(first+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, path, o) // the age is that of the first record, over a restart
	write(t, l, "d", 2)
	if got := files(t, path); len(got) != 4 {
		t.Errorf("files %q after a restart with an old file", got)
	}
}

// TestPack: packed files are read, verified and counted as before, by one who has not read
// them to their end, too.
func TestPack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate, o.Compress = time.Hour, true
	l := mustOpen(t, path, o)
	write(t, l, "x", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	read := make(chan string)
	done := make(chan error, 1)
	go func() {
		for e, err := range audit.Read(ctx, path, audit.Filter{Follow: true, Choose: func(e *audit.Entry) bool { return e.ID != "" }}) {
			if err != nil {
				done <- err
				return
			}
			read <- e.ID
		}
		done <- nil
	}()
	got = append(got, <-read) // and it waits in the middle of a file while that is packed
	want := []string{"x-1"}
	for i := range 5 {
		id := fmt.Sprint("p", i)
		write(t, l, id+"m", 1)
		turned(t, l, id)
		want = append(want, id+"m-1", id+"-1")
	}
	write(t, l, "last", 1)
	want = append(want, "last-1")
	l.Tidy()
	if diff := cmp.Diff([]string{"audit-000001.jsonl.gz", "audit-000002.jsonl.gz", "audit-000003.jsonl.gz", "audit-000004.jsonl.gz", "audit-000005.jsonl", "audit.jsonl"}, files(t, path)); diff != "" {
		t.Error(diff)
	}
	for len(got) < len(want) {
		select {
		case id := <-read:
			got = append(got, id)
		case err := <-done:
			t.Fatal(err, got)
		case <-time.After(time.Minute):
			t.Fatalf("a follower has read %q", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, ids(t, path)); diff != "" {
		t.Error(diff)
	}
	report := verified(t, path)
	if head := l.Head(); report.Last != head {
		t.Errorf("verified up to %v, head %v", report.Last, head)
	}
	first := filepath.Join(filepath.Dir(path), "audit-000001.jsonl.gz")
	f, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !audit.IsLog(bufio.NewReader(f)) {
		t.Error("a packed log is none")
	}
	// Any byte that is changed in a packed file shows.
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(first, b, 0o600); err != nil {
		t.Fatal(err)
	}
	all, _ := audit.Files(path)
	if _, err := audit.VerifyFiles(all, audit.Head{}); err == nil {
		t.Error("a changed packed file was verified")
	}
}

// TestPackDied: of a file that is there packed and unpacked the latter counts.
func TestPackDied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate = time.Hour
	l := mustOpen(t, path, o)
	for _, id := range []string{"a", "b", "c"} {
		turned(t, l, id)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "audit-000001.jsonl.gz"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	verified(t, path)
	o.Compress = true
	if err := audit.Change(l, o); err != nil {
		t.Fatal(err)
	}
	l.Tidy()
	verified(t, path)
	if got := files(t, path); got[0] != "audit-000001.jsonl.gz" || len(got) != 3 {
		t.Errorf("files %q", got)
	}
}

// TestReadAfter begins with the record that follows one, in whichever file it is.
func TestReadAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate, o.Compress = time.Hour, true
	l := mustOpen(t, path, o)
	for i := range 4 {
		turned(t, l, fmt.Sprint(i))
	}
	var all []uint64
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Seq)
	}
	for n := range len(all) + 1 {
		var got []uint64
		for e, err := range audit.Read(t.Context(), path, audit.Filter{After: uint64(n)}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, all[n:]) {
			t.Errorf("after %d: %d", n, got)
		}
	}
}

// TestMaxAge removes old files however few there are, and says so.
func TestMaxAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Rotate, o.MaxAge, o.Hold = time.Hour, 24*time.Hour, time.Hour
	l := mustOpen(t, path, o)
	for _, id := range []string{"a", "b"} {
		turned(t, l, id)
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(filepath.Dir(path), "audit-000001.jsonl"), old, old); err != nil {
		t.Fatal(err)
	}
	l.Tidy()
	write(t, l, "c", 1)
	if diff := cmp.Diff([]string{"audit-000002.jsonl", "audit.jsonl"}, files(t, path)); diff != "" {
		t.Error(diff)
	}
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(e.Removed, []string{"audit-000001.jsonl"}) {
			return
		}
	}
	t.Error("no record names the file that was removed")
}
