package dial_test

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

func TestRules(t *testing.T) {
	const host = "https://api.example.com"
	v1 := dial.Rule{Origin: host, Path: "/v1"}
	tests := map[string]struct {
		rule        dial.Rule
		method, url string
		allowed     bool
	}{
		"the origin":                             {dial.Rule{Origin: host}, "GET", host + "/any/path?x", true},
		"the origin, spelt otherwise":            {dial.Rule{Origin: "HTTPS://API.example.com.:443/"}, "GET", host, true},
		"another scheme":                         {dial.Rule{Origin: host}, "GET", "http://api.example.com/", false},
		"another scheme at the same port":        {dial.Rule{Origin: host}, "GET", "http://api.example.com:443/", false},
		"another port":                           {dial.Rule{Origin: host}, "GET", host + ":8443/", false},
		"a name below":                           {dial.Rule{Origin: host}, "GET", "https://x.api.example.com/", false},
		"a name above":                           {dial.Rule{Origin: host}, "GET", "https://example.com/", false},
		"a name that begins alike":               {dial.Rule{Origin: host}, "GET", "https://api.example.com.evil.example/", false},
		"a name that ends alike":                 {dial.Rule{Origin: host}, "GET", "https://evilapi.example.com/", false},
		"HEAD by default":                        {dial.Rule{Origin: host}, "HEAD", host, true},
		"no POST by default":                     {dial.Rule{Origin: host}, "POST", host, false},
		"a method of the rule":                   {dial.Rule{Origin: host, Methods: []string{"POST"}}, "POST", host, true},
		"no GET if methods are given":            {dial.Rule{Origin: host, Methods: []string{"POST"}}, "GET", host, false},
		"the path itself":                        {v1, "GET", host + "/v1", true},
		"the path with a slash":                  {v1, "GET", host + "/v1/", true},
		"a path below":                           {v1, "GET", host + "/v1/a/b", true},
		"a path that begins alike":               {v1, "GET", host + "/v10", false},
		"a path above":                           {v1, "GET", host + "/", false},
		"a path in another case":                 {v1, "GET", host + "/V1/", false},
		"a path that is spelt otherwise":         {v1, "GET", host + "/%761/x", true},
		"out of the path":                        {v1, "GET", host + "/v1/../admin", false},
		"into the path":                          {v1, "GET", host + "/admin/../v1/x", true},
		"an escaped slash is not a boundary":     {v1, "GET", host + "/v1%2fx", false},
		"a rule's path that ends in a slash":     {dial.Rule{Origin: host, Path: "/v1/"}, "GET", host + "/v1", true},
		"a rule's path that is a slash":          {dial.Rule{Origin: host, Path: "/"}, "GET", host + "/v1", true},
		"a rule's path with an escape":           {dial.Rule{Origin: host, Path: "/a%2Fb"}, "GET", host + "/a%2fb/c", true},
		"a rule's path with an escape, unfolded": {dial.Rule{Origin: host, Path: "/a%2Fb"}, "GET", host + "/a/b", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target, err := dial.NewTarget(tt.method, tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := compile(t, tt.rule).Allow(target); got != tt.allowed {
				t.Errorf("%s allows %s %s: %v", tt.rule, tt.method, tt.url, got)
			}
		})
	}
}

func TestNoRulesAllowNothing(t *testing.T) {
	target, err := dial.NewTarget("GET", "https://api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if allowed, private := (dial.Rules{}).Allow(target); allowed || private {
		t.Error("allowed")
	}
}

func TestPrivateIsOfItsRuleOnly(t *testing.T) {
	rules := compile(t,
		dial.Rule{Origin: "http://a.example", Path: "/in", Private: true},
		dial.Rule{Origin: "http://a.example", Path: "/out"},
		dial.Rule{Origin: "http://b.example"})
	for url, want := range map[string]bool{"http://a.example/in/x": true, "http://a.example/out": false, "http://b.example/in": false} {
		target, err := dial.NewTarget("GET", url)
		if err != nil {
			t.Fatal(err)
		}
		if allowed, private := rules.Allow(target); !allowed || private != want {
			t.Errorf("%s: allowed %v, private %v", url, allowed, private)
		}
	}
}

func TestBadRules(t *testing.T) {
	const host = "https://api.example.com"
	tests := map[string]struct {
		rule dial.Rule
		says string
	}{
		"the zero rule":                         {dial.Rule{}, "scheme"},
		"no scheme":                             {dial.Rule{Origin: "api.example.com"}, "scheme"},
		"another scheme":                        {dial.Rule{Origin: "ftp://api.example.com"}, "scheme"},
		"a wildcard":                            {dial.Rule{Origin: "https://*.example.com"}, "wildcard"},
		"an origin with a path":                 {dial.Rule{Origin: host + "/v1"}, "alone"},
		"an origin with a query":                {dial.Rule{Origin: host + "?a"}, "alone"},
		"an origin with an empty query":         {dial.Rule{Origin: host + "?"}, "alone"},
		"an origin with a fragment":             {dial.Rule{Origin: host + "#a"}, "alone"},
		"an origin with a user":                 {dial.Rule{Origin: "https://me@api.example.com"}, "user"},
		"an origin beyond ASCII":                {dial.Rule{Origin: "https://bücher.example"}, "xn--"},
		"loopback, not private":                 {dial.Rule{Origin: "http://127.0.0.1:8080"}, "private: true"},
		"metadata, not private":                 {dial.Rule{Origin: "http://169.254.169.254"}, "private: true"},
		"multicast":                             {dial.Rule{Origin: "http://224.0.0.1", Private: true}, "cannot be granted"},
		"a method in lower case":                {dial.Rule{Origin: host, Methods: []string{"get"}}, "upper-case"},
		"an empty method":                       {dial.Rule{Origin: host, Methods: []string{""}}, "not allowed"},
		"CONNECT":                               {dial.Rule{Origin: host, Methods: []string{"CONNECT"}}, "CONNECT"},
		"a path without a slash":                {dial.Rule{Origin: host, Path: "v1"}, "path:"},
		"a path that goes on with the host":     {dial.Rule{Origin: host, Path: ".evil.example/"}, "path:"},
		"a path with a dot segment":             {dial.Rule{Origin: host, Path: "/a/../b"}, "path:"},
		"a path with a hidden dot segment":      {dial.Rule{Origin: host, Path: "/a/%2e%2e/b"}, "path:"},
		"a path with a needless escape":         {dial.Rule{Origin: host, Path: "/%61%2fb"}, "path: write /a%2Fb"},
		"a path with an empty segment":          {dial.Rule{Origin: host, Path: "/a//b"}, "path:"},
		"a path with a query":                   {dial.Rule{Origin: host, Path: "/a?b"}, "path:"},
		"a path with a fragment":                {dial.Rule{Origin: host, Path: "/a#b"}, "path:"},
		"a path with a character to be escaped": {dial.Rule{Origin: host, Path: "/a b"}, "path:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := dial.Compile([]dial.Rule{tt.rule})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: err = %v, want it to say %q", tt.rule, err, tt.says)
			}
		})
	}
}

func TestCompileTellsAll(t *testing.T) {
	_, err := dial.Compile([]dial.Rule{{Origin: "ftp://first"}, {Origin: "https://fine"}, {Origin: "ftp://second"}})
	if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
		t.Errorf("err = %v", err)
	}
}

func TestRuleIsPrintedAsItIsWritten(t *testing.T) {
	got := dial.Rule{Origin: "https://a.example", Methods: []string{"GET", "POST"}, Path: "/v1", Private: true}.String()
	if want := `{origin: "https://a.example", methods: [GET, POST], path: "/v1", private: true}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNarrow(t *testing.T) {
	const a, b = "https://a.example", "https://b.example"
	tests := map[string]struct {
		origins []string
		allowed []string // of GET a/v1, GET a/, GET b/, POST b/, GET c/
		bad     bool
	}{
		"both":                        {[]string{a, b}, []string{a + "/v1", b + "/"}, false},
		"one":                         {[]string{b}, []string{b + "/"}, false},
		"one, spelt otherwise":        {[]string{"HTTPS://B.example.:443/"}, []string{b + "/"}, false},
		"one that was never allowed":  {[]string{"https://c.example"}, nil, false},
		"the other scheme":            {[]string{"http://a.example"}, nil, false},
		"none":                        {nil, nil, false},
		"one that cannot be read":     {[]string{a, "b.example"}, nil, true},
		"a wildcard is not all":       {[]string{"https://*.example"}, nil, true},
		"an origin with a path":       {[]string{a + "/v1"}, nil, true},
		"the same one over and again": {[]string{a, a}, []string{a + "/v1"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			narrow, err := compile(t, dial.Rule{Origin: a, Path: "/v1"}, dial.Rule{Origin: b}).Narrow(tt.origins)
			if (err != nil) != tt.bad {
				t.Fatalf("err = %v", err)
			}
			var got []string
			for _, u := range []string{a + "/v1", a + "/", b + "/", "https://c.example/"} {
				if target, err := dial.NewTarget("GET", u); err != nil {
					t.Fatal(err)
				} else if ok, _ := narrow.Allow(target); ok {
					got = append(got, u)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.allowed, " ") {
				t.Errorf("allowed: %v, want %v", got, tt.allowed)
			}
		})
	}
}

// FuzzAllow compares what a rule allows with what Go's own parser makes of the
// URL that is sent.
func FuzzAllow(f *testing.F) {
	for _, path := range []string{"", "/v1", "/a%2Fb/", "/a;b", "/%2e"} {
		for _, u := range []string{
			"https://api.example.com/v1/x?y#z", "https://api.example.com/v1/../x", "https://API.example.com.:443/v1%2f..%2fx",
			"https://api.example.com//v1/x", "https://api.example.com/a%2fb/%252e", `https://api.example.com/a%2Fb/"`, "http://0x7f.1/", "https://[::ffff:1.2.3.4]/v1",
			"https://a@api.example.com/v1", "https://api.example.com/v1/..;/x", "https://api.example.com?/v1",
		} {
			f.Add("https://api.example.com", path, u)
		}
	}
	f.Fuzz(func(t *testing.T, origin, prefix, raw string) {
		rules, err := dial.Compile([]dial.Rule{{Origin: origin, Path: prefix, Private: true}})
		target, terr := dial.NewTarget("GET", raw)
		if err != nil || terr != nil {
			return
		}
		if again, err := dial.NewTarget("GET", target.URL()); err != nil || again != target {
			t.Fatalf("%q becomes %q becomes %q, %v", raw, target.URL(), again.URL(), err)
		}
		if allowed, _ := rules.Allow(target); !allowed {
			return
		}
		req, err := http.NewRequest("GET", target.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := url.Parse(origin)
		if err != nil {
			t.Fatal(err)
		}
		sent := req.URL
		if sent.Scheme != rule.Scheme || hostOf(sent) != hostOf(rule) || portNumber(sent) != portNumber(rule) || sent.User != nil {
			t.Errorf("rule %q allows %q, which goes to %s", origin, raw, sent.Host)
		}
		plain, err := url.PathUnescape(strings.TrimSuffix(prefix, "/"))
		if err != nil {
			t.Fatal(err)
		}
		if p := path.Clean(sent.Path); plain != "" && p != plain && !strings.HasPrefix(p, plain+"/") {
			t.Errorf("path %q allows %q, which asks for %q", prefix, raw, p)
		}
		if strings.ContainsAny(req.URL.RequestURI(), " \r\n\x00") || !strings.HasPrefix(req.URL.RequestURI(), "/") {
			t.Errorf("request line %q", req.URL.RequestURI())
		}
	})
}

func hostOf(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if target, err := dial.NewTarget("GET", "http://["+host+"]/"); err == nil {
		return target.Host
	}
	return host
}

func portNumber(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	return map[string]int{"http": 80, "https": 443}[u.Scheme]
}
