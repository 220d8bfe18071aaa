package plain_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/policy/internal/plain"
)

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, root string
		want       bool
	}{
		{"/srv/a", "/srv/a", true}, {"/srv/a/b", "/srv/a/", true}, {"/srv/a/b", "/", true}, {"/srv/ab", "/srv/a", false}, {"/srv", "/srv/a", false},
		{`C:\a\b`, `c:\a`, true}, {`C:\a\b`, `C:\`, true}, {`C:\a`, `D:\`, false}, {"C:", "C:", false}, {`C:\a. \b`, `C:\`, false}, {`C:\PROGRA~1`, `C:\`, false},
		{"srv/a", "/", false}, {"", "", false}, {"/srv/a", "", false}, {"/srv/a//b", "/srv/a", false}, {"/srv/a/./b", "/srv/a", false},
		{"/srv/a/../b", "/srv", false}, {"/srv/a/%2e%2e", "/srv/a", false}, {`/srv/a\b`, "/srv/a", false}, {"/srv/a\uff0fb", "/srv/a", false}, {"/srv/a\u202e", "/srv/a", false},
	} {
		if got := plain.Within(tt.path, tt.root); got != tt.want {
			t.Errorf("%q within %q: %t", tt.path, tt.root, got)
		}
	}
}

func TestParseURL(t *testing.T) {
	for s, want := range map[string]string{
		"https://A.Example": "https://a.example /", "https://a.example:443/b?c#d": "https://a.example /b", "http://a.example:443/": "http://a.example:443 /",
		"wss://[2001:DB8::1]:8443/x": "wss://[2001:db8::1]:8443 /x", "http://127.0.0.1/": "http://127.0.0.1 /",
		"ftp://a.example/": "", "https://a.example:70000/": "", "https://u@a.example/": "", "https://a.example./": "", "http://0177.0.0.1/": "", "http://0x7f.1/": "",
		"https://a.example/..": "", "https://a.example/%2e%2e/": "", "https://a.example/..;x/": "", "https://a.example/%2f": "", `https://a.example\b`: "", "a.example": "",
		"https://[::ffff:127.0.0.1]/": "",
	} {
		u, ok := plain.ParseURL(s)
		if got := u.Origin() + " " + u.Path; ok != (want != "") || ok && got != want {
			t.Errorf("%q: %t, %s, want %s", s, ok, got, want)
		}
	}
}
