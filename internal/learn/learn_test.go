package learn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/learn"
	"github.com/wasmgate/wasmgate/policy"
)

// sessions are of one principal, one call each.
func sessions(calls ...policy.RecordedCall) func(func(policy.RecordedSession, error) bool) {
	return func(yield func(policy.RecordedSession, error) bool) {
		for i, c := range calls {
			if !yield(policy.RecordedSession{ID: fmt.Sprint(i), Who: gate.Local(), Calls: []policy.RecordedCall{c}}, nil) {
				return
			}
		}
	}
}

func call(effect gate.Effect, tool, args string) policy.RecordedCall {
	c := policy.RecordedCall{Tool: tool, Effect: effect}
	if args != "" {
		c.Args = gate.MustDoc(args)
	}
	return c
}

func TestFrom(t *testing.T) {
	each := func(values ...string) (calls []policy.RecordedCall) {
		for _, v := range values {
			calls = append(calls, call(gate.Allow, "s__t", fmt.Sprintf(`{"a":%q}`, v)))
		}
		return calls
	}
	for name, tt := range map[string]struct {
		calls  []policy.RecordedCall
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

// How well it fits is said of what it was not made of.
func TestHeld(t *testing.T) {
	var calls []policy.RecordedCall
	for i := range 8 {
		calls = append(calls, call(gate.Allow, "s__t", fmt.Sprintf(`{"a":"/a/b/%d"}`, i)))
	}
	p, err := learn.From(sessions(append(calls, call(gate.Allow, "s__t", `{"a":"/a/c"}`), call(gate.Allow, "s__new", `{}`))...))
	if err != nil || p.Later != 2 || p.Held != 2 {
		t.Errorf("of %d held %d, %v; want all of 2", p.Later, p.Held, err)
	}
}
