package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// lineSize is more than a line takes, by which a file can be larger than MaxSize.
const lineSize = 600

// small is a log that keeps three files, and may grow to twelve.
func small(t *testing.T, change func(*audit.Options)) (*audit.Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.MaxSize, o.Keep = 1500, 3
	if change != nil {
		change(&o)
	}
	l := mustOpen(t, path, o)
	l.SetRoom(1 << 30)
	return l, path
}

// sizes returns the renamed files of a log, and the bytes of all.
func sizes(t *testing.T, path string) (renamed []string, bytes int64) {
	t.Helper()
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
		if name != path {
			renamed = append(renamed, filepath.Base(name))
		}
	}
	return renamed, bytes
}

// age makes the renamed files so old.
func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	renamed, _ := sizes(t, path)
	for _, name := range renamed {
		at := time.Now().Add(-by)
		if err := os.Chtimes(filepath.Join(filepath.Dir(path), name), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestYoungRecordsAreHeld: however much is written, a record younger than Hold goes only after the
// operator was warned, and each removal is recorded.
func TestYoungRecordsAreHeld(t *testing.T) {
	l, path := small(t, nil)
	const most = 4 * 3 * 1500
	first, beyond, warned := false, false, 0.0
	for i := range 80 {
		warning := audit.Warning(l)
		write(t, l, fmt.Sprint("c", i), 1)
		renamed, bytes := sizes(t, path)
		beyond = beyond || len(renamed) > 3
		if warning != "" && warned == 0 {
			warned = float64(bytes) / most
			if !strings.Contains(warning, "audit.hard_max") || !strings.Contains(warning, "the oldest file is deleted") {
				t.Errorf("warned %q", warning)
			}
		}
		if renamed = append(renamed, ""); !first && renamed[0] != "audit-000001.jsonl" && i > 5 {
			first = true
			if warning == "" {
				t.Error("a young file went without a warning")
			}
		}
		if bytes > most+lineSize {
			t.Fatalf("the log has %d bytes, more than %d", bytes, most)
		}
	}
	if !beyond || !first || warned < 0.65 || warned > 0.9 {
		t.Errorf("beyond Keep: %v, at the limit: %v, warned at %.2f", beyond, first, warned)
	}
	if !slices.ContainsFunc(opened(t, path), func(e audit.Entry) bool {
		return len(e.Removed) == 1 && strings.HasPrefix(e.Removed[0], "audit-0000") && strings.Contains(e.Error, "records younger than audit.hold (168h0m0s) were removed: audit.hard_max")
	}) {
		t.Error("no opened line tells what was removed")
	}
	verified(t, path)
}

func TestOldRecordsGo(t *testing.T) {
	for name, tt := range map[string]struct {
		age  time.Duration
		hold time.Duration
		keep bool
	}{
		"older than the hold":   {8 * 24 * time.Hour, 0, false},
		"younger than the hold": {6 * 24 * time.Hour, 0, true},
		"another hold":          {2 * time.Hour, time.Hour, false},
		"no hold":               {0, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, path := small(t, func(o *audit.Options) { o.Hold = tt.hold })
			for i := range 20 {
				write(t, l, fmt.Sprint("c", i), 1)
				age(t, path, tt.age)
			}
			renamed, _ := sizes(t, path)
			if kept := renamed[0] == "audit-000001.jsonl"; kept != tt.keep || !kept && len(renamed) != 3 {
				t.Errorf("files %v", renamed)
			}
			for _, e := range opened(t, path) {
				if e.Error != "" {
					t.Errorf("an opened line with the error %q", e.Error)
				}
			}
			if w := audit.Warning(l); w != "" {
				t.Errorf("warned %q", w)
			}
			verified(t, path)
		})
	}
}

// TestAFullDiskTakesTheOldest, but no file within Keep.
func TestAFullDiskTakesTheOldest(t *testing.T) {
	l, path := small(t, nil)
	write(t, l, "c", 20)
	before, _ := sizes(t, path)
	if l.SetRoom(2500); !strings.Contains(audit.Warning(l), "% of the log and what is free on its disk but for 1024 MiB with") {
		t.Errorf("warned %q", audit.Warning(l))
	}
	l.SetRoom(0)
	write(t, l, "d", 4)
	after, _ := sizes(t, path)
	if len(before) < 5 || len(after) != 3 {
		t.Errorf("files %v, then %v", before, after)
	}
	verified(t, path)
}

// TestStrictRefuses: with hold: strict nothing goes, and nothing is written, until
// there is room again.
func TestStrictRefuses(t *testing.T) {
	l, path := small(t, func(o *audit.Options) { o.Strict = true })
	var err error
	n := 0
	for ; n < 200 && err == nil; n++ {
		if warning := audit.Warning(l); warning != "" && !strings.Contains(warning, "At 100 %, calls are refused") {
			t.Fatalf("warned %q", warning)
		}
		err = l.Record(t.Context(), done(fmt.Sprint("c", n)))
	}
	if err == nil || !strings.Contains(err.Error(), "hold: strict removes none") || l.Healthy() == nil {
		t.Fatalf("after %d records: %v, healthy: %v", n, err, l.Healthy())
	}
	renamed, bytes := sizes(t, path)
	if renamed[0] != "audit-000001.jsonl" || bytes > 4*3*1500+lineSize {
		t.Errorf("%d bytes, files %v", bytes, renamed)
	}
	verified(t, path)
	for _, name := range renamed[:5] { // moved away by the operator
		if err := os.Rename(filepath.Join(filepath.Dir(path), name), filepath.Join(t.TempDir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); l.Healthy() != nil && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	write(t, l, "d", 3)
}

func TestChange(t *testing.T) {
	l, path := small(t, nil)
	write(t, l, "c", 30)
	o := options
	o.Keep, o.Hold, o.MaxSize = 2, -1, 1500
	if err := audit.Change(l, o); err != nil {
		t.Fatal(err)
	}
	write(t, l, "d", 5)
	if renamed, _ := sizes(t, path); len(renamed) != 2 {
		t.Errorf("files %v", renamed)
	}
	o.HardMax = 2999
	if err := audit.Change(l, o); err == nil || !strings.Contains(err.Error(), "hard max (2999 bytes) is less than the 3000 bytes of all files (keep: 2 files of max size 1500)") {
		t.Errorf("a hard max below what is kept: %v", err)
	}
	o.HardMax, o.Record, o.Sync, o.MaxSize = 0, "full", "always", 1<<20
	if err := audit.Change(l, o); err != nil {
		t.Fatal(err)
	}
	before, _ := sizes(t, path)
	write(t, l, "e", 30)
	if after, _ := sizes(t, path); len(after) != len(before) {
		t.Errorf("files %v, before %v, in spite of the size", after, before)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"arguments":{`) {
		t.Errorf("no arguments are recorded: %v", err)
	}
	o.Record = "some"
	if err := audit.Change(l, o); err == nil {
		t.Error("records of an unknown kind")
	}
}
