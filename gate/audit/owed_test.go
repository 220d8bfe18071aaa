package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// carried is the record of a call that its server has had.
func carried(id string) *gate.Record {
	r := done(id)
	r.Steps = []step.Time{{Step: step.Invoke, Took: time.Millisecond}}
	return r
}

// said collects what a log tells the operator.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

// lines returns level and message of each line, and of those named the attributes.
func (s *said) lines(t *testing.T, named ...string) []string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for l := range bytes.Lines(s.buf.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(m["level"], " ", m["msg"])
		for _, name := range named {
			if v, ok := m[name]; ok {
				line += fmt.Sprint(" ", name, "=", v)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

const (
	cannot = "ERROR audit log cannot be written: calls are refused until it can"
	again  = "WARN audit log can be written again: calls pass"
)

// onDisk opens a log on a disk, and what it tells the operator.
func onDisk(t *testing.T, d *disk) (l *audit.Log, path string, s *said) {
	t.Helper()
	path, s = filepath.Join(t.TempDir(), "audit.jsonl"), new(said)
	o := options
	o.Log = slog.New(slog.NewJSONHandler(s, nil))
	l, err := audit.OpenOn(path, o, d.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, path, s
}

// late returns the calls of a log with whether their records came late.
func late(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event != audit.Opened {
			all = append(all, fmt.Sprint(e.ID, " ", e.Late))
		}
	}
	return all
}

// A call that was carried out while the disk was full is recorded when it has room again, before
// anything else, whichever call writes first. The operator hears once that the disk is full, and
// once that it is not.
func TestTheEndOfACallIsOwed(t *testing.T) {
	for name, tt := range map[string]struct {
		next func(*testing.T, *audit.Log, *said)
		more []string
		told string // "" where the log is closed by then
	}{
		"the next record": {func(t *testing.T, l *audit.Log, _ *said) { write(t, l, "after", 1) }, []string{"after-1 false"}, again},
		"a look at it": {func(t *testing.T, l *audit.Log, _ *said) {
			if err := l.Healthy(); err != nil {
				t.Error(err)
			}
		}, nil, again},
		"the background": {func(t *testing.T, _ *audit.Log, s *said) { // within a second, on a machine with nothing else to do
			for end := time.Now().Add(time.Minute); len(s.lines(t)) < 2 && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond)
			}
		}, nil, again},
		"the end of the log": {func(t *testing.T, l *audit.Log, _ *said) {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &disk{room: 1 << 20}
			l, path, s := onDisk(t, d)
			write(t, l, "before", 1)
			d.set(func() { d.room = 0 })
			for _, r := range []*gate.Record{carried("a"), done("refused"), carried("b")} {
				if err := l.Record(t.Context(), r); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("recorded on a full disk: %v", err)
				}
			}
			if diff := cmp.Diff([]string{cannot}, s.lines(t)); diff != "" {
				t.Errorf("on the full disk:\n%s", diff)
			}
			d.set(func() { d.room = 1 << 20 })
			tt.next(t, l, s)
			if diff := cmp.Diff(append([]string{"before-1 false", "a true", "b true"}, tt.more...), late(t, path)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			verified(t, path)
			want := []string{cannot}
			if tt.told != "" {
				want = append(want, tt.told+" late=2 lost=0")
			}
			if diff := cmp.Diff(want, s.lines(t, "late", "lost")); diff != "" {
				t.Errorf("with room again:\n%s", diff)
			}
		})
	}
}

// A disk that is nearly full again and again is reported each time that it changes, and what is
// owed is written once.
func TestOwedInTurn(t *testing.T) {
	d := &disk{room: 1 << 20}
	l, path, s := onDisk(t, d)
	var want, told []string
	for i := range 5 {
		d.set(func() { d.room = 0 })
		id := fmt.Sprint("lost-", i)
		if err := l.Record(t.Context(), carried(id)); err == nil {
			t.Fatal("recorded on a full disk")
		}
		d.set(func() { d.room = 1 << 20 })
		write(t, l, fmt.Sprint("after-", i), 1)
		want = append(want, id+" true", fmt.Sprintf("after-%d-1 false", i))
		told = append(told, cannot, again)
	}
	if diff := cmp.Diff(want, late(t, path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(told, s.lines(t)); diff != "" {
		t.Error(diff)
	}
	verified(t, path)
}

// Records that are owed are bounded: documents are left out first, and the operator hears of what
// had no room.
func TestOwedIsBounded(t *testing.T) {
	unraced.Long(t)
	d := &disk{room: 1 << 20}
	l, path, s := onDisk(t, d)
	d.set(func() { d.room = 0 })
	large := carried("large")
	large.Full, large.Result = true, gate.MustDoc(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`)
	if err := l.Record(t.Context(), large); err == nil {
		t.Fatal("recorded on a full disk")
	}
	const each = 60 << 10
	for i := range 8 << 20 / each {
		r := carried(fmt.Sprint("full-", i))
		r.Full, r.Result = true, gate.MustDoc(`{"content":"`+strings.Repeat("x", each)+`"}`)
		if err := l.Record(t.Context(), r); err == nil {
			t.Fatal("recorded on a full disk")
		}
	}
	d.set(func() { d.room = 1 << 30 })
	write(t, l, "after", 1)
	n, documents := 0, 0
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Late {
			n++
		}
		if len(e.Result) > 0 {
			documents++
		}
		if e.ID == "large" && (len(e.Result) > 0 || e.ResultSHA256 != large.Result.Digest()) {
			t.Errorf("a large record: %d bytes of its result, digest %s", len(e.Result), e.ResultSHA256)
		}
	}
	if n < 100 || documents != n-1 {
		t.Errorf("%d records came late, %d of them with documents", n, documents)
	}
	told := s.lines(t, "late", "lost")
	if len(told) != 3 || !strings.HasPrefix(told[1], "ERROR records of calls that were carried out are lost") ||
		told[2] != fmt.Sprintf("%s late=%d lost=%d", again, n, 1+8<<20/each-n) {
		t.Errorf("told: %v", told)
	}
}

// A log that can never be written again names the calls whose end it does not have.
func TestOwedForEver(t *testing.T) {
	d := &disk{room: 1 << 20}
	l, path, s := onDisk(t, d)
	d.set(func() { d.room, d.sync = 0, syscall.EIO })
	for _, id := range []string{"a", "b"} {
		if err := l.Record(t.Context(), carried(id)); err == nil {
			t.Fatal("recorded on a broken disk")
		}
	}
	d.set(func() { d.room = 1 << 20 })
	l.Close()
	want := []string{cannot, "ERROR calls were carried out, and their end is not in the audit log calls=[a b]"}
	if diff := cmp.Diff(want, s.lines(t, "calls")); diff != "" {
		t.Error(diff)
	}
	if got := late(t, path); len(got) > 0 {
		t.Errorf("records %v", got)
	}
}

// A real disk that fills up and is freed. It needs the right to mount one.
func TestRealFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := mountSmall(dir, 1<<20); err != nil {
		t.Skipf("no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	s, o := new(said), options
	o.Log = slog.New(slog.NewJSONHandler(s, nil))
	path := filepath.Join(dir, "audit.jsonl")
	l, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, l, "before", 1)
	ballast := filepath.Join(dir, "ballast")
	for n := 64 << 10; n > 0; n /= 2 { // until not a byte is left
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Write(make([]byte, n))
		}
		f.Close()
	}
	refused := 0
	for i := range 300 { // what is left of the file's last page takes a few
		if err := l.Record(t.Context(), carried(fmt.Sprint("full-", i))); errors.Is(err, syscall.ENOSPC) {
			refused++
		}
	}
	if refused == 0 || l.Healthy() == nil {
		t.Fatalf("%d records refused by a full disk, and it is well", refused)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	write(t, l, "after", 1)
	all := late(t, path)
	n := 0
	for _, one := range all {
		if strings.HasSuffix(one, " true") {
			n++
		}
	}
	if len(all) != 302 || n != refused || all[301] != "after-1 false" {
		t.Errorf("%d records, %d of them late, the last %s; %d were refused", len(all), n, all[len(all)-1], refused)
	}
	verified(t, path)
	if told := s.lines(t); told[0] != cannot || told[len(told)-1] != again {
		t.Errorf("told %v", told)
	}
}
