package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// A hostilePage is a page with what its server says of it, and its HTML if a host may get it.
type hostilePage struct {
	uri, listed, content string // listed is the member "ui" of the entry in resources/list; "" for no entry
	html                 string // "" if no host may get it
}

var (
	directivesOfPages = []string{"connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"}
	plainSources      = []string{"https://a.example.com", "https://*.b.example.com", "wss://c.example.com:8443", "http://localhost:3000"}
	hostileSources    = []string{
		"*", "'self'", "'unsafe-eval'", "data:", "blob:", "https:", "https://*", "https://*.com", "http://example.com", "https://xn--bcher-kva.example", "https://u:p@a.example.com",
		"https://a.example.com/path", "ftp://a.example.com", "javascript://a.example.com", "//a.example.com", "https://[::1]", "http://localhost.evil.com", "",
	}
	separators = []string{";", ",", " ", "\t", "\n", "\r", "\x00", "\u00a0", "\u2028", "'", "\"", "\\", "%", "@", "; connect-src *", ", script-src *"}
)

// hostileUI returns what a page asks for: plain sources among hostile ones, in any directive.
func hostileUI(random *rand.Rand) string {
	csp := make(map[string]any)
	for _, d := range append(slices.Clone(directivesOfPages), "scriptDomains", "x; connect-src *") {
		var list []any
		for range random.IntN(4) {
			plain := plainSources[random.IntN(len(plainSources))]
			switch random.IntN(4) {
			case 0:
				list = append(list, hostileSources[random.IntN(len(hostileSources))])
			case 1: // in its middle or at its end, since a separator before the host ends no source
				at := len(plain) - random.IntN(len("example.com"))
				list = append(list, plain[:at]+separators[random.IntN(len(separators))]+plain[at:])
			case 2:
				list = append(list, []any{nil, 1, true, []any{plain}, map[string]any{"a": plain}}[random.IntN(5)])
			default:
				list = append(list, plain)
			}
		}
		csp[d] = list
		if random.IntN(8) == 0 {
			csp[d] = strings.Join(plainSources, " ")
		}
	}
	permissions := map[string]any{}
	for _, p := range []string{"camera", "clipboardWrite", "usb", "camera; microphone", "*"} {
		if random.IntN(2) == 0 {
			permissions[p] = map[string]any{}
		}
	}
	b, err := json.Marshal(map[string]any{"csp": csp, "permissions": permissions, "domain": []any{"a.example.com", "a.example.com; x", 1}[random.IntN(3)]})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// hostilePageOf makes page n of a server: its type, contents and URI are right or wrong.
func hostilePageOf(random *rand.Rand, n int) hostilePage {
	p := hostilePage{uri: fmt.Sprintf("ui://evil/%d.html", n), html: fmt.Sprintf("<script>\u202e%d</script>", n)}
	if random.IntN(2) == 0 {
		p.listed = hostileUI(random)
	}
	mime, body := "text/html;profile=mcp-app", `"text":`+quotedJSON(p.html)
	blob := base64.StdEncoding.EncodeToString([]byte(p.html))
	uri, more := p.uri, ""
	switch random.IntN(12) {
	case 0:
		mime = "Text/HTML; charset=utf-8; Profile=\"MCP-App\""
	case 1:
		body = `"blob":"` + blob + `"`
	case 2:
		mime, p.html = []string{"text/html", "text/html;profile=mcp", "text/html;profile=mcp-app;profile=x", "application/xhtml+xml;profile=mcp-app", "text/html profile=mcp-app", ""}[random.IntN(6)], ""
	case 3:
		at := random.IntN(len(blob))
		body, p.html = `"blob":"`+blob[:at]+[]string{"!", "<", "=", " ", "-"}[random.IntN(5)]+blob[at:]+`"`, ""
	case 4:
		body, p.html = `"blob":"`+base64.StdEncoding.EncodeToString([]byte("<p>\xff\xfe"))+`"`, ""
	case 5:
		body, p.html = []string{`"text":null`, `"text":1`, `"blob":[]`, `"text":{}`, `"x":""`}[random.IntN(5)], ""
	case 6:
		more, p.html = `,{"uri":`+quotedJSON(uri)+`,"mimeType":"text/html;profile=mcp-app","text":"another"}`, ""
	case 7:
		body, p.html = `"text":"`+strings.Repeat("x", 16<<20+1)+`"`, ""
		if n > 1 { // one of these is enough
			body = `"text":null`
		}
	}
	p.content = `{"contents":[{"uri":` + quotedJSON(uri) + `,"mimeType":` + quotedJSON(mime) + `,` + body + `,"_meta":{"ui":` + hostileUI(random) + `}}` + more + `]}`
	return p
}

func quotedJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// hostileTools are definitions of tools that name pages which are none of their server's.
func hostileTools() (all []string) {
	for _, uri := range []string{
		`"javascript:alert(1)"`, `"https://evil.example.com/"`, `"data:text/html,x"`, `"file:///etc/passwd"`, `"UI://evil/0.html"`, `"ui:evil/0.html"`, `"ui://"`, `"ui:///"`, `" ui://evil/0.html"`,
		`"ui://honest/map/app.html"`, `"ui://map/app.html"`, `"ui://evil/0.html\r\nX: y"`, `"ui://evil/../honest/map/app.html"`, `"wasmgate://honest/dWk6Ly9tYXAvYXBwLmh0bWw"`, `1`, `null`, `["ui://evil/0.html"]`, `{"uri":"ui://evil/0.html"}`,
	} {
		for _, meta := range []string{`{"ui":{"resourceUri":%s}}`, `{"ui/resourceUri":%s}`} {
			all = append(all, fmt.Sprintf(`{"name":"bad%d","inputSchema":{"type":"object"},"_meta":`+meta+`}`, len(all), uri))
		}
	}
	return all
}

// TestGeneratedPages: of pages that a hostile server makes, hosts get those that are whole, and of
// what these ask for plain sources and known permissions only. Tools that name what is no page of
// their server answer in text. The server's own tools and pages, and those of another server, go on.
func TestGeneratedPages(t *testing.T) {
	random := seed.Rand(t)
	for _, era := range eras {
		var pages []hostilePage
		for n := range 30 {
			pages = append(pages, hostilePageOf(random, n))
		}
		good := hostilePage{uri: "ui://evil/good.html", html: "<p>good</p>", content: `{"contents":[{"uri":"ui://evil/good.html","mimeType":"text/html;profile=mcp-app","text":"<p>good</p>"}]}`}
		evil := func(method string, params gate.Doc) string {
			switch method {
			case "tools/list":
				all := append(hostileTools(), `{"name":"good","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://evil/good.html"}}}`)
				for i, p := range pages {
					all = append(all, fmt.Sprintf(`{"name":"show%d","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":%q}}}`, i, p.uri))
				}
				return `{"tools":[` + strings.Join(all, ",") + `]}`
			case "resources/list":
				var all []string
				for _, p := range pages {
					if p.listed != "" {
						all = append(all, fmt.Sprintf(`{"uri":%q,"name":"page","mimeType":"text/html;profile=mcp-app","_meta":{"ui":%s}}`, p.uri, p.listed))
					}
				}
				return `{"resources":[` + strings.Join(all, ",") + `]}`
			case "resources/read":
				for _, p := range append(pages, good) {
					if p.uri == params.Get("uri").Text() {
						return p.content
					}
				}
			case "tools/call": // with a page inside of the result
				return `{"content":[{"type":"text","text":"answered"},{"type":"resource","resource":{"uri":"ui://evil/in.html","mimeType":"text/html;profile=mcp-app","text":"<script>1</script>"}}],"_meta":{"ui":{"resourceUri":"ui://honest/map/app.html"}}}`
			}
			return ""
		}
		honest := newAppServer("ui://map/app.html", html).serve()
		on := options.Apps{On: true}
		g := start(t, gateway.Config{
			Recorder: new(records), Policy: grantingServers("evil", "honest"),
			Servers: []options.Endpoint{
				{Server: "evil", Dial: func() (mcp.Transport, error) { return rawServer(evil), nil }, Tools: options.Tools{Apps: on}}, honest.endpoint("honest", on),
			},
		})
		if err := g.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		host := newAppHost(t, g, era, true)
		tools, resources := host.tools(), host.resources()
		for i, p := range append(pages, good) {
			offered, name := "ui://evil/"+strings.TrimPrefix(p.uri, "ui://"), fmt.Sprintf("evil__show%d", i)
			if p.uri == good.uri {
				name = "evil__good"
			}
			res := host.read(offered)
			if got := pageText(res); got != p.html {
				t.Errorf("%s: the host gets %.200q, want %q of %.1000s", p.uri, got, p.html, p.content)
			}
			if shown := tools[name].At("/_meta/ui/resourceUri").Text() == offered; tools[name].IsZero() || shown != (p.html != "") {
				t.Errorf("%s is listed with its page: %v, of %.1000s", name, shown, p.content)
			}
			plainOnly(t, res.At("/result/contents/0/_meta/ui"), p.content)
			plainOnly(t, resources[offered].At("/_meta/ui"), p.content)
		}
		for i, def := range hostileTools() {
			name := fmt.Sprintf("evil__bad%d", i)
			if tools[name].IsZero() || !tools[name].At("/_meta/ui/resourceUri").IsZero() || !tools[name].At("/_meta/ui~1resourceUri").IsZero() {
				t.Errorf("%s is offered as %s", def, tools[name])
			}
		}
		answer := host.call("evil__bad0")
		if textOf(answer) != "answered" || strings.Contains(answer.String(), "<script>") || !answer.At("/result/_meta/ui").IsZero() {
			t.Errorf("a page in a result: %s", answer)
		}
		if got := textOf(host.read("ui://honest/map/app.html")); got != html {
			t.Errorf("the other server's page: %q", got)
		}
	}
}

// pageText returns the HTML that a host gets, or "".
func pageText(answer gate.Doc) string {
	c := answer.At("/result/contents/0")
	if b, err := base64.StdEncoding.DecodeString(c.Get("blob").Text()); err == nil && len(b) > 0 {
		return string(b)
	}
	return c.Get("text").Text()
}

// plainOnly looks whether a host gets only what is plain.
func plainOnly(t *testing.T, ui gate.Doc, of string) {
	t.Helper()
	for name, list := range ui.Get("csp").Members() {
		for source := range list.Elements() {
			if !slices.Contains(directivesOfPages, name) || !slices.Contains(plainSources, source.Text()) {
				t.Errorf("a host gets %s %s, of %.1000s", name, source, of)
			}
		}
	}
	for name := range ui.Get("permissions").Members() {
		if name != "camera" && name != "clipboardWrite" {
			t.Errorf("a host gets the permission %s", name)
		}
	}
	if domain := ui.Get("domain"); !domain.IsZero() {
		t.Errorf("a host gets the domain %s", domain)
	}
}
