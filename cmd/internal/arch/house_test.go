package arch

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// The bounds of the house. They are lowered when the code allows it, and never raised.
const (
	mostGroup, mostLines             = 25, 7000 // of a package
	mostBridgeGroup, mostBridgeLines = 12, 5000 // of those that bridge is made of
)

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
		group, lines := mostGroup, mostLines
		if strings.HasPrefix(p.Path, "bridge/internal/") || p.Path == "bridge/gateway" {
			group, lines = mostBridgeGroup, mostBridgeLines
		}
		if len(p.Group) > group {
			t.Errorf("package %s: %d files all need one another, of at most %d: %v", p.Path, len(p.Group), group, p.Group)
		}
		if p.Lines > lines {
			t.Errorf("package %s has %d lines, of at most %d", p.Path, p.Lines, lines)
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
