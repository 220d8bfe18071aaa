package pointer

import "testing"

func TestEscape(t *testing.T) {
	for name, token := range map[string]string{"": "", "a": "a", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "~/": "~0~1"} {
		if got := Escape(name); got != token {
			t.Errorf("%q is %q, want %q", name, got, token)
		}
		if got := Unescape(token); got != name {
			t.Errorf("%q says %q, want %q", token, got, name)
		}
	}
}
