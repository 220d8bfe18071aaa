package spelling_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/spelling"
)

func TestSuggest(t *testing.T) {
	known := []string{"timeout", "timeouts", "url", "enabled", "env"}
	for s, want := range map[string]string{"timeuot": "timeout", "timeout": "timeout", "enabeld": "enabled", "ulr": "url", "evn": "env", "x": "", "": "", "command": "", strings.Repeat("timeout", 20): ""} {
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		if got := spelling.Suggest(s, known); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abc", "cb", 2}} {
		if got := spelling.Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
