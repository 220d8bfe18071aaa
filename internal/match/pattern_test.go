package match

import "testing"

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"files__read", "files__read", true}, {"files__read", "files__read_all", false}, {"files__read", "", false},
		{"files__*", "files__read", true}, {"files__*", "files__", true}, {"files__*", "files__*", true}, {"files__*", "files_", false},
		{"*", "", true}, {"*", "x", true}, {"", "", true}, {"", "x", false},
		{"a*b", "a*b", true}, {"a*b", "axb", false}, // a * elsewhere is a letter
	} {
		if got := Pattern(tt.pattern).Matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
		if got := Any([]string{"none", tt.pattern}, tt.name); got != tt.want {
			t.Errorf("any of %q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
	if Any[string](nil, "x") {
		t.Error("none of no patterns matches")
	}
}

func TestOverlaps(t *testing.T) {
	for _, tt := range []struct {
		a, b Pattern
		want bool
	}{
		{"x", "x", true}, {"x", "y", false}, {"x*", "xy", true}, {"x*", "xy*", true}, {"xy", "x", false}, {"x*", "y*", false}, {"*", "x", true}, {"x", "x*", true},
	} {
		if tt.a.Overlaps(tt.b) != tt.want || tt.b.Overlaps(tt.a) != tt.want {
			t.Errorf("%q and %q overlap: want %t", tt.a, tt.b, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for p, ok := range map[Pattern]bool{"": false, "*": true, "a*": true, "a": true, "*a": false, "a**": false, "a*b": false} {
		if err := p.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", p, err)
		}
	}
}
