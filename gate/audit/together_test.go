package audit_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// slowFile waits in its first write until it may go on, and counts writes.
type slowFile struct {
	audit.File
	f *slow
}

type slow struct {
	began, goOn chan struct{} // of the write that is held up
	mu          sync.Mutex
	hold        bool
	writes      int
	fails       error // of the write after the one that is held up
}

func (f slowFile) WriteAt(b []byte, off int64) (int, error) {
	f.f.mu.Lock()
	f.f.writes++
	hold, fails := f.f.hold, f.f.fails
	f.f.hold, f.f.fails = false, nil
	if hold {
		f.f.fails = fails
	}
	f.f.mu.Unlock()
	if hold {
		close(f.f.began)
		<-f.f.goOn
	} else if fails != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off) // some lines of it, and half of one
		return n, fails
	}
	return f.File.WriteAt(b, off)
}

// heldUp has n records wait while one is written, and returns what came of them.
func heldUp(t *testing.T, s *slow, n int, fails error) (errs []error, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := audit.OpenOn(path, options, func(p string) (audit.File, error) {
		f, err := audit.OpenFile(p)
		return slowFile{f, s}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.mu.Lock()
	s.hold, s.writes, s.fails = true, 0, fails
	s.mu.Unlock()
	errs = make([]error, n)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Record(t.Context(), done("first")); err != nil {
			t.Error(err)
		}
	})
	<-s.began
	for i := range n {
		wg.Go(func() { errs[i] = l.Record(t.Context(), granted(fmt.Sprint("waits-", i))) })
	}
	for l.Waiting() < n {
		time.Sleep(time.Millisecond)
	}
	close(s.goOn)
	wg.Wait()
	return errs, path
}

func granted(id string) *gate.Record {
	r := done(id)
	r.Event = gate.Granted
	return r
}

// Records that wait together are one write, in one chain.
func TestRecordsThatWaitAreOneWrite(t *testing.T) {
	s := &slow{began: make(chan struct{}), goOn: make(chan struct{})}
	errs, path := heldUp(t, s, 20, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s.writes != 2 {
		t.Errorf("%d writes of 21 records, want 2", s.writes)
	}
	if got := len(ids(t, path)); got != 21 {
		t.Errorf("%d records, want 21", got)
	}
	verified(t, path)
}

// If the write fails, none of them is in the log, and each call gets the error.
func TestRecordsThatFailTogetherAreNotThere(t *testing.T) {
	s := &slow{began: make(chan struct{}), goOn: make(chan struct{})}
	errs, path := heldUp(t, s, 20, errors.New("no room"))
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if got := ids(t, path); len(got) != 1 || got[0] != "first" {
		t.Errorf("records %q, want the first alone", got)
	}
	verified(t, path)
}
