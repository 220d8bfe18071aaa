package arch

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A bound is how large a package may be: how many of its files all need one another, its lines
// without tests, and the methods of one struct.
type bound struct{ group, lines, methods int }

// upwardMost is how many percent of the uses between the files of a package run upward: its files can
// be read in an order, each after those that use it.
const upwardMost = 12

// bounds are those of all packages.
var bounds = bound{12, 5000, 40}

// exceptions are the packages that are above the bounds, each with bounds of its own. They are
// lowered when the code allows it, and never raised.
var exceptions = map[string]bound{
	"gate": {7, 6200, 40},
}

// aliases are the public aliases, each with the reason why its users need not see what it is.
var aliases = map[string]string{
	"gate.Action": "a word; package gate has its constants",
	"gate.Doc":    "opaque: has methods alone",
	"gate.Labels": "opaque: made by NewLabels",
}

// What users write and read are types of public packages, with names: see [Surface].
func TestSurface(t *testing.T) {
	unraced.Long(t)
	h, err := Measure("../../..")
	if err != nil {
		t.Fatal(err)
	}
	s := h.Surface()
	for _, one := range []struct {
		found   []string
		allowed map[string]string
		wrong   string
	}{
		{s.Unnamed, nil, "is in the public surface, and other modules cannot name it: move it into a public package, or take it out of the signature"},
		{s.Aliases, aliases, "is an alias, and go doc shows nothing of it: move the type here, or use it by its own name"},
	} {
		for _, name := range one.found {
			if one.allowed[name] == "" {
				t.Errorf("%s %s", name, one.wrong)
			}
		}
		for name := range one.allowed {
			if !slices.Contains(one.found, name) {
				t.Errorf("%s is none any more: delete its reason", name)
			}
		}
	}
}

// The code stays as easy to hold in the head as it is: see [Package].
func TestHouse(t *testing.T) {
	unraced.Long(t)
	h, err := Measure("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(h) < 30 {
		t.Fatalf("%d packages: most were not measured", len(h))
	}
	for _, p := range h {
		most, excepted := exceptions[p.Path]
		if !excepted {
			most = bounds
		}
		if len(p.Group) > most.group {
			t.Errorf("package %s: %d files all need one another, of at most %d: %v", p.Path, len(p.Group), most.group, p.Group)
		}
		if p.Lines > most.lines {
			t.Errorf("package %s has %d lines, of at most %d", p.Path, p.Lines, most.lines)
		}
		if p.Methods > most.methods {
			t.Errorf("package %s: %s has %d methods; at most %d are allowed", p.Path, p.Struct, p.Methods, most.methods)
		}
		if up := p.UpwardPercent(); up > upwardMost {
			t.Errorf("package %s: %d %% of the uses between its files run upward, of at most %d: %v", p.Path, up, upwardMost, p.Upward)
		}
		if excepted && len(p.Group) <= bounds.group && p.Lines <= bounds.lines && p.Methods <= bounds.methods {
			t.Errorf("package %s is within the bounds: delete its exception", p.Path)
		}
	}
}

func TestLargestGroup(t *testing.T) {
	for _, tt := range []struct {
		edges map[string][]string
		want  string
	}{
		{nil, ""},
		{map[string][]string{"a": {"b"}, "b": {"c"}}, "?"}, // any one alone
		{map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, "a b c"},
		{map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {"a"}, "x": {"a"}}, "a b c d"},
	} {
		got := largestGroup(tt.edges)
		if tt.want == "?" && len(got) == 1 {
			continue
		}
		if s := strings.Join(got, " "); s != tt.want || !slices.IsSorted(got) {
			t.Errorf("%v: the largest group is %q, want %q", tt.edges, s, tt.want)
		}
	}
}
