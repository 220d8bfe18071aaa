package learn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/draft/learn"
	"github.com/wasmgate/wasmgate/policy/study"
)

// sessions are of one principal, one call each.
func sessions(calls ...study.RecordedCall) func(func(study.RecordedSession, error) bool) {
	return func(yield func(study.RecordedSession, error) bool) {
		for i, c := range calls {
			if !yield(study.RecordedSession{ID: fmt.Sprint(i), Who: gate.Local(), Calls: []study.RecordedCall{c}}, nil) {
				return
			}
		}
	}
}

func call(effect gate.Effect, tool, args string) study.RecordedCall {
	c := study.RecordedCall{Tool: tool, Effect: effect}
	if args != "" {
		c.Args = gate.MustDoc(args)
	}
	return c
}

func TestFrom(t *testing.T) {
	each := func(values ...string) (calls []study.RecordedCall) {
		for _, v := range values {
			calls = append(calls, call(gate.Allow, "s__t", fmt.Sprintf(`{"a":%q}`, v)))
		}
		return calls
	}
	lists := func(values ...string) (calls []study.RecordedCall) {
		for _, v := range values {
			calls = append(calls, call(gate.Allow, "s__t", `{"a":`+v+`}`))
		}
		return calls
	}
	for name, tt := range map[string]struct {
		calls  []study.RecordedCall
		kind   string // "" for no bound
		values []string
	}{
		"paths":                   {each("/a/b/c", "/a/b/d", "/a/b/e/f", "/a/b/g", "/a/b/h"), "folder", []string{"/a/b"}},
		"paths of everything":     {each("/a/b/c", "/d/e", "/f/g/h", "/i", "/j"), "", nil},
		"paths with two readings": {each("/a/b/c", "/a/b/../d", "/a/b/e", "/a/b/f", "/a/b/g"), "", nil},
		"URLs":                    {each("https://A.example/1", "https://a.example/2", "http://b.example/", "https://a.example/3", "https://a.example/4"), "hosts", []string{"a.example", "b.example"}},
		"URLs with a user":        {each("https://u@a.example/1", "https://a.example/2", "https://a.example/3", "https://a.example/4", "https://a.example/5"), "", nil},
		"a list":                  {each("x", "y", "x", "y", "x"), "values", []string{"x", "y"}},
		"texts":                   {each("p", "q", "r", "s", "t"), "", nil},
		"lists of paths":          {lists(`["/a/b/c","/a/b/d"]`, `["/a/b/e"]`, `[]`, `["/a/b/f"]`, `["/a/b/g"]`), "folder", []string{"/a/b"}},
		"lists and texts":         {append(lists(`["/a/b/c"]`, `["/a/b/d"]`, `["/a/b/e"]`, `["/a/b/f"]`), each("/a/b/g")...), "", nil},
		"lists in lists":          {lists(`[["x"]]`, `[["x"]]`, `[["x"]]`, `[["x"]]`, `[["x"]]`), "", nil},
		"too few":                 {each("x", "x", "x", "x"), "", nil},
		"not always a text":       {append(each("x", "x", "x", "x", "x"), call(gate.Allow, "s__t", `{"a":1}`)), "", nil},
	} {
		p, err := learn.From(sessions(tt.calls...))
		if err != nil {
			t.Fatal(err)
		}
		var kind string
		var values []string
		if len(p.Bounds) > 0 {
			kind, values = p.Bounds[0].Kind, p.Bounds[0].Values
		}
		if kind != tt.kind || !slices.Equal(values, tt.values) || len(p.Grants) != 1 || p.Grants[0].Tools["s__t"] != len(tt.calls) {
			t.Errorf("%s: %s %q, grants %v; want %s %q", name, kind, values, p.Grants, tt.kind, tt.values)
		}
	}
}

// What was refused grants nothing, and what was not kept narrows nothing.
func TestOnlyWhatPassed(t *testing.T) {
	p, err := learn.From(sessions(
		call(gate.Deny, "s__drop", `{}`), call(gate.Ask, "s__ask", `{}`), call("", "s__unknown", `{}`),
		call(gate.Allow, "s__t", ""), call(gate.Allow, "s__t", ""),
	))
	if err != nil || len(p.Grants) != 1 || len(p.Grants[0].Tools) != 1 || p.Refused != 3 || p.Unseen != 2 || len(p.Bounds) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Names that mean more than themselves in a file of grants grant nothing: they can be another's words.
func TestLiteralNames(t *testing.T) {
	var recorded []study.RecordedSession
	for i, who := range []string{"*", "bo*", "*/ann", "role:admin", "null", "true", "yes", "y", "ann"} {
		recorded = append(recorded, study.RecordedSession{ID: fmt.Sprint(i), Who: &gate.Principal{Owner: gate.Owner{ID: who}}, Calls: []study.RecordedCall{
			call(gate.Allow, "*", `{}`), call(gate.Allow, "s__*", `{}`), call(gate.Allow, "null", `{}`),
		}})
	}
	p, err := learn.From(func(yield func(study.RecordedSession, error) bool) {
		for _, s := range recorded {
			if !yield(s, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	file := p.GrantsFile(nil)
	grants, err := policydata.ParseGrants("grants.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	var to []string
	for _, g := range grants {
		to = append(to, g.To...)
		if !slices.Equal(g.Tools, []string{"null"}) {
			t.Errorf("%q are granted", g.Tools)
		}
	}
	slices.Sort(to)
	if want := []string{"ann", "null", "true", "y", "yes"}; !slices.Equal(to, want) {
		t.Errorf("grants are to %q, want %q\n%s", to, want, file)
	}
	if limits := p.RateLimits(); strings.Contains(limits, "*") || strings.Contains(limits, "[null]") {
		t.Errorf("rate limits:\n%s", limits)
	}
}

// How well it fits is said of what it was not made of.
func TestHeld(t *testing.T) {
	var calls []study.RecordedCall
	for i := range 8 {
		calls = append(calls, call(gate.Allow, "s__t", fmt.Sprintf(`{"a":"/a/b/%d"}`, i)))
	}
	p, err := learn.From(sessions(append(calls, call(gate.Allow, "s__t", `{"a":"/a/c"}`), call(gate.Allow, "s__new", `{}`))...))
	if err != nil || p.Later != 2 || p.Held != 2 {
		t.Fatalf("of %d held %d, %v; want all of 2", p.Later, p.Held, err)
	}
	want := []learn.Refusal{{"8", "s__t", "a goes beyond every path below \"/a/b\""}, {"9", "s__new", "no earlier call of local had this tool"}}
	if !slices.Equal(p.Refusals, want) {
		t.Errorf("refusals %v, want %v", p.Refusals, want)
	}
}

// What nothing narrows is named, with the reason.
func TestOpen(t *testing.T) {
	var calls []study.RecordedCall
	for i := range 6 {
		calls = append(calls, call(gate.Allow, "s__t", fmt.Sprintf(`{"n":%d,"body":"text %d"}`, i, i)))
	}
	p, err := learn.From(sessions(calls...))
	if err != nil || len(p.Bounds) != 0 || len(p.Open) != 2 || p.Open[0].Argument != "body" || p.Open[0].Distinct != 6 || p.Open[1].Why == "" {
		t.Errorf("bounds %v, open %v, %v", p.Bounds, p.Open, err)
	}
}

// A rate is twice what was seen; calls that come faster later are refused by it.
func TestRates(t *testing.T) {
	start := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	at := func(after time.Duration) study.RecordedCall {
		c := call(gate.Allow, "s__t", `{}`)
		c.Time = start.Add(after)
		return c
	}
	var calls []study.RecordedCall // three at once each hour
	for hour := range 4 {
		for range 3 {
			calls = append(calls, at(time.Duration(hour)*2*time.Hour))
		}
	}
	p, err := learn.From(sessions(calls...))
	want := []learn.Rate{{To: "local", Tool: "s__t", Calls: 6, Burst: 6, Busiest: 3, Close: 3}}
	if err != nil || !slices.Equal(p.Rates, want) || p.Held != 0 {
		t.Fatalf("%v, held %d, %v; want %v", p.Rates, p.Held, err, want)
	}
	if got, want := p.RateLimits(), "# Seen: 3 calls in the busiest hour, 3 close together.\n- {to: [local], tools: [s__t], calls: 6, burst: 6, per: 1h, key: [principal, tool]}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	one := study.RecordedSession{ID: "late", Who: gate.Local()}
	for range 8 {
		one.Calls = append(one.Calls, at(20*time.Hour))
	}
	p, err = learn.From(func(yield func(study.RecordedSession, error) bool) {
		for s := range sessions(calls[:4]...) {
			if !yield(s, nil) {
				return
			}
		}
		yield(one, nil)
	})
	if err != nil || p.Held != 0 {
		t.Fatalf("of calls too few for a rate %d are held, %v", p.Held, err)
	}
	p, err = learn.From(func(yield func(study.RecordedSession, error) bool) {
		n := 0
		for s := range sessions(calls...) {
			if n++; n > 9 {
				break
			}
			if !yield(s, nil) {
				return
			}
		}
		yield(one, nil) // a tenth, so that the last two sessions are later
	})
	if err != nil || p.Later != 9 || p.Held != 2 || p.Refusals[0].Why != "more than 6 calls in an hour, or 6 at once" {
		t.Errorf("of %d held %d %v, %v; want 2 of 9", p.Later, p.Held, p.Refusals, err)
	}
}

// What callers have written is never a line of its own in what a person is to apply.
func TestRulesAreNobodyElses(t *testing.T) {
	var calls []study.RecordedCall
	for i := range 5 {
		calls = append(calls,
			call(gate.Allow, "s__t", fmt.Sprintf(`{"path":"/srv/a\nallow contains \"x\" if true #/%d","b\nallow contains \"x\" if true #":"%d"}`, i, i)),
			call(gate.Allow, "s__u", fmt.Sprintf(`{"url":"https://a.example/%d?\r\n"}`, i)))
	}
	p, err := learn.From(sessions(calls...))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Bounds) == 0 || len(p.Open) == 0 {
		t.Fatalf("nothing is said of them: %+v", p)
	}
	for _, text := range []string{p.Rules(), p.Tests(), p.RateLimits(), p.GrantsFile(nil)} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "allow") {
				t.Errorf("a caller's line: %s", line)
			}
		}
	}
}
