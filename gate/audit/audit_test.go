package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
)

// options are what all tests need.
var options = audit.Options{Node: "n1", Boot: "b1"}

// done is the record of a call.
func done(id string) *gate.Record {
	return &gate.Record{
		Event: gate.Done,
		Call: &gate.Call{
			ID: id, Action: gate.CallTool, Name: "files__read", Args: gate.MustDoc(`{"path":"/srv/a"}`), Who: gate.Local(),
			Session: gate.SessionKey{Owner: gate.Local().Owner, ID: "s1"},
		},
		Tool:     &gate.Tool{Name: gate.ToolName{Server: "files", Tool: "read"}, Digest: "d1"},
		Decision: gate.Decision{Effect: gate.Allow, Revision: "p1"},
		Code:     codes.OK,
		Result:   gate.MustDoc(`{"content":[]}`),
		Took:     3 * time.Millisecond,
	}
}

// mustOpen opens a log that is closed when the test ends.
func mustOpen(tb testing.TB, path string, o audit.Options) *audit.Log {
	tb.Helper()
	l, err := audit.Open(path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

// write writes n records, with ids from-1, from-2, ...
func write(tb testing.TB, l *audit.Log, from string, n int) {
	tb.Helper()
	for i := range n {
		if err := l.Record(tb.Context(), done(fmt.Sprintf("%s-%d", from, i+1))); err != nil {
			tb.Fatal(err)
		}
	}
}

// verified verifies all files of a log.
func verified(tb testing.TB, path string) audit.Report {
	tb.Helper()
	names, err := audit.Files(path)
	if err != nil {
		tb.Fatal(err)
	}
	report, err := audit.VerifyFiles(names, audit.Head{})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// ids returns the ids of the calls in a log, in order.
func ids(tb testing.TB, path string) []string {
	tb.Helper()
	var ids []string
	for e, err := range audit.Read(tb.Context(), path, audit.Filter{}) {
		if err != nil {
			tb.Fatal(err)
		}
		if e.ID != "" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

var changing = regexp.MustCompile(`"(time|prev)":"[^"]*"`)

func TestLine(t *testing.T) {
	full := func() *gate.Record {
		r := done("c1")
		r.Call.Parent = "c0"
		r.Call.Who = &gate.Principal{
			Owner: gate.Owner{Tenant: "t1", ID: "alice"}, Auth: "bearer", Client: "agent-7", Roles: []string{"dev", "ops"},
		}
		r.Call.ClientName, r.Call.ClientVersion = "inspector", "0.15"
		r.Session = gate.Session{Version: 4, Labels: gate.NewLabels("private"), Top: true}
		r.After = gate.NewLabels("private", "untrusted")
		r.Decision.Reasons, r.Decision.Remedy = []string{"granted"}, "wasmgate grant x"
		r.Snapshot, r.OwnRecord = "sn1", true
		r.Call.Renders, r.Call.OwnName = true, true
		r.Code, r.Err = "refused_sanitize", errors.New("the result cannot be sanitized")
		r.Findings = []gate.Finding{{Rule: "ansi", At: "/content/0/text", Count: 2, Removed: true}, {Rule: "bidi", Count: 1}}
		r.Usage, r.HostCalls = gate.Usage{Fuel: 500, MemoryPeak: 65536, Repeats: 1}, 3
		r.Steps = []step.Time{
			{Step: step.Parse, Took: 2 * time.Microsecond}, {Step: step.Authorize, Took: 30 * time.Microsecond},
			{Step: step.Limit, Took: 0}, {Step: step.Authorize, Took: 5 * time.Microsecond},
		}
		return r
	}
	const prefix = `{"log":"n1/b1","seq":2,"time":T`
	tests := map[string]struct {
		record func() *gate.Record
		mode   string
		want   string
	}{
		"a record has its fields in a fixed order": {full, "",
			`,"event":"done","id":"c1","parent":"c0","action":"tools/call","tenant":"t1","principal":"alice","roles":["dev","ops"],"auth":"bearer",` +
				`"client":{"id":"agent-7","name":"inspector","version":"0.15"},"session":"s1","server":"files","tool":"files__read","tool_digest":"d1","app":{"only":false,"own_name":true},` +
				`"effect":"allow","code":"refused_sanitize","reasons":["granted"],"error":"the result cannot be sanitized","remedy":"wasmgate grant x",` +
				`"labels_before":["private"],"labels_after":["private","untrusted"],"session_version":4,"session_top":true,"own_record":true,` +
				`"policy_revision":"p1","snapshot":"sn1","args_sha256":ARGS,"result_sha256":RESULT,` +
				`"findings":[{"rule":"ansi","at":"/content/0/text","count":2,"removed":true},{"rule":"bidi","count":1,"removed":false}],` +
				`"fuel":500,"memory_peak":65536,"host_calls":3,"repeats":1,"took_us":3000,"steps_us":{"parse":2,"authorize":35,"limit":0},"prev":P}`},
		"what is empty is absent": {func() *gate.Record {
			return &gate.Record{Event: gate.Granted, Call: &gate.Call{ID: "c1"}}
		}, "", `,"event":"granted","id":"c1","prev":P}`},
		"with record full the documents stand on the same line": {func() *gate.Record {
			r := done("c1")
			r.Call.Args = gate.MustDoc("{\n  \"a\": 1.50,\r\n  \"b\": \"x\\ny\"}")
			return r
		}, "full",
			`,"event":"done","id":"c1","action":"tools/call","principal":"local","session":"s1","server":"files","tool":"files__read",` +
				`"tool_digest":"d1","effect":"allow","code":"ok","policy_revision":"p1","args_sha256":ARGS,"result_sha256":RESULT,"took_us":3000,` +
				"\"arguments\":{   \"a\": 1.50,\r   \"b\": \"x\\ny\"},\"result\":{\"content\":[]},\"prev\":P}"},
		"what a client wrote is bounded, escaped and UTF-8": {func() *gate.Record {
			return &gate.Record{Event: gate.Done, Call: &gate.Call{
				ID: "c1", Name: "\x1b[2J\"\\\n\t\u202e\u0085\U000e0041\xff\x7f é✓", ClientName: strings.Repeat("é", 200),
			}}
		}, "", `,"event":"done","id":"c1","client":{"name":"` + strings.Repeat("é", 128) + `…"},` +
			`"tool":"\u001b[2J\"\\\n\t\u202e\u0085\udb40\udc41\ufffd\u007f é✓","prev":P}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			o := options
			o.Record = tt.mode
			l := mustOpen(t, path, o)
			r := tt.record()
			if err := l.Record(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			line := string(bytes.Split(b, []byte("\n"))[1])
			want := prefix + strings.NewReplacer("ARGS", `"`+r.Call.Args.Digest()+`"`, "RESULT", `"`+r.Result.Digest()+`"`).Replace(tt.want)
			got := changing.ReplaceAllStringFunc(line, func(s string) string {
				return map[byte]string{'t': `"time":T`, 'p': `"prev":P`}[s[1]]
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
			if !regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"`).MatchString(line) {
				t.Errorf("no time in microseconds: %s", line)
			}
			if _, err := gate.ParseDoc([]byte(line)); err != nil {
				t.Errorf("line is not a strict JSON: %v", err)
			}
		})
	}
}

func TestListsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, path, options)
	r := done("c1")
	for range 1000 {
		r.Decision.Reasons = append(r.Decision.Reasons, strings.Repeat("x", 10_000))
		r.Findings = append(r.Findings, gate.Finding{Rule: "ansi"})
	}
	r.Err = errors.New(strings.Repeat("x", 1<<20))
	if err := l.Record(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1<<20 {
		t.Errorf("log of %d bytes, %v", info.Size(), err)
	}
}

func TestEntryReadsBackAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Version, o.Snapshot = "v1", "sn1"
	begun := time.Now().Truncate(time.Millisecond)
	l := mustOpen(t, path, o)
	want := audit.Entry{
		Event: audit.Server, Server: "files", Code: "spawn_failed", Error: "no such file",
		Steps: audit.Steps{{Step: "connect", Took: time.Millisecond}, {Step: "a", Took: time.Microsecond}},
	}
	if err := l.Append(want); err != nil {
		t.Fatal(err)
	}
	var got []audit.Entry
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Time.Before(begun) || e.Time.After(time.Now()) {
			t.Errorf("time = %v", e.Time)
		}
		if len(e.Raw) == 0 || bytes.Contains(e.Raw, []byte("\n")) {
			t.Errorf("raw = %q", e.Raw)
		}
		e.Time, e.Raw = time.Time{}, nil
		got = append(got, e)
	}
	opened := audit.Entry{
		Log: "n1/b1", Seq: 1, Event: audit.Opened, Format: 1, Node: "n1", Boot: "b1", Version: "v1", Snapshot: "sn1",
	}
	want.Log, want.Seq, want.Prev = "n1/b1", 2, verifiedFirst(t, path)
	if diff := cmp.Diff([]audit.Entry{opened, want}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func verifiedFirst(t *testing.T, path string) string {
	t.Helper()
	return verified(t, path).First.Hash
}

func TestAppendRefusesWhatIsTheLogsOwn(t *testing.T) {
	l := mustOpen(t, filepath.Join(t.TempDir(), "audit.jsonl"), options)
	for _, event := range []gate.Event{"", audit.Opened} {
		if err := l.Append(audit.Entry{Event: event}); err == nil {
			t.Errorf("event %q was appended", event)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fresh := filepath.Join(dir, "fresh.jsonl")
	tests := map[string]struct {
		path    string
		options audit.Options
		want    string
	}{
		"no node":                 {fresh, audit.Options{}, "no node"},
		"a negative size":         {fresh, audit.Options{Node: "n", MaxSize: -1}, "max size"},
		"another record":          {fresh, audit.Options{Node: "n", Record: "all"}, `record is "all"`},
		"another sync":            {fresh, audit.Options{Node: "n", Sync: "never"}, `sync is "never"`},
		"a folder that cannot be": {filepath.Join(file("plain", ""), "audit.jsonl"), options, "plain"},
		"a file of another kind":  {file("notes.txt", "milk\nbread\n"), options, "does not end with an audit record"},
		"one without a newline":   {file("note.txt", "milk"), options, "does not end with an audit record"},
		"two lines damaged": {
			file("damaged", "{\"log\":\"a\",\"seq\":1}\n{\"log\":\"a\n{\"log\":"), options, "does not end with an audit record",
		},
		"records and then other things": {file("mixed", "{\"log\":\"a\",\"seq\":1}\nmilk\nbread\n"), options, "does not end"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, _ := os.ReadFile(tt.path)
			l, err := audit.Open(tt.path, tt.options)
			if err == nil {
				l.Close()
				t.Fatal("the log was opened")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
			if after, _ := os.ReadFile(tt.path); !bytes.Equal(before, after) {
				t.Errorf("the file was changed to %q", after)
			}
		})
	}
}

func TestOneWriterOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, path, options)
	_, err := audit.Open(path, options)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d is writing it", os.Getpid())) {
		t.Errorf("second open: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, options)
}

func TestClosed(t *testing.T) {
	l := mustOpen(t, filepath.Join(t.TempDir(), "audit.jsonl"), options)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Record(t.Context(), done("c1")); err == nil {
		t.Error("a closed log took a record")
	}
	if err := l.Healthy(); err == nil {
		t.Error("a closed log is healthy")
	}
}

func TestHammer(t *testing.T) {
	const writers, each = 8, 200
	for _, mode := range []string{"group", "always"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			o := options
			o.Sync, o.MaxSize, o.Keep = mode, 64<<10, -1
			l := mustOpen(t, path, o)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() { write(t, l, fmt.Sprint(w), each) })
			}
			wg.Wait()
			seen := map[string]int{} // writer to its last record
			for _, id := range ids(t, path) {
				var n int
				w, rest, _ := strings.Cut(id, "-")
				fmt.Sscan(rest, &n)
				if n != seen[w]+1 {
					t.Fatalf("writer %s: record %d after %d", w, n, seen[w])
				}
				seen[w] = n
			}
			for w := range writers {
				if n := seen[fmt.Sprint(w)]; n != each {
					t.Errorf("writer %d: %d records of %d", w, n, each)
				}
			}
			report := verified(t, path)
			if report.First.Seq != 1 || int(report.Last.Seq) != report.Records {
				t.Errorf("report = %+v", report)
			}
		})
	}
}

func TestRecordOfNoCall(t *testing.T) {
	if err := mustOpen(t, filepath.Join(t.TempDir(), "audit.jsonl"), options).Record(t.Context(), &gate.Record{}); err == nil {
		t.Error("no error")
	}
}
