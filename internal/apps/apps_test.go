package apps_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// TestSources generates sources of honest parts, and breaks each at one place: what a browser
// would read as more than one origin is refused.
func TestSources(t *testing.T) {
	honest := []string{
		"https://a.example.com", "wss://example.com:8443", "https://*.example.com", "http://localhost:3000", "ws://127.0.0.1",
		"https://unpkg.com", "https://10.0.0.1", "https://a--b.example", "HTTPS://Example.com", "https://cdn.example.com/",
	}
	for _, s := range honest {
		got, err := apps.ParseSource(s)
		if want := strings.TrimSuffix(strings.ToLower(s), "/"); got != want || err != nil {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	hostile := []string{
		"", "*", "'self'", "'unsafe-eval'", "'unsafe-inline'", "data:", "blob:", "https:", "https://", "//example.com", "example.com", "http://example.com", "ws://example.com",
		"https://*", "https://*.com", "https://*.*.example.com", "https://a.*.example.com", "https://example.com/path", "https://example.com?q", "https://example.com#f",
		"https://u:p@example.com", "https://example.com:0", "https://example.com:65536", "https://example.com:*", "https://xn--bcher-kva.example", "https://a.xn--p1ai",
		"https://exämple.com", "https://example.com.", "https://-a.example.com", "ftp://example.com", "javascript://example.com", "https://[::1]", "http://localhost.evil.com",
	}
	breaks := []string{";", ",", " ", "\t", "\n", "\r", "\x00", "'", "\"", "<", ">", "\\", "%", "*", "@", "\u00a0", "\u2028", "\u200b", "; connect-src *", ", script-src *"}
	for _, s := range honest {
		for _, b := range breaks {
			for i := range len(s) + 1 {
				one := s[:i] + b + s[i:]
				if got, err := apps.ParseSource(one); err == nil && one != "https://*.example.com" && strings.ContainsAny(got, ";, \t\n\r'\"<>\\%@") {
					t.Errorf("%q passes as %q", one, got)
				}
			}
			hostile = append(hostile, s+b, b+s)
		}
	}
	for _, s := range hostile {
		if got, err := apps.ParseSource(s); err == nil {
			t.Errorf("%q passes as %q", s, got)
		}
	}
}

// TestSettings leaves what is not plain, and names it.
func TestSettings(t *testing.T) {
	yes := []string{"https://a.example.com"}
	for name, tt := range map[string]struct {
		ui    string
		allow options.AppSources
		want  string
		left  int
	}{
		"nothing":             {`{}`, options.AppSources{}, `{}`, 0},
		"an injection":        {`{"csp":{"resourceDomains":["https://cdn.example.com; connect-src *","https://ok.example.com"]}}`, options.AppSources{}, `{"csp":{"resourceDomains":["https://ok.example.com"]}}`, 1},
		"no list":             {`{"csp":{"connectDomains":"https://a.example.com"}}`, options.AppSources{}, `{}`, 1},
		"an unknown list":     {`{"csp":{"scriptDomains":["https://a.example.com"]}}`, options.AppSources{}, `{}`, 1},
		"no object":           {`{"csp":"default-src *","permissions":["camera"]}`, options.AppSources{}, `{}`, 2},
		"numbers":             {`{"csp":{"connectDomains":[1,null,{}]}}`, options.AppSources{}, `{}`, 3},
		"unknown permissions": {`{"permissions":{"camera":{},"usb":{}}}`, options.AppSources{}, `{"permissions":{"camera":{}}}`, 1},
		"a domain":            {`{"domain":"a.example.com","prefersBorder":true}`, options.AppSources{}, `{"prefersBorder":true}`, 1},
		"an allowed domain":   {`{"domain":"a.example.com"}`, options.AppSources{Domain: true}, `{"domain":"a.example.com"}`, 0},
		"many sources":        {`{"csp":{"connectDomains":[` + strings.Repeat("1,", 1000) + `1]}}`, options.AppSources{}, `{}`, 65},
		"a bad domain":        {`{"domain":"a.example.com; x"}`, options.AppSources{Domain: true}, `{}`, 1},
		"allowed":             {`{"csp":{"connectDomains":["https://a.example.com"]}}`, options.AppSources{Connect: yes}, `{"csp":{"connectDomains":["https://a.example.com"]}}`, 0},
		"narrowed":            {`{"csp":{"connectDomains":["https://*.example.com"]}}`, options.AppSources{Connect: yes}, `{"csp":{"connectDomains":["https://a.example.com"]}}`, 0},
		"covered":             {`{"csp":{"frameDomains":["https://a.example.com"]}}`, options.AppSources{Frames: []string{"https://*.example.com"}}, `{"csp":{"frameDomains":["https://a.example.com"]}}`, 0},
		"not allowed":         {`{"csp":{"baseUriDomains":["https://example.com"]}}`, options.AppSources{Base: []string{"https://*.example.com"}}, `{}`, 1},
		"nothing allowed":     {`{"permissions":{"camera":{}}}`, options.AppSources{Permissions: []string{}}, `{}`, 1},
	} {
		got, left := apps.Settings(doc.Must(tt.ui), tt.allow)
		if got.String() != tt.want || len(left) != tt.left {
			t.Errorf("%s: %s, left %q", name, got, left)
		}
	}
}

// TestPages are read from what a server answers, and nothing else is one.
func TestPages(t *testing.T) {
	const ok = `"mimeType":"text/html;profile=mcp-app"`
	listed := doc.Must(`{"_meta":{"ui":{"domain":"listed.example.com"}}}`)
	for name, tt := range map[string]struct{ answer, want string }{
		"text":               {`{"uri":"ui://a",` + ok + `,"text":"<p>"}`, "<p>"},
		"another spelling":   {`{"uri":"ui://a","mimeType":"Text/HTML; Profile=\"MCP-App\"","text":"<p>"}`, "<p>"},
		"blob":               {`{"uri":"ui://a",` + ok + `,"blob":"PHA+"}`, "<p>"},
		"no base64":          {`{"uri":"ui://a",` + ok + `,"blob":"<p>"}`, ""},
		"no UTF-8":           {`{"uri":"ui://a",` + ok + `,"blob":"/w=="}`, ""},
		"no text":            {`{"uri":"ui://a",` + ok + `}`, ""},
		"HTML":               {`{"uri":"ui://a","mimeType":"text/html","text":"<p>"}`, ""},
		"two":                {`{"uri":"ui://a",` + ok + `,"text":"1"},{"uri":"ui://a",` + ok + `,"text":"2"}`, ""},
		"one of two":         {`{"uri":"ui://b",` + ok + `,"text":"1"},{"uri":"ui://a",` + ok + `,"text":"2"}`, "2"},
		"none":               {``, ""},
		"content goes first": {`{"uri":"ui://a",` + ok + `,"text":"<p>","_meta":{"ui":{}}}`, "<p>"},
	} {
		p, err := apps.ReadPage("ui://a", listed, doc.Must(`{"contents":[`+tt.answer+`]}`), options.AppSources{Domain: true})
		if (err == nil) != (tt.want != "") || p.Pinned.Get("html").Text() != tt.want {
			t.Errorf("%s: %v, %v", name, p.Pinned, err)
		}
		if got := p.Settings.Get("domain").Text(); err == nil && (got == "") != (name == "content goes first") {
			t.Errorf("%s: domain %q", name, got)
		}
	}
}

// TestOfferedURIs: no two pages of any servers have one.
func TestOfferedURIs(t *testing.T) {
	random, seen := seed.Rand(t), make(map[string][2]string)
	part := func() string { return []string{"a", "b", "a-b", "a/b", "b/a", "a?b", ""}[random.IntN(7)] }
	for range 20_000 {
		server, uri := []string{"a", "b", "a-b"}[random.IntN(3)], apps.Scheme+part()+"/"+part()
		offered := apps.OfferedURI(server, uri)
		if was, ok := seen[offered]; ok && was != [2]string{server, uri} {
			t.Fatalf("%q is %v and %v", offered, was, [2]string{server, uri})
		}
		seen[offered] = [2]string{server, uri}
	}
}

func TestUseOf(t *testing.T) {
	for meta, want := range map[string]apps.Use{
		`{}`:                              {"", true, true},
		`{"ui":{"resourceUri":"ui://a"}}`: {"ui://a", true, true},
		`{"ui/resourceUri":"ui://a"}`:     {"ui://a", true, true},
		`{"ui":{"resourceUri":"https://a","visibility":["model"]}}`:         {"", true, false},
		`{"ui":{"resourceUri":"ui://a","visibility":["app"]}}`:              {"ui://a", false, true},
		`{"ui":{"visibility":[]}}`:                                          {"", false, false},
		`{"ui":{"visibility":"model"}}`:                                     {"", false, false},
		`{"ui":{"visibility":null}}`:                                        {"", true, true},
		`{"ui":{"resourceUri":"UI://a"}}`:                                   {"", true, true},
		`{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://b"}`:         {"ui://a", true, true},
		`{"ui":{"resourceUri":["ui://a"],"visibility":["app", "x", null]}}`: {"", false, true},
	} {
		if got := apps.UseOf(doc.Must(`{"_meta":` + meta + `}`)); got != want {
			t.Errorf("%s: %+v", meta, got)
		}
	}
}
