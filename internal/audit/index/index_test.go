package index

import (
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// A world is a log that is being written, and an index over it.
type world struct {
	t    testing.TB
	path string
	log  *audit.Log
	x    *Index
	ids  []string
	rng  *rand.Rand
}

func newWorld(t testing.TB, o audit.Options) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl"), rng: seed.Rand(t)}
	o.Node, o.Keep = "test", -1
	w.open(o)
	w.index()
	return w
}

func (w *world) open(o audit.Options) {
	w.t.Helper()
	log, err := audit.Open(w.path, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.log = log
	w.t.Cleanup(func() { log.Close() })
}

// index opens the index as another process would.
func (w *world) index() {
	w.t.Helper()
	w.x = New(w.path+".index", w.path)
	w.x.rows = 50
}

// all indexes all that there is.
func (w *world) all() {
	w.t.Helper()
	for range 100_000 {
		w.x.mu.Lock()
		more := w.x.step(true)
		w.x.mu.Unlock()
		if !more {
			return
		}
	}
	w.t.Fatal("the index comes to no end")
}

var (
	someTools = []string{"files__read", "files__write", "mail__send", "web__fetch \"now\"", "x__<b>\u202e", ""}
	someCodes = []string{"ok", "tool_error", "refused_authorize", "refused_flow"}
	somebody  = []string{"alice", "bob", "Zoë", "local"}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func (w *world) write(n int) {
	w.t.Helper()
	for range n {
		e := audit.Entry{
			Event: gate.Done, ID: gate.NewID(), Action: gate.CallTool, Principal: pick(w.rng, somebody), Tool: pick(w.rng, someTools), Code: pick(w.rng, someCodes),
			Session: fmt.Sprint("s", w.rng.IntN(20)), TookUS: 5, Reasons: []string{`said "so", [and] {more} \`},
		}
		e.Server, _, _ = strings.Cut(e.Tool, "__")
		if len(w.ids) > 0 && w.rng.IntN(4) == 0 {
			e.Event, e.Parent, e.Action = gate.HostCall, w.ids[w.rng.IntN(len(w.ids))], "host/http"
		}
		if w.rng.IntN(5) == 0 {
			e.Findings = []gate.Finding{{Rule: "hidden", Count: 1}}
		}
		if w.rng.IntN(5) == 0 {
			e.Fuel = 100
		}
		w.ids = append(w.ids, e.ID)
		if err := w.log.Append(e); err != nil {
			w.t.Fatal(err)
		}
	}
}

// query is a random one.
func (w *world) query() (q Query) {
	r := w.rng
	maybe := func(to *string, from []string) {
		if r.IntN(4) == 0 {
			*to = pick(r, from)
		}
	}
	maybe(&q.Tool, append([]string{"files__*", "*", "none"}, someTools...))
	maybe(&q.Principal, append([]string{"nobody"}, somebody...))
	maybe(&q.Code, someCodes)
	maybe(&q.Server, []string{"files", "mail"})
	maybe(&q.Session, []string{"s1", "s19"})
	maybe(&q.Text, []string{"ZOË", "files", "REFUSED", "s1", "\u202e", "nothing has it"})
	if r.IntN(8) == 0 {
		q.Call = pick(r, w.ids)
	}
	q.Refused, q.Findings, q.Fuel = r.IntN(6) == 0, r.IntN(6) == 0, r.IntN(6) == 0
	if r.IntN(3) == 0 {
		q.Event = gate.Done
	}
	if r.IntN(3) == 0 {
		q.Since = time.Now().Add(-time.Duration(r.IntN(2000)) * time.Millisecond)
	}
	if r.IntN(3) == 0 {
		q.Until = time.Now().Add(-time.Duration(r.IntN(2000)) * time.Millisecond)
	}
	if r.IntN(3) == 0 {
		q.Before = uint64(r.IntN(len(w.ids) + 1))
	}
	if r.IntN(2) == 0 {
		q.Last = 1 + r.IntN(30)
	}
	return q
}

// wanted is what the whole log has of a query, read without the index.
func (w *world) wanted(q Query) (seqs []uint64) {
	w.t.Helper()
	for e, err := range audit.Read(w.t.Context(), w.path, audit.Filter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if q.matches(&e) {
			seqs = append(seqs, e.Seq)
		}
	}
	slices.Reverse(seqs)
	if q.Last > 0 {
		seqs = seqs[:min(q.Last, len(seqs))]
	}
	return seqs
}

func (w *world) found(q Query) (seqs []uint64) {
	w.t.Helper()
	all, _, err := w.x.Find(w.t.Context(), q)
	if err != nil {
		w.t.Fatalf("%+v: %v", q, err)
	}
	for _, e := range all {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// same holds the index against the whole log.
func (w *world) same(n int) {
	w.t.Helper()
	for range n {
		q := w.query()
		want := w.wanted(q)
		if got := w.found(q); !slices.Equal(got, want) {
			w.t.Fatalf("%+v found\n%v, want\n%v", q, got, want)
		}
		count := 0
		if _, err := w.x.Each(w.t.Context(), q, func(Row) bool { count++; return true }); err != nil || count != len(want) {
			w.t.Fatalf("%+v counts %d, want %d: %v", q, count, len(want), err)
		}
	}
}

// The index finds the same records as reading the whole log does: over files that were renamed and
// packed, while it grows, and by another process later.
func TestFindsWhatTheLogHas(t *testing.T) {
	w := newWorld(t, audit.Options{MaxSize: 40 << 10})
	for range 4 {
		w.write(120)
		w.all()
		w.same(8)
	}
	if names, err := audit.Files(w.path); err != nil || len(names) < 3 {
		t.Fatalf("the log was not renamed: %v %v", names, err)
	}
	w.log.Close()
	w.open(audit.Options{Node: "test", Keep: -1, MaxSize: 40 << 10, Compress: true})
	w.write(10)
	packAll(t, w)
	w.same(8)
	w.index()
	w.all()
	w.same(8)
	if _, p, err := w.x.Find(t.Context(), Query{Last: 1}); err != nil || !p.Done() {
		t.Errorf("%+v %v", p, err)
	}
}

// packAll packs the renamed files, as the log does when a minute has passed.
func packAll(t *testing.T, w *world) {
	t.Helper()
	names, err := audit.Files(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[:len(names)-2] {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err = z.Write(text)
		if err := errors.Join(err, z.Close(), os.WriteFile(name+".gz", b.Bytes(), 0o600), os.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A record of a packed file is found without reading what is before it there: all of that may be
// unreadable.
func TestPackedRecordIsFoundAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, audit.Options{Rotate: time.Hour, Compress: true})
		noise := make([]byte, 64<<10) // which does not compress
		for range 18 {
			w.write(10)
			if _, err := crand.Read(noise); err != nil {
				t.Fatal(err)
			}
			args, err := json.Marshal(noise)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.log.Append(audit.Entry{Event: gate.Done, ID: gate.NewID(), Tool: "noise", Arguments: args}); err != nil {
				t.Fatal(err)
			}
		}
		w.write(10)
		last := w.ids[len(w.ids)-1]
		for range 2 { // the newest of the renamed files is not packed
			time.Sleep(2 * time.Hour)
			w.write(1)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		w.all()
		w.same(4)
		names, err := audit.Files(w.path)
		if err != nil || len(names) != 3 || !strings.HasSuffix(names[0], ".gz") {
			t.Fatalf("%v %v", names, err)
		}
		b, err := os.ReadFile(names[0])
		if err != nil || len(b) < 1<<20 {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		clear(b[200<<10 : 600<<10]) // of the first mebibyte
		if err := os.WriteFile(names[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		all, _, err := w.x.Find(t.Context(), Query{Call: last})
		if err != nil || len(all) == 0 || all[len(all)-1].ID != last && all[len(all)-1].Parent != last {
			t.Errorf("%d records: %v", len(all), err)
		}
		w.log.Close()
	})
}

// The index can be thrown away, cut or damaged at any time, while it is used or not: nothing that
// it says is wrong, and it is made again.
func TestThrownAway(t *testing.T) {
	w := newWorld(t, audit.Options{MaxSize: 40 << 10})
	w.write(400)
	dir := w.path + ".index"
	for name, harm := range map[string]func(segments []string){
		"removed": func([]string) { os.RemoveAll(dir) },
		"one":     func(s []string) { os.Remove(s[0]) },
		"cut":     func(s []string) { os.Truncate(s[w.rng.IntN(len(s))], int64(w.rng.IntN(2000))) },
		"turned": func(s []string) {
			name := s[w.rng.IntN(len(s))]
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b[w.rng.IntN(len(b))] ^= 1
			os.WriteFile(name, b, 0o600)
		},
		"foreign": func([]string) { os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600) },
	} {
		w.all()
		segments, err := filepath.Glob(filepath.Join(dir, "*-*"))
		if err != nil || len(segments) < 3 {
			t.Fatalf("%v %v", segments, err)
		}
		harm(segments)
		if w.rng.IntN(2) == 0 {
			w.index()
		}
		want := w.wanted(Query{})
		for range 30 { // each finds at most what there is
			q := w.query()
			for _, seq := range w.found(q) {
				if !slices.Contains(want, seq) {
					t.Fatalf("%s: %d is not in the log", name, seq)
				}
			}
		}
		w.found(Query{}) // reads every part
		if _, err := w.x.Each(t.Context(), Query{Text: "s", Findings: true, Call: w.ids[0]}, func(Row) bool { return true }); err != nil {
			t.Fatal(err)
		}
		w.all()
		w.same(5)
	}
}

// A log that was put in the place of another, or cut, is not found by what was known before.
func TestAnotherLog(t *testing.T) {
	w := newWorld(t, audit.Options{})
	w.write(200)
	w.all()
	w.same(5)
	w.log.Close()
	text, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(w.path, bytes.Join(lines[:50], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	w.all()
	w.same(5)
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if got := w.found(Query{}); len(got) > 0 {
		t.Errorf("found %v of a log that is gone", got)
	}
	w.open(audit.Options{Node: "other", Keep: -1})
	w.ids = nil
	w.write(100)
	w.all()
	w.same(5)
}

// The log says what a record is: one that was changed there is shown as it is, or not at all.
func TestNoAuthority(t *testing.T) {
	w := newWorld(t, audit.Options{})
	w.write(120)
	w.all()
	want := Query{Tool: "files__read", Event: gate.Done}
	if len(w.found(want)) == 0 {
		t.Skip("by chance there is none")
	}
	w.log.Close()
	text, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path, bytes.ReplaceAll(text, []byte(`"files__read"`), []byte(`"files__ripe"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.found(want); len(got) > 0 {
		t.Errorf("the index is believed: %v", got)
	}
}

// A file that cannot be read is reported, and does not keep other files from being searched.
func TestUnreadable(t *testing.T) {
	w := newWorld(t, audit.Options{MaxSize: 20 << 10})
	w.write(200)
	names, err := audit.Files(w.path)
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	if err := errors.Join(os.WriteFile(names[0]+".gz", []byte("\x1f\x8bthis is not gzip"), 0o600), os.Remove(names[0])); err != nil {
		t.Fatal(err)
	}
	w.all()
	if got := w.found(Query{Last: 5}); len(got) != 5 {
		t.Errorf("found %v", got)
	}
	for _, bad := range []Query{{Tool: "[" + "a"}} {
		if _, _, err := w.x.Find(t.Context(), bad); err == nil {
			t.Errorf("%+v means something", bad)
		}
	}
}

// A row is what the log's own reader sees in a line, also if the line is cut after its names.
func TestRow(t *testing.T) {
	w := newWorld(t, audit.Options{Record: "full"})
	w.write(300)
	for e, err := range audit.Read(t.Context(), w.path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		var r row
		if err := r.parse(e.Raw); err != nil {
			t.Fatalf("%v: %s", err, e.Raw)
		}
		got := [...]string{string(r.names[event]), string(r.names[action]), string(r.names[code]), string(r.names[server]), string(r.names[tool]), string(r.names[principal]), string(r.names[session])}
		want := [...]string{string(e.Event), string(e.Action), e.Code, e.Server, e.Tool, e.Principal, e.Session}
		if got != want || r.seq != e.Seq || r.time != e.Time.UnixMicro() || (r.flags&hasFindings != 0) != (len(e.Findings) > 0) || (r.flags&hasFuel != 0) != (e.Fuel > 0) {
			t.Errorf("%q %+v of %s", got, r, e.Raw)
		}
		cut := bytes.Index(e.Raw, []byte(`,"prev"`))
		if cut < 0 {
			continue
		}
		if err := r.parse(e.Raw[:cut+3]); err != nil {
			t.Errorf("cut: %v", err)
		}
	}
}

// FuzzRow holds the reading of lines against encoding/json.
func FuzzRow(f *testing.F) {
	f.Add([]byte(`{"log":"a","seq":1,"time":"2026-01-01T00:00:00.000000Z","event":"done","tool":"a\"b","x":[{"y":"}"},[]],"n":null}`))
	f.Add([]byte(`{"seq":1,"time":"2026-01-01T00:00:00Z","tool":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r row
		if r.parse(b) != nil || !json.Valid(b) {
			return
		}
		var e struct {
			Seq  uint64
			Tool string
		}
		low := bytes.ToLower(b)
		plain := utf8.Valid(b) && !bytes.ContainsAny(b, "\\ \t\r\n") && bytes.Count(low, []byte("seq")) == 1 && bytes.Count(low, []byte("tool")) == 1
		if plain && json.Unmarshal(b, &e) == nil && (r.seq != e.Seq || string(r.names[tool]) != e.Tool) {
			t.Errorf("%+v, want %+v", r, e)
		}
	})
}

// Run indexes a log while it is being written to, and ends with its context.
func TestRun(t *testing.T) {
	w := newWorld(t, audit.Options{MaxSize: 40 << 10})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.x.Run(ctx) }()
	for range 10 {
		w.write(50)
		last := w.wanted(Query{Last: 3})
		if got := w.found(Query{Last: 3}); !slices.Equal(got, last) {
			t.Errorf("found %v, want %v", got, last)
		}
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// BenchmarkIndex builds an index over WASMGATE_INDEX_RECORDS records (10,000 without), and asks
// it what a page of calls asks.
func BenchmarkIndex(b *testing.B) {
	records := 10_000
	if s := os.Getenv("WASMGATE_INDEX_RECORDS"); s != "" {
		if _, err := fmt.Sscan(s, &records); err != nil {
			b.Fatal(err)
		}
	}
	w := newWorld(b, audit.Options{})
	w.write(records)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			os.RemoveAll(w.path + ".index")
			w.index()
			w.x.rows = maxRows
			before := held()
			w.all()
			b.ReportMetric(float64(held()-before), "B-held")
		}
		b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
	for name, q := range map[string]Query{
		"first page":     {Event: gate.Done, Last: 100},
		"tool and week":  {Event: gate.Done, Tool: "mail__*", Since: time.Now().Add(-7 * 24 * time.Hour), Last: 100},
		"nothing has it": {Event: gate.Done, Tool: "none", Text: "none"},
		"rare":           {Principal: "alice", Session: "s1", Tool: "mail__send", Code: "refused_flow", Before: 1000, Last: 100},
		"a call":         {Call: w.ids[len(w.ids)/2]},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := w.x.Find(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// held is the memory in use, in bytes.
func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Names that never come twice take no more memory than others: a segment ends when they would.
func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t, audit.Options{})
	w.x.rows = maxRows
	before, most := held(), int64(0)
	for range 8 {
		for range 2500 {
			name := crand.Text() + strings.Repeat("x", 200)
			if err := w.log.Append(audit.Entry{Event: gate.Done, ID: gate.NewID(), Principal: name, Tool: name, Session: name, Server: name}); err != nil {
				t.Fatal(err)
			}
		}
		w.all()
		most = max(most, held()-before)
	}
	if most > 8<<20 {
		t.Errorf("the index holds %d KiB", most>>10)
	}
	if segments, _ := filepath.Glob(filepath.Join(w.path+".index", "*-*")); len(segments) < 5 {
		t.Errorf("%d segments", len(segments))
	}
}

// A question takes the same memory of a log of many segments as of one of few: their blocks are
// read one after the other into the same place.
func TestQuestionsTakeLittleMemory(t *testing.T) {
	w := newWorld(t, audit.Options{})
	w.x.rows = 2000
	w.write(40_000)
	w.all()
	const times = 20
	q := Query{Call: w.ids[10]}
	w.found(q)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		w.found(q)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / times; took > 800<<10 { // 120 now, ten times that without
		t.Errorf("%d KiB for %d records", took>>10, len(w.ids))
	}
}
