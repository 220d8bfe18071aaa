package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// TestAppSequences holds random sequences of list, read and call by the apps of two servers
// against a model: no call reaches a server that it did not name. Both servers have the same
// names and URIs, and c1 has a tool and a page whose own names are full names of c2. In each
// round the gateway is started again, and about half of the sessions go on. Every tenth round
// keeps in a file what its sessions have open.
func TestAppSequences(t *testing.T) {
	random, secret := seed.Rand(t), []byte(strings.Repeat("k", 32))
	servers := twins{"c1": {id: "c1"}, "c2": {id: "c2"}}
	for round, left := 0, appSequences(); left > 0; round++ {
		n, file := 2000, ""
		if round%10 == 0 { // it is written anew each time that a session opens an app
			n, file = 40, filepath.Join(t.TempDir(), "sessions.json")
		}
		played := make([]*appSession, n/2)
		for start := range 2 {
			g := servers.gateway(t, secret, file)
			for i, s := range played {
				if s == nil || random.IntN(2) == 0 {
					s = &appSession{
						t: t, servers: servers, random: random, who: fmt.Sprintf("p-%d-%d-%d", round, start, i), era: eras[random.IntN(2)], open: make(map[string]bool),
					}
				} else if file == "" {
					clear(s.open)
				}
				s.g, played[i] = g, s
				s.play()
			}
			stop(t, g)
		}
		left -= n
	}
}

// appSequences is how many sequences are played; WASMGATE_SEQUENCES sets it for a longer run.
func appSequences() int {
	if n, err := strconv.Atoi(os.Getenv("WASMGATE_SEQUENCES")); err == nil {
		return n
	}
	if testing.Short() {
		return 1000
	}
	return 10_000
}

// An appSession is one of a client that shows pages, with the model of what it has open.
type appSession struct {
	t                 *testing.T
	servers           twins
	random            *rand.Rand
	g                 *gateway.Gateway
	who, era, session string
	open              map[string]bool
	did               []string
}

// play plays one sequence.
func (s *appSession) play() {
	if s.era == rig.Old && s.session == "" {
		hello := strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":{`+declaresApps+`}`, 1)
		s.session = s.send(hello).Header().Get("Mcp-Session-Id")
		s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	for range 1 + s.random.IntN(6) {
		id := []string{"c1", "c2"}[s.random.IntN(2)]
		switch s.random.IntN(9) {
		case 0:
			s.list()
		case 1:
			s.call(id+"__show", id, id)
		case 2:
			s.call(id+"__refresh", s.ifOpen(id), "")
		case 3:
			s.call("show", s.onlyOpen(), "")
		case 4:
			s.call("refresh", s.onlyOpen(), "")
		case 5:
			s.call("c1__c2__refresh", "c1", "")
		case 6:
			s.read("ui://"+id+"/shared/app.html", id, id)
		case 7:
			s.read("ui://c1/c2/shared/app.html", "c1", "c1")
		case 8:
			s.read("ui://shared/app.html", s.onlyOpen(), "")
		}
	}
}

// ifOpen returns the server if its app is open, and onlyOpen the server with the only app that
// is open; else "".
func (s *appSession) ifOpen(id string) string {
	if s.open[id] {
		return id
	}
	return ""
}

func (s *appSession) onlyOpen() string {
	if len(s.open) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(s.open))[0]
}

// list looks whether each tool names a page of its own server.
func (s *appSession) list() {
	tools := s.ask("tools/list", "").At("/result/tools")
	n := 0
	for d := range tools.Elements() {
		uri, name := d.At("/_meta/ui/resourceUri").Text(), d.Get("name").Text()
		server, _, full := strings.Cut(name, "__")
		if full && uri != "" {
			n++
			if uri != "ui://"+server+"/shared/app.html" {
				s.t.Fatalf("%s after %q: %s is listed with %q", s.who, s.did, name, uri)
			}
		}
	}
	if n != 2 {
		s.t.Fatalf("%s after %q: %d tools have a page: %s", s.who, s.did, n, tools)
	}
}

// call calls a tool, which has to reach one server only, or none if want is "", and opens an app.
func (s *appSession) call(name, want, opens string) {
	before := s.servers.calls()
	answer := textOf(s.ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{}`, name)))
	after := s.servers.calls()
	for id := range s.servers {
		before[id] += map[bool]int64{true: 1}[id == want]
	}
	if !maps.Equal(before, after) || want != "" && answer != want {
		s.t.Fatalf("%s after %q, open %v: %s: %q, calls %v, want %v", s.who, s.did, s.open, name, answer, after, before)
	}
	s.opened(name, opens)
}

// read reads a page, which has to be that of one server, or an error if want is "".
func (s *appSession) read(uri, want, opens string) {
	answer := textOf(s.ask("resources/read", fmt.Sprintf(`"uri":%q`, uri)))
	if got, _, _ := strings.Cut(answer, " "); got != want && (want != "" || got != "error:") {
		s.t.Fatalf("%s after %q, open %v: %s: %q, want %q", s.who, s.did, s.open, uri, answer, want)
	}
	s.opened(uri, opens)
}

func (s *appSession) opened(did, server string) {
	s.did = append(s.did, did)
	if server != "" {
		s.open[server] = true
	}
}

func (s *appSession) ask(method, params string) gate.Doc {
	msg := strings.Replace(rig.Request(s.era, "1", method, params), `clientCapabilities":{}`, `clientCapabilities":{`+declaresApps+`}`, 1)
	return gate.MustDoc(rig.AnswerOf(s.t, s.send(msg).Result()))
}

func (s *appSession) send(msg string) *httptest.ResponseRecorder {
	r, err := rig.NewPost(s.t.Context(), "http://localhost/mcp", s.era, s.session, msg)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Who", s.who)
	w := httptest.NewRecorder()
	s.g.ServeHTTP(w, r)
	return w
}

// twins are servers with the same tools and pages, by their names.
type twins map[string]*twin

func (all twins) gateway(t *testing.T, secret []byte, file string) *gateway.Gateway {
	cfg := gateway.Config{
		Recorder: nowhere{}, Policy: grantingServers("c1", "c2"), Seal: secret, Sessions: session.Options{File: file},
		Principal: func(r *http.Request) (*gate.Principal, error) {
			return &gate.Principal{Owner: gate.Owner{ID: r.Header.Get("X-Who")}}, nil
		},
	}
	for _, id := range []string{"c1", "c2"} {
		dial := func() (mcp.Transport, error) { return rawServer(all[id].answer), nil }
		cfg.Servers = append(cfg.Servers, options.Endpoint{Server: id, Dial: dial, Tools: options.Tools{Apps: options.Apps{On: true}}})
	}
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

func (all twins) calls() map[string]int64 {
	n := make(map[string]int64)
	for id, s := range all {
		n[id] = s.called.Load()
	}
	return n
}

type nowhere struct{}

func (nowhere) Record(context.Context, *gate.Record) error { return nil }

// A twin is a server that answers with its own name.
type twin struct {
	id     string
	called atomic.Int64
}

func (s *twin) answer(method string, params gate.Doc) string {
	const page = `"mimeType":"text/html;profile=mcp-app"`
	switch method {
	case "tools/list":
		more := ""
		if s.id == "c1" {
			more = `,{"name":"c2__refresh","inputSchema":{"type":"object"}}`
		}
		return `{"tools":[{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://shared/app.html"}}},` +
			`{"name":"refresh","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}` + more + `]}`
	case "resources/list":
		if s.id == "c1" {
			return `{"resources":[{"uri":"ui://shared/app.html","name":"page",` + page + `},{"uri":"ui://c2/shared/app.html","name":"other",` + page + `}]}`
		}
	case "resources/read":
		return `{"contents":[{"uri":` + params.Get("uri").String() + `,` + page + `,"text":"` + s.id + ` shows"}]}`
	case "tools/call":
		s.called.Add(1)
		return `{"content":[{"type":"text","text":"` + s.id + `"}]}`
	}
	return ""
}
