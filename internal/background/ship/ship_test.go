package ship_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/background/ship"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A siem takes what is sent to it, or answers as its test says.
type siem struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(n int, body []byte) int // nil: 200
	bodies [][]byte
	asked  int
}

func newSIEM(t *testing.T, answer func(n int, body []byte) int) *siem {
	s := &siem{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *siem) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b, err := io.ReadAll(z)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.answer != nil {
		if status := s.answer(s.asked, b); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	s.bodies = append(s.bodies, b)
}

// seqs are the numbers of the records that came, in the order in which they did.
func (s *siem) seqs(t *testing.T) (all []uint64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range bytes.Lines(bytes.Join(s.bodies, nil)) {
		var e struct{ Seq uint64 }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e.Seq)
	}
	return all
}

// newLog opens an audit log, and returns a shipper of it.
func newLog(t *testing.T, o audit.Options, to *siem) (*audit.Log, *ship.Shipper) {
	t.Helper()
	dir := t.TempDir()
	o.Node = "n"
	path := filepath.Join(dir, "audit.jsonl")
	l, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, &ship.Shipper{
		Log: path, Position: filepath.Join(dir, "siem.json"), Kind: ship.HTTP, Format: ship.AsItIs, Head: l.Head, Retry: 10 * time.Millisecond,
		To: &telemetry.Endpoint{URL: to.URL, Timeout: time.Minute, Gzip: true, Client: &http.Client{}}, Relays: func(string) bool { return false },
		Failed: func(error) {},
	}
}

func record(t *testing.T, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(audit.Entry{
			Event: gate.Done, ID: fmt.Sprint("c", i), Action: gate.CallTool, Principal: "alice", Server: "files", Tool: "files__read", Effect: gate.Deny,
			Code: "refused_authorize", Reasons: []string{"not granted"}, PolicyRevision: "p1", TookUS: 1500,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// running runs a shipper until stop.
func running(t *testing.T, s *ship.Shipper) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func sent(s *ship.Shipper) func() bool {
	return func() bool { lag, _ := s.Lag(); return lag == 0 }
}

func upTo(n uint64) (all []uint64) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

// TestShip sends each record in order, over failures, refusals, a restart and files that are
// renamed and packed.
func TestShip(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits most of the time
	to := newSIEM(t, func(n int, _ []byte) int {
		return map[int]int{1: http.StatusServiceUnavailable, 2: http.StatusForbidden}[n] | map[bool]int{true: http.StatusOK}[n > 2]
	})
	l, s := newLog(t, audit.Options{MaxSize: 4 << 10, Keep: -1, Compress: true}, to)
	record(t, l, 100)
	stop := running(t, s)
	timelimit.Wait(t, "the first records", sent(s))
	stop()
	record(t, l, 100)
	if lag, _ := s.Lag(); lag < 100 {
		t.Errorf("lag %d while nothing runs", lag)
	}
	again := &ship.Shipper{
		Log: s.Log, Position: s.Position, Kind: s.Kind, Format: s.Format, Head: s.Head, To: s.To, Failed: s.Failed, Retry: s.Retry,
	}
	running(t, again)
	timelimit.Wait(t, "the others", sent(again))
	if diff := cmp.Diff(upTo(l.Head().Seq), to.seqs(t)); diff != "" {
		t.Error(diff)
	}
	if len(to.bodies) < 2 || to.asked != len(to.bodies)+2 {
		t.Errorf("%d requests, %d taken", to.asked, len(to.bodies))
	}
}

// TestAtLeastOnce: records that were taken, but whose position was not written down, come again, and
// none is left out.
func TestAtLeastOnce(t *testing.T) {
	t.Parallel() // it waits most of the time
	to := newSIEM(t, nil)
	l, s := newLog(t, audit.Options{}, to)
	record(t, l, 10)
	stop := running(t, s)
	timelimit.Wait(t, "all", sent(s))
	stop()
	if err := os.Remove(s.Position); err != nil { // as if the process had died before
		t.Fatal(err)
	}
	running(t, s)
	timelimit.Wait(t, "all again", func() bool { return len(to.seqs(t)) == 22 })
	if got, want := to.seqs(t), slices.Concat(upTo(11), upTo(11)); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestPositionCannotBeWritten: if the disk does not take the position, that is reported, records are
// sent all the same, and none is lost after a restart.
func TestPositionCannotBeWritten(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits most of the time
	to := newSIEM(t, nil)
	l, s := newLog(t, audit.Options{}, to)
	s.Position = filepath.Join(t.TempDir(), "full", "siem.json")
	var failed sync.Map
	s.Failed = func(err error) { failed.Store(fmt.Sprint(err), true) }
	record(t, l, 3)
	stop := running(t, s)
	timelimit.Wait(t, "the first", sent(s))
	record(t, l, 2)
	timelimit.Wait(t, "the others", sent(s))
	stop()
	told := false
	failed.Range(func(said, _ any) bool { told = strings.Contains(said.(string), "not written down"); return !told })
	if got := to.seqs(t); !told || !slices.Equal(got, upTo(6)) {
		t.Errorf("told: %t, sent %v", told, got)
	}
	again := &ship.Shipper{Log: s.Log, Position: s.Position, Kind: s.Kind, Format: s.Format, Head: s.Head, To: s.To, Failed: s.Failed}
	running(t, again)
	timelimit.Wait(t, "all again", sent(again))
	if got := to.seqs(t); !slices.Equal(got, append(upTo(6), upTo(6)...)) {
		t.Errorf("after a restart sent %v", got)
	}
}

// TestTooLarge: if a target takes only smaller batches, the records come in smaller batches.
func TestTooLarge(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits most of the time
	to := newSIEM(t, func(_ int, body []byte) int {
		if bytes.Count(body, []byte("\n")) > 7 {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusOK
	})
	l, s := newLog(t, audit.Options{}, to)
	record(t, l, 30)
	running(t, s)
	timelimit.Wait(t, "all", sent(s))
	if got := to.seqs(t); !slices.Equal(got, upTo(31)) {
		t.Errorf("%d", got)
	}
}

// A record that the target does not take for its arguments is sent without them, and those
// after it arrive.
func TestContentThatIsRefused(t *testing.T) {
	for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusBadRequest} {
		to := newSIEM(t, func(_ int, body []byte) int {
			if bytes.Contains(body, []byte("canary")) {
				return status
			}
			return http.StatusOK
		})
		l, s := newLog(t, audit.Options{}, to)
		record(t, l, 3)
		if err := l.Append(audit.Entry{Event: gate.Done, ID: "large", Action: gate.CallTool, ArgsSHA256: strings.Repeat("a", 64), Arguments: []byte(`{"a":"canary"}`), Result: []byte(`{"b":"canary"}`)}); err != nil {
			t.Fatal(err)
		}
		record(t, l, 3)
		running(t, s)
		timelimit.Wait(t, "all", sent(s))
		if got := to.seqs(t); !slices.Equal(got, upTo(8)) {
			t.Errorf("%d: %d", status, got)
		}
		to.mu.Lock()
		all := bytes.Join(to.bodies, nil)
		to.mu.Unlock()
		if !bytes.Contains(all, []byte(`"content_left_out":true`)) || !bytes.Contains(all, []byte(strings.Repeat("a", 64))) {
			t.Errorf("%d: the record does not say what is left out: %s", status, all)
		}
	}
}

// TestDead: a target that takes nothing keeps no record from being written, and what was
// removed from the log meanwhile is counted.
func TestDead(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits most of the time
	var dead sync.Mutex
	isDead := true
	to := newSIEM(t, func(int, []byte) int {
		dead.Lock()
		defer dead.Unlock()
		return map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK}[isDead]
	})
	l, s := newLog(t, audit.Options{MaxSize: 1 << 10, Keep: 2, Hold: -1}, to)
	record(t, l, 2)
	var failed sync.Map
	s.Failed = func(err error) {
		if err != nil {
			failed.Store(err.Error(), true)
		}
	}
	stop := running(t, s)
	timelimit.Wait(t, "a failure", func() bool { _, ok := failed.Load("it answered with status 503"); return ok })
	stop()
	record(t, l, 100) // Keep drops most of them
	dead.Lock()
	isDead = false
	dead.Unlock()
	if err := os.WriteFile(s.Position, []byte(`{"log":"n/x","seq":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	running(t, s)
	timelimit.Wait(t, "what is left", sent(s))
	got := to.seqs(t)
	_, gone := s.Lag()
	if len(got) == 0 || gone != got[0]-2 || gone == 0 || got[len(got)-1] != l.Head().Seq {
		t.Errorf("%d gone, sent %d", gone, got)
	}
}

// TestNewLog: a log that has begun anew is sent from its beginning, and a position that
// cannot be read is no beginning.
func TestNewLog(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits most of the time
	to := newSIEM(t, nil)
	l, s := newLog(t, audit.Options{}, to)
	record(t, l, 3)
	var want []uint64
	for _, seq := range []int{1000, 2} { // more than it has now, and less
		if err := os.WriteFile(s.Position, fmt.Appendf(nil, `{"log":"n/old","seq":%d}`, seq), 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, upTo(4)...)
		stop := running(t, s)
		timelimit.Wait(t, "all", func() bool { return slices.Equal(to.seqs(t), want) })
		stop()
	}
	if err := os.WriteFile(s.Position, []byte(`{"lo`), 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 100)
	s.Failed = func(err error) {
		select {
		case said <- err:
		default:
		}
	}
	running(t, s)
	if err := <-said; err == nil || !strings.Contains(err.Error(), "siem.json") {
		t.Errorf("error %v", err)
	}
}

// TestFormats holds what is sent against what the other side takes.
func TestFormats(t *testing.T) {
	t.Parallel() // it waits most of the time
	take := func(kind ship.Kind, format ship.Format) []byte {
		to := newSIEM(t, nil)
		l, s := newLog(t, audit.Options{}, to)
		record(t, l, 1)
		s.Kind, s.Format = kind, format
		running(t, s)
		timelimit.Wait(t, string(kind), sent(s))
		if len(to.bodies) != 1 {
			t.Fatalf("%s: %d requests", kind, len(to.bodies))
		}
		return to.bodies[0]
	}
	t.Run("ocsf", func(t *testing.T) {
		lines := bytes.Split(bytes.TrimSpace(take(ship.HTTP, ship.OCSF)), []byte("\n"))
		var opened, call map[string]any
		if err := json.Unmarshal(lines[0], &opened); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(lines[1], &call); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]any{
			"class_uid": 6003.0, "category_uid": 6.0, "activity_id": 99.0, "type_uid": 600399.0, "activity_name": "tools/call", "severity_id": 2.0,
			"status_id": 2.0, "status_code": "refused_authorize", "action_id": 2.0, "disposition_id": 2.0, "duration": 1.0, "message": "not granted",
		} {
			if call[name] != want {
				t.Errorf("%s is %v, want %v", name, call[name], want)
			}
		}
		for _, name := range []string{"time", "metadata", "actor", "api", "src_endpoint", "resources", "policy", "unmapped"} { // the class requires the first five
			if call[name] == nil {
				t.Errorf("no %s", name)
			}
		}
		if opened["class_uid"] != 0.0 || opened["type_uid"] != 99.0 || opened["activity_name"] != "opened" {
			t.Errorf("opened: %v", opened)
		}
		raw := call["unmapped"].(map[string]any)["wasmgate"].(map[string]any)
		if raw["principal"] != "alice" || raw["seq"] != 2.0 {
			t.Errorf("the record itself: %v", raw)
		}
	})
	t.Run("otlp", func(t *testing.T) {
		var m logs.LogsData
		if err := proto.Unmarshal(take(ship.OTLP, ship.AsItIs), &m); err != nil {
			t.Fatal(err)
		}
		all := m.ResourceLogs[0].ScopeLogs[0].LogRecords
		var e struct{ Code string }
		if err := json.Unmarshal([]byte(all[1].Body.GetStringValue()), &e); err != nil || e.Code != "refused_authorize" {
			t.Errorf("body %v: %v", all[1].Body, err)
		}
		if len(all) != 2 || all[0].EventName != "wasmgate.opened" || all[1].SeverityText != "WARN" || all[1].Attributes[0].Value.GetStringValue() == all[0].Attributes[0].Value.GetStringValue() {
			t.Errorf("records %v", all)
		}
	})
	t.Run("opa", func(t *testing.T) {
		var all []map[string]any
		if err := json.Unmarshal(take(ship.OPA, ""), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0]["decision_id"] != "c0" || all[0]["path"] != "wasmgate/decision" {
			t.Errorf("decisions %v", all)
		}
	})
}
