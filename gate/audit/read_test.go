package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func TestReadFilters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.MaxSize = 1000 // so that the answers come from several files
	var middle time.Time
	synctest.Test(t, func(t *testing.T) {
		l, err := audit.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for i, one := range []struct{ tool, principal, session, code string }{
			{"files__read", "alice", "s1", "ok"},
			{"files__write", "alice", "s1", "refused_authorize"},
			{"mail__send", "bob", "s2", "refused_limit"},
			{"mail__read", "bob", "s3", "timeout"},
		} {
			time.Sleep(time.Hour)
			if i == 2 {
				middle = time.Now()
			}
			r := done(fmt.Sprint("c", i+1))
			r.Call.Who = &gate.Principal{Owner: gate.Owner{ID: one.principal}}
			r.Call.Session.ID = one.session
			r.Tool.Name, _ = gate.ParseToolName(one.tool)
			r.Code = one.code
			if err := l.Record(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	})

	tests := map[string]struct {
		filter audit.Filter
		want   string
	}{
		"all":                         {audit.Filter{}, "c1 c2 c3 c4"},
		"the refused ones":            {audit.Filter{Denied: true}, "c2 c3"},
		"a tool":                      {audit.Filter{Tool: "files__read"}, "c1"},
		"the tools of a server":       {audit.Filter{Tool: "mail__*"}, "c3 c4"},
		"tools with a star in front":  {audit.Filter{Tool: "*__read"}, "c1 c4"},
		"no tool is half a name":      {audit.Filter{Tool: "mail"}, ""},
		"a principal":                 {audit.Filter{Principal: "alice"}, "c1 c2"},
		"a session":                   {audit.Filter{Session: "s3"}, "c4"},
		"since a time":                {audit.Filter{Since: middle}, "c3 c4"},
		"the last two":                {audit.Filter{Last: 2}, "c3 c4"},
		"more than there are":         {audit.Filter{Last: 9, Session: "s1"}, "c1 c2"},
		"several conditions, all met": {audit.Filter{Denied: true, Principal: "bob"}, "c3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for e, err := range audit.Read(t.Context(), path, tt.filter) {
				if err != nil {
					t.Fatal(err)
				}
				if e.ID != "" {
					got = append(got, e.ID)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

// A file that has not been written to since is not even opened.
func TestReadSkipsOldFiles(t *testing.T) {
	path, names := rotating(t)
	old := time.Now().Add(-24 * time.Hour)
	if err := os.WriteFile(names[0], []byte("unreadable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(names[0], old, old); err != nil {
		t.Fatal(err)
	}
	for _, err := range audit.Read(t.Context(), path, audit.Filter{Since: time.Now().Add(-time.Hour)}) {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReadReportsDamageAndGoesOn(t *testing.T) {
	lines := logged(t, 3)
	lines[1] = "milk\n"
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	half := lines[3][:20]
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")+half), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		var damage *audit.ChainError
		switch {
		case errors.As(err, &damage):
			got = append(got, fmt.Sprintf("line %d: %s", damage.Line, e.Raw))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, e.ID)
		}
	}
	if diff := cmp.Diff([]string{"", "line 2: milk", "c-2", "c-3"}, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// badPattern has a name that a variable path does not hide.
var badPattern = path.ErrBadPattern

func TestReadFails(t *testing.T) {
	path, _ := rotating(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx    context.Context
		path   string
		filter audit.Filter
		want   error
	}{
		"there is no log":    {t.Context(), path + ".gone", audit.Filter{}, fs.ErrNotExist},
		"the pattern is bad": {t.Context(), path, audit.Filter{Tool: "[a"}, badPattern},
		"the context ended":  {canceled, path, audit.Filter{}, context.Canceled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []error
			for _, err := range audit.Read(tt.ctx, tt.path, tt.filter) {
				got = append(got, err)
			}
			if len(got) != 1 || !errors.Is(got[0], tt.want) {
				t.Errorf("yielded %v, want only %v", got, tt.want)
			}
		})
	}
}

func TestReadStopsWhenAsked(t *testing.T) {
	path, _ := rotating(t)
	for _, f := range []audit.Filter{{}, {Last: 3}, {Follow: true}} {
		n := 0
		for range audit.Read(t.Context(), path, f) {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("%+v: %d records", f, n)
		}
	}
}

// Follow sees each record once and in order while files are renamed under it.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		o := options
		o.MaxSize, o.Keep = 1500, -1
		l, err := audit.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		write(t, l, "old", 5)

		var want, got []string
		for i := range 5 {
			want = append(want, fmt.Sprintf("old-%d", i+1))
		}
		ctx, cancel := context.WithCancel(t.Context())
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			for e, err := range audit.Read(ctx, path, audit.Filter{Follow: true}) {
				if err != nil {
					t.Error(err)
				}
				if e.ID != "" {
					got = append(got, e.ID)
				}
			}
		}()
		for round := range 20 { // of more files than one between two looks
			time.Sleep(100 * time.Millisecond)
			name := fmt.Sprint("round", round)
			write(t, l, name, round)
			for i := range round {
				want = append(want, fmt.Sprintf("%s-%d", name, i+1))
			}
		}
		time.Sleep(time.Second)
		cancel()
		<-followed
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("followed (-want +got):\n%s", diff)
		}
	})
}

// However reading and renaming fall together, no record is missed.
func TestReadWhileFilesAreRenamed(t *testing.T) {
	unraced.Long(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.MaxSize, o.Keep = 1000, -1
	l := mustOpen(t, path, o)
	written := make(chan struct{})
	go func() {
		defer close(written)
		write(t, l, "c", 300)
	}()
	for running := true; running; {
		select {
		case <-written:
			running = false
		default:
		}
		// Only what is new is read, so that the reader is at the end most of the time.
		var last uint64
		for e, err := range audit.Read(t.Context(), path, audit.Filter{Since: time.Now().Add(-5 * time.Millisecond)}) {
			if err != nil {
				t.Fatal(err)
			}
			if last > 0 && e.Seq != last+1 {
				t.Fatalf("record %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
}

// Follow forgets what it saw of a half line when the line is cut.
func TestFollowSeesALineOnlyWhenItIsWhole(t *testing.T) {
	lines := logged(t, 2)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	put := func(t *testing.T, text ...string) {
		if err := os.WriteFile(path, []byte(strings.Join(text, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, lines[0], lines[2][:50])
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		go func() {
			for e, err := range audit.Read(ctx, path, audit.Filter{Follow: true}) {
				got = append(got, fmt.Sprint(e.ID, err))
			}
		}()
		time.Sleep(time.Second)
		put(t, lines[0], lines[1])
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if diff := cmp.Diff([]string{"<nil>", "c-1<nil>"}, got); diff != "" {
			t.Errorf("followed (-want +got):\n%s", diff)
		}
	})
}

// FuzzRead reads foreign bytes: every line is a record or an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join(logged(f, 3), "")))
	f.Add([]byte("{}\n[]\n\nnull\n{\"seq\":-1}\n{\"steps_us\":[1]}\n{\"steps_us\":{\"a\":1,\"a\":{}}}\n"))
	f.Add([]byte("{\"time\":\"yesterday\",\"client\":\"x\"}\n{\"log\""))
	path := filepath.Join(f.TempDir(), "audit.jsonl")
	f.Fuzz(func(t *testing.T, b []byte) {
		os.Remove(path) // some file systems sync a file that is cut to nothing and written anew
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
			var damage *audit.ChainError
			if err != nil && !errors.As(err, &damage) {
				t.Fatal(err)
			}
			if len(e.Raw) > len(b) {
				t.Fatalf("line of %d bytes", len(e.Raw))
			}
			n++
		}
		if want := bytes.Count(b, []byte("\n")); n != want {
			t.Errorf("%d records of %d lines", n, want)
		}
	})
}
