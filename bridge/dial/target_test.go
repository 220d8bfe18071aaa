package dial_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestTargetIsCanonical(t *testing.T) {
	tests := map[string]struct{ in, out string }{
		"scheme and host in upper case":       {"HTTPS://API.Example.COM/Path", "https://api.example.com/Path"},
		"a dot behind the host":               {"https://api.example.com./", "https://api.example.com/"},
		"the scheme's own port":               {"https://api.example.com:443/", "https://api.example.com/"},
		"an empty port":                       {"http://api.example.com:/", "http://api.example.com/"},
		"no path":                             {"https://api.example.com", "https://api.example.com/"},
		"a query without a path":              {"https://api.example.com?a=b", "https://api.example.com/?a=b"},
		"a fragment":                          {"https://api.example.com/a#b", "https://api.example.com/a"},
		"plain dot segments":                  {"https://api.example.com/a/./b/../c/..", "https://api.example.com/a/"},
		"more parents than there are":         {"https://api.example.com/../../a", "https://api.example.com/a"},
		"a needless escape":                   {"https://api.example.com/%61dm%49n%2d%5F%7e%2e", "https://api.example.com/admIn-_~."},
		"an escape in lower case":             {"https://api.example.com/a%c3%bc%3a", "https://api.example.com/a%C3%BC%3A"},
		"escaped slashes in data":             {"https://api.example.com/https%3A%2F%2Fa.example%2F/x", "https://api.example.com/https%3A%2F%2Fa.example%2F/x"},
		"data that is escaped twice":          {"https://api.example.com/a%2520b", "https://api.example.com/a%2520b"},
		"an escaped slash stays one":          {"https://api.example.com/a%2Fb", "https://api.example.com/a%2Fb"},
		"dots that are not dot segment":       {"https://api.example.com/..a/.../b..", "https://api.example.com/..a/.../b.."},
		"an IPv4 address":                     {"http://93.184.215.14/", "http://93.184.215.14/"},
		"an IPv4 address with a dot behind":   {"http://93.184.215.14./", "http://93.184.215.14/"},
		"an IPv6 address in another spelling": {"http://[2606:2800:21F::00:1]/", "http://[2606:2800:21f::1]/"},
		"an IPv4-mapped IPv6 address":         {"http://[::ffff:93.184.215.14]:81/", "http://93.184.215.14:81/"},
		"a name in punycode":                  {"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := dial.NewTarget("", tt.in)
			if err != nil || got.URL() != tt.out {
				t.Fatalf("%s: %v, %v; want %s", tt.in, got.URL(), err, tt.out)
			}
			if again, err := dial.NewTarget("GET", got.URL()); err != nil || again != got {
				t.Errorf("read again: %+v, %v; want %+v", again, err, got)
			}
		})
	}
}

func TestTargetRefuses(t *testing.T) {
	const host = "https://api.example.com"
	tests := map[string]struct{ method, url string }{
		"nothing":                                {"", ""},
		"no scheme":                              {"", "//api.example.com/"},
		"a relative URL":                         {"", "/etc/passwd"},
		"a file":                                 {"", "file:///etc/passwd"},
		"gopher":                                 {"", "gopher://api.example.com/"},
		"javascript":                             {"", "javascript:alert(1)"},
		"no host":                                {"", "https:///path"},
		"an opaque URL":                          {"", "https:api.example.com"},
		"a user":                                 {"", "https://me@api.example.com/"},
		"a user and a password":                  {"", "https://me:you@api.example.com/"},
		"a host that looks like a user":          {"", "https://api.example.com@evil.example/"},
		"an empty user":                          {"", "https://@api.example.com/"},
		"a host beyond ASCII":                    {"", "https://bücher.example/"},
		"a full-width dot":                       {"", "https://api。example.com/"},
		"an escaped host":                        {"", "https://api%2eexample.com/"},
		"an escaped host beyond ASCII":           {"", "https://b%C3%BCcher.example/"},
		"a name with a hyphen in front":          {"", "https://-a.example/"},
		"an empty label":                         {"", "https://api..example.com/"},
		"two dots behind":                        {"", "https://api.example.com../"},
		"only a dot":                             {"", "https://./"},
		"a label that is too long":               {"", "https://" + strings.Repeat("a", 64) + ".example/"},
		"a name that is too long":                {"", "https://" + strings.Repeat("abc.", 64) + "example/"},
		"a wildcard":                             {"", "https://*.example.com/"},
		"127.0.0.1 with three numbers":           {"", "http://127.0.1/"},
		"127.0.0.1 with two numbers":             {"", "http://127.1/"},
		"127.0.0.1 as one number":                {"", "http://2130706433/"},
		"127.0.0.1 in hex":                       {"", "http://0x7f000001/"},
		"127.0.0.1 in hex, with two":             {"", "http://0x7f.1/"},
		"127.0.0.1 with a hex number":            {"", "http://127.0.0.0x1/"},
		"127.0.0.1 in octal":                     {"", "http://0177.0.0.1/"},
		"127.0.0.1 in octal, as one":             {"", "http://017700000001/"},
		"five numbers":                           {"", "http://1.2.3.4.5/"},
		"a number above 255":                     {"", "http://127.0.0.256/"},
		"a name that ends in a number":           {"", "http://a.1/"},
		"a name that ends in 0x":                 {"", "http://a.0x/"},
		"an IPv6 address without brackets":       {"", "http://::1/"},
		"an IPv6 address with a zone":            {"", "http://[fe80::1%25eth0]/"},
		"an IPv4 address in brackets":            {"", "http://[127.0.0.1]/"},
		"a name in brackets":                     {"", "http://[localhost]/"},
		"port 0":                                 {"", host + ":0/"},
		"a port above 65535":                     {"", host + ":65536/"},
		"a port in words":                        {"", host + ":http/"},
		"a space":                                {"", host + "/a b"},
		"a newline":                              {"", host + "/a\nb"},
		"a carriage return and a header":         {"", host + "/a\r\nHost: evil"},
		"a NUL":                                  {"", host + "/a\x00"},
		"a backslash":                            {"", host + `/a\..\b`},
		"a backslash for the slashes":            {"", `https:\\api.example.com\`},
		"a path beyond ASCII":                    {"", host + "/ü"},
		"a query beyond ASCII":                   {"", host + "/?ü"},
		"an escaped parent":                      {"", host + "/a/%2e%2e/b"},
		"a half-escaped parent":                  {"", host + "/a/.%2E/b"},
		"an escaped dot segment":                 {"", host + "/a/%2e/b"},
		"a parent behind an escaped slash":       {"", host + "/a%2f..%2fb"},
		"a parent behind an escaped backslash":   {"", host + "/a%5c..%5cb"},
		"a parent that is escaped twice":         {"", host + "/a/%252e%252e/b"},
		"a slash that is escaped twice":          {"", host + "/a%252f..%252fb"},
		"a parent with parameters":               {"", host + "/a/..;x=y/b"},
		"escapes over escapes":                   {"", host + "/%2525252e"},
		"an empty segment":                       {"", host + "/v1//admin"},
		"an empty segment in front":              {"", host + "//v1"},
		"an empty segment at the end":            {"", host + "/v1//"},
		"an empty segment with parameters":       {"", host + "/v1/;a=b/admin"},
		"an escaped slash in front":              {"", host + "/v1/%2fadmin"},
		"an escaped backslash in front":          {"", host + "/v1/%5Cadmin"},
		"a slash in front that is escaped twice": {"", host + "/v1/%252fadmin"},
		"a letter that is escaped twice":         {"", host + "/%2561dmin"},
		"an escaped NUL":                         {"", host + "/a%00b"},
		"an escaped newline":                     {"", host + "/a%0d%0ab"},
		"an escape that is none":                 {"", host + "/a%zz"},
		"a path that Go would escape anew":       {"", host + `/a%2Fb"`},
		"a placeholder in the path":              {"", host + "/{{secret:API}}"},
		"a placeholder in the query":             {"", host + "/?key={{secret:API}}"},
		"a URL that is too long":                 {"", host + "/" + strings.Repeat("a", 8<<10)},
		"CONNECT":                                {"CONNECT", host},
		"TRACE":                                  {"TRACE", host},
		"a method in lower case":                 {"get", host},
		"a method with a line end":               {"GET / HTTP/1.1\r\nX:", host},
		"a method that is too long":              {strings.Repeat("A", 33), host},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := dial.NewTarget(tt.method, tt.url); err == nil {
				t.Errorf("%s %q is read as %s", tt.method, tt.url, got)
			}
		})
	}
}

func TestTargetHidesTheQuery(t *testing.T) {
	got, err := dial.NewTarget("GET", "https://api.example.com/a?token=hidden")
	if err != nil || got.String() != "https://api.example.com/a" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestTargetHasOneReading spells a path in ways that servers take for the same one.
// Each is refused, or is judged as that path.
func TestTargetHasOneReading(t *testing.T) {
	rnd := seed.Rand(t)
	escape := func(s string) string {
		format := []string{"%%%02x", "%%%02X", "%%25%02x"}[rnd.IntN(3)]
		return fmt.Sprintf(format, s[0])
	}
	slash := func() string {
		return []string{"/", "/", "/", "//", "/./", "/;a=b/", "/x/../", "/%2f", "%2F", "%5c", "/%252f", ";a/", "/.;/", "/x/%2e%2e/", "/x%2f..%2f"}[rnd.IntN(15)]
	}
	read, plain := 0, 0
	for range 20_000 {
		path := "/v1"
		for _, name := range []string{"admin", "x"} {
			path += slash()
			for i := range len(name) {
				if rnd.IntN(8) == 0 {
					path += escape(name[i:])
				} else {
					path += name[i : i+1]
				}
			}
		}
		got, err := dial.NewTarget("GET", "https://api.example.com"+path)
		if err != nil {
			continue
		}
		read++
		if want := []string{"v1", "admin", "x"}; !slices.Equal(got.Names(), want) {
			t.Fatalf("%s is read as %q", path, got.Names())
		}
		if !strings.ContainsAny(got.Path, "%;") {
			plain++
			if got.Path != "/v1/admin/x" {
				t.Fatalf("%s is judged as %s", path, got.Path)
			}
		}
	}
	if read < 1000 || plain < 500 {
		t.Errorf("%d were read, %d of them without escapes and parameters", read, plain)
	}
}
