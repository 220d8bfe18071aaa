package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// logged returns the lines, each with its newline, of a log with an opened
// record and n calls.
func logged(tb testing.TB, n int) []string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "audit.jsonl")
	l := mustOpen(tb, path, options)
	write(tb, l, "c", n)
	l.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	return lines[:len(lines)-1]
}

func TestVerify(t *testing.T) {
	const n = 6 // lines
	tests := map[string]struct {
		change func(lines []string) []string
		line   int    // named in the error; 0 if there is none
		reason string // in the error
		torn   int64
	}{
		"a log as written": {func(l []string) []string { return l }, 0, "", 0},
		"an empty file":    {func(l []string) []string { return nil }, 0, "", 0},
		"a half line at the end, as a killed process leaves it": {func(l []string) []string {
			return append(l[:5], l[5][:40])
		}, 0, "", 40},
		"a whole line without its newline": {func(l []string) []string {
			return append(l[:5], strings.TrimSuffix(l[5], "\n"))
		}, 0, "", -1},
		"a record was changed": {func(l []string) []string {
			l[2] = strings.Replace(l[2], `"code":"ok"`, `"code":"no"`, 1)
			return l
		}, 3, "record 3 was changed", 0},
		"a record got white space": {func(l []string) []string {
			l[2] = strings.Replace(l[2], `:`, `: `, 1)
			return l
		}, 3, "record 3 was changed", 0},
		"the first record was changed": {func(l []string) []string {
			l[0] = strings.Replace(l[0], `"node":"n1"`, `"node":"n2"`, 1)
			return l
		}, 1, "record 1 was changed", 0},
		"a record was removed": {func(l []string) []string {
			return slices.Delete(l, 2, 3)
		}, 3, "is record 4 where 3 was expected", 0},
		"the first records were removed": {func(l []string) []string {
			return l[2:]
		}, 1, "those before record 3 were removed", 0},
		"two records changed places": {func(l []string) []string {
			l[2], l[3] = l[3], l[2]
			return l
		}, 3, "is record 4 where 3 was expected", 0},
		"a record was put in twice": {func(l []string) []string {
			return slices.Insert(l, 3, l[2])
		}, 4, "is record 3 where 4 was expected", 0},
		"a made up record was put in, the numbers fixed": {func(l []string) []string {
			for i := 3; i < len(l); i++ {
				l[i] = strings.Replace(l[i], fmt.Sprintf(`"seq":%d`, i+1), fmt.Sprintf(`"seq":%d`, i+2), 1)
			}
			return slices.Insert(l, 3, strings.Replace(l[2], `"seq":3`, `"seq":4`, 1))
		}, 3, "record 3 was changed", 0},
		"a record lost its prev": {func(l []string) []string {
			l[4] = l[4][:strings.Index(l[4], `,"prev"`)] + "}\n"
			return l
		}, 4, "or the prev of the one after", 0},
		"a later file lost its first prev": {func(l []string) []string {
			return []string{strings.Replace(l[0], `"seq":1`, `"seq":9`, 1)}
		}, 1, "record 9 has no prev", 0},
		"a record is of another log": {func(l []string) []string {
			l[5] = strings.Replace(l[5], `n1/b1`, `n2/b1`, 1)
			return l
		}, 6, "is of log n2/b1", 0},
		"a line is not JSON":            {func(l []string) []string { l[3] = "milk\n"; return l }, 4, "is not an audit record", 0},
		"a line is empty":               {func(l []string) []string { l[3] = "\n"; return l }, 4, "is not an audit record", 0},
		"a line is other JSON":          {func(l []string) []string { l[3] = "{}\n"; return l }, 4, "has no log or seq", 0},
		"a line is longer than allowed": {func(l []string) []string { return append(l[:1], strings.Repeat("x", 65<<20)+"\n") }, 2, "longer", 0},
		"a later format": {func(l []string) []string {
			l[0] = strings.Replace(l[0], `"format":1`, `"format":2`, 1)
			return l
		}, 1, "of format 2", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lines := tt.change(logged(t, n-1))
			report, err := audit.Verify(strings.NewReader(strings.Join(lines, "")))
			if tt.line == 0 {
				whole := len(lines)
				if tt.torn < 0 {
					tt.torn = int64(len(lines[whole-1]))
				}
				if tt.torn > 0 {
					whole--
				}
				if err != nil || report.Records != whole || report.Torn != tt.torn {
					t.Errorf("report = %+v, err = %v", report, err)
				}
				return
			}
			var broken *audit.ChainError
			if !errors.As(err, &broken) || broken.Line != tt.line || !strings.Contains(broken.Reason, tt.reason) {
				t.Errorf("err = %v, want line %d: %s", err, tt.line, tt.reason)
			}
		})
	}
}

// What follows nothing can only be seen by who has kept a head.
func TestVerifyHead(t *testing.T) {
	lines := logged(t, 5)
	report, err := audit.Verify(strings.NewReader(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	head := report.Last
	tests := map[string]struct {
		lines []string
		head  audit.Head
		want  string // in the error; "" if there is none
	}{
		"the log as it was":           {lines, head, ""},
		"the log has grown since":     {lines, headOf(t, lines[:4]), ""},
		"no head":                     {lines[:2], audit.Head{}, ""},
		"records were cut off":        {lines[:5], head, "line 6: the log ends with record 5; head names record 6: records were cut off"},
		"all records were cut off":    {nil, head, "the log ends with record 0"},
		"half of the last was cut":    {append(slices.Clone(lines[:5]), lines[5][:9]), head, "the log ends with record 5"},
		"the last record was changed": {append(slices.Clone(lines[:5]), strings.Replace(lines[5], `"ok"`, `"no"`, 1)), head, "is not the one that head names"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(path, []byte(strings.Join(tt.lines, "")), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := audit.VerifyFiles([]string{path}, tt.head)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

func headOf(t *testing.T, lines []string) audit.Head {
	t.Helper()
	report, err := audit.Verify(strings.NewReader(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return report.Last
}

func TestParseHead(t *testing.T) {
	want := audit.Head{Seq: 12, Hash: strings.Repeat("ab", 32)}
	got, err := audit.ParseHead(want.String())
	if err != nil || got != want {
		t.Errorf("head = %v, %v; want %v", got, err, want)
	}
	for _, s := range []string{"", "12", "12:", ":" + want.Hash, "0:" + want.Hash, "-1:" + want.Hash, "12:abcd", "12:" + strings.Repeat("z", 64)} {
		if _, err := audit.ParseHead(s); err == nil {
			t.Errorf("%q was read as a head", s)
		}
	}
}

// rotating writes a log of several files.
func rotating(tb testing.TB) (path string, names []string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "audit.jsonl")
	o := options
	o.MaxSize = 1500
	l := mustOpen(tb, path, o)
	write(tb, l, "c", 10)
	l.Close()
	names, err := audit.Files(path)
	if err != nil {
		tb.Fatal(err)
	}
	if len(names) < 4 {
		tb.Fatalf("%d files", len(names))
	}
	return path, names
}

func TestVerifyFiles(t *testing.T) {
	edit := func(t *testing.T, path string, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		change func(t *testing.T, names []string) []string
		want   string // in the error; "" if there is none
	}{
		"files as written":           {func(t *testing.T, names []string) []string { return names }, ""},
		"the oldest file is gone":    {func(t *testing.T, names []string) []string { return names[1:] }, ""},
		"a file is missing":          {func(t *testing.T, names []string) []string { return slices.Delete(names, 1, 2) }, "audit-000003.jsonl: line 1: is record"},
		"files in another order":     {func(t *testing.T, names []string) []string { slices.Reverse(names); return names }, "was expected"},
		"no file":                    {func(t *testing.T, names []string) []string { return nil }, "no file"},
		"a file that does not exist": {func(t *testing.T, names []string) []string { return append(names, "gone.jsonl") }, "gone.jsonl"},
		"the end of a file was cut": {func(t *testing.T, names []string) []string {
			edit(t, names[1], func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] })
			return names
		}, "audit-000003.jsonl: line 1: is record"},
		"the last record of a file was changed": {func(t *testing.T, names []string) []string {
			edit(t, names[1], func(b []byte) []byte {
				at := bytes.LastIndex(b, []byte(`"ok"`))
				b[at+1] = 'n'
				return b
			})
			return names
		}, "audit-000003.jsonl: line 1: does not continue"},
		"an old file ends within a line": {func(t *testing.T, names []string) []string {
			edit(t, names[1], func(b []byte) []byte { return b[:len(b)-1] })
			return names
		}, "audit-000002.jsonl: line"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, names := rotating(t)
			_, err := audit.VerifyFiles(tt.change(t, names), audit.Head{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestHeadInAFileThatIsGone(t *testing.T) {
	_, names := rotating(t)
	_, err := audit.VerifyFiles(names[2:], audit.Head{Seq: 1, Hash: strings.Repeat("0", 64)})
	if err == nil || !strings.Contains(err.Error(), "in a file before") {
		t.Errorf("err = %v", err)
	}
}

// FuzzVerify changes one byte of a log: every change breaks the chain, or gives
// it another head.
func FuzzVerify(f *testing.F) {
	good := []byte(strings.Join(logged(f, 4), ""))
	report, err := audit.Verify(bytes.NewReader(good))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, byte('x'), []byte(""))
	f.Add(len(good)-1, byte(' '), []byte("{\"log\":\"a\",\"seq\":1,\"event\":\"opened\"}\n"))
	f.Add(300, byte('\n'), []byte("{\"seq\":1e99}\n[]\n\x00"))
	f.Fuzz(func(t *testing.T, at int, to byte, foreign []byte) {
		audit.Verify(bytes.NewReader(foreign)) // does not panic

		bad := bytes.Clone(good)
		if at < 0 || at >= len(bad) || bad[at] == to {
			return
		}
		bad[at] = to
		if got, err := audit.Verify(bytes.NewReader(bad)); err == nil && got.Last == report.Last {
			t.Errorf("byte %d changed from %q to %q, and the log verifies", at, good[at], to)
		}
	})
}
