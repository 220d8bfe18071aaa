package gateway_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// An appServer is a server with an app: a tool for both, a tool that is only for the app, and
// a page, which is listed or not.
type appServer struct {
	*mcp.Server
	uri, html string
	ui        map[string]any // of the page
	unlisted  bool
	calls     map[string]int // by tool
}

func newAppServer(uri, html string) *appServer {
	s := &appServer{
		Server: mcp.NewServer(&mcp.Implementation{Name: "app", Version: "1"}, nil), uri: uri, html: html, calls: make(map[string]int),
	}
	s.addTool("show", map[string]any{"resourceUri": uri})
	s.addTool("refresh", map[string]any{"visibility": []string{"app"}})
	return s
}

func (s *appServer) addTool(name string, ui map[string]any) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}, Meta: mcp.Meta{"ui": ui}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.calls[name]++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " of " + s.html}}}, nil
		})
}

// serve adds the page as it is now.
func (s *appServer) serve() *appServer {
	read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := &mcp.ResourceContents{URI: s.uri, MIMEType: "text/html;profile=mcp-app", Text: s.html}
		if s.ui != nil {
			c.Meta = mcp.Meta{"ui": s.ui}
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
	if s.unlisted { // a template that lists nothing of it
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "ui://{+path}", Name: "t"}, read)
	} else {
		s.AddResource(&mcp.Resource{URI: s.uri, Name: "page", MIMEType: "text/html;profile=mcp-app"}, read)
	}
	return s
}

// endpoint returns the server with apps as a configuration has them.
func (s *appServer) endpoint(id string, o options.Apps) options.Endpoint {
	return options.Endpoint{Server: id, Dial: gateway.InProcess(s.Server), Tools: options.Tools{Apps: o}}
}

// An appHost is a client of a gateway, which shows pages if renders is true.
type appHost struct {
	t                 testing.TB
	url, era, session string
	renders           bool
	n                 int
}

const declaresApps = `"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`

func newAppHost(t testing.TB, g *gateway.Gateway, era string, renders bool) *appHost {
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	h := &appHost{t: t, url: srv.URL + "/mcp", era: era, renders: renders}
	if era == rig.Old {
		h.open()
	}
	return h
}

// open begins another session.
func (h *appHost) open() {
	hello := rig.Hello
	if h.renders {
		hello = strings.Replace(hello, `"capabilities":{}`, `"capabilities":{`+declaresApps+`}`, 1)
	}
	h.session = rig.OpenSessionWith(h.t, h.url, hello)
}

// ask returns the answer to a request.
func (h *appHost) ask(method, params string) gate.Doc {
	h.t.Helper()
	h.n++
	return h.sent(rig.Request(h.era, fmt.Sprint(h.n), method, params))
}

// sent sends a message, and returns the answer.
func (h *appHost) sent(msg string) gate.Doc {
	h.t.Helper()
	if h.renders {
		msg = strings.Replace(msg, `clientCapabilities":{}`, `clientCapabilities":{`+declaresApps+`}`, 1)
	}
	resp, err := rig.Post(h.t.Context(), h.url, h.era, h.session, msg)
	if err != nil {
		h.t.Fatal(err)
	}
	return gate.MustDoc(rig.AnswerOf(h.t, resp))
}

func (h *appHost) call(name string) gate.Doc {
	h.t.Helper()
	return h.ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{}`, name))
}

func (h *appHost) read(uri string) gate.Doc {
	h.t.Helper()
	return h.ask("resources/read", fmt.Sprintf(`"uri":%q`, uri))
}

// listed returns what a list has, by its name or URI.
func (h *appHost) listed(method, member, key string) map[string]gate.Doc {
	h.t.Helper()
	all := make(map[string]gate.Doc)
	for d := range h.ask(method, "").Get("result").Get(member).Elements() {
		all[d.Get(key).Text()] = d
	}
	return all
}

func (h *appHost) tools() map[string]gate.Doc { return h.listed("tools/list", "tools", "name") }
func (h *appHost) resources() map[string]gate.Doc {
	return h.listed("resources/list", "resources", "uri")
}

// textOf returns the text of a result, or the message of an error.
func textOf(answer gate.Doc) string {
	if m := answer.At("/error/message"); !m.IsZero() {
		return "error: " + m.Text()
	}
	if c := answer.At("/result/contents/0/text"); !c.IsZero() {
		return c.Text()
	}
	return answer.At("/result/content/0/text").Text()
}
