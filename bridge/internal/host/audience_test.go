package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// An asker is a server that asks its client, logs and has a resource that changes.
type asker struct {
	*sdk.Server
	roots        chan string  // what each connection was told at first, and when its client's roots changed
	unsubscribed atomic.Int32 // how often it was
}

const watched = "up:///watched"

func newAsker() *asker {
	a := &asker{roots: make(chan string, 100)}
	folders := func(ctx context.Context, ss *sdk.ServerSession) string {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		res, err := ss.ListRoots(ctx, nil)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, r := range res.Roots {
			all = append(all, r.URI)
		}
		return strings.Join(all, " ")
	}
	a.Server = sdk.NewServer(&sdk.Implementation{Name: "up", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Logging: &sdk.LoggingCapabilities{}, Resources: &sdk.ResourceCapabilities{Subscribe: true}},
		InitializedHandler: func(ctx context.Context, r *sdk.InitializedRequest) {
			ss := r.Session
			go func() { a.roots <- folders(context.WithoutCancel(ctx), ss) }()
		},
		RootsListChangedHandler: func(ctx context.Context, r *sdk.RootsListChangedRequest) {
			ss := r.Session
			go func() { a.roots <- "again " + folders(context.WithoutCancel(ctx), ss) }()
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { a.unsubscribed.Add(1); return nil },
	})
	a.tool("ask", func(ctx context.Context, ss *sdk.ServerSession) string {
		res, err := ss.Elicit(ctx, &sdk.ElicitParams{Message: "who <are> you?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprint(res.Action, " ", res.Content["name"])
	})
	a.tool("sample", func(ctx context.Context, ss *sdk.ServerSession) string {
		res, err := ss.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 9, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "say"}}}})
		if err != nil {
			return "error: " + err.Error()
		}
		return res.Content.(*sdk.TextContent).Text
	})
	a.tool("roots", folders)
	a.tool("log", func(ctx context.Context, ss *sdk.ServerSession) string {
		for _, level := range []sdk.LoggingLevel{"debug", "info", "error"} {
			_ = ss.Log(ctx, &sdk.LoggingMessageParams{Level: level, Data: "<" + string(level) + ">"})
		}
		return "logged"
	})
	// A call that lasts until the server was told what it asks by itself.
	a.tool("linger", func(ctx context.Context, _ *sdk.ServerSession) string {
		for ; len(a.roots) == 0 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		}
		return "lingered"
	})
	a.tool("later", func(_ context.Context, ss *sdk.ServerSession) string {
		go func() {
			time.Sleep(50 * time.Millisecond)
			_ = ss.Log(context.Background(), &sdk.LoggingMessageParams{Level: "error", Data: "<later>"})
		}()
		return "later"
	})
	a.tool("touch", func(ctx context.Context, _ *sdk.ServerSession) string {
		_ = a.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: watched})
		return "touched"
	})
	for _, uri := range []string{watched, "up:///hidden"} {
		a.AddResource(&sdk.Resource{Name: "r", URI: uri}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{}, nil
		})
	}
	return a
}

func (a *asker) tool(name string, do func(context.Context, *sdk.ServerSession) string) {
	sdk.AddTool(a.Server, &sdk.Tool{Name: name}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: do(ctx, r.Session)}}}, nil, nil
	})
}

// told returns what the next connection was told of its client's roots.
func (a *asker) told() string {
	select {
	case got := <-a.roots:
		return got
	case <-time.After(time.Minute):
		return "nothing"
	}
}

// connections returns how many there are.
func (a *asker) connections() (n int) {
	for range a.Sessions() {
		n++
	}
	return n
}

// upstreams are the ways in which the asker is reached.
var upstreams = map[string]func(*testing.T, *asker) options.Endpoint{
	"one stream": func(t *testing.T, a *asker) options.Endpoint {
		return options.Endpoint{Dial: func() (sdk.Transport, error) {
			ours, theirs := sdk.NewInMemoryTransports()
			_, err := a.Connect(context.Background(), theirs, nil)
			return ours, err
		}}
	},
	"HTTP": func(t *testing.T, a *asker) options.Endpoint {
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return a.Server }, nil))
		t.Cleanup(web.Close)
		return options.Endpoint{URL: web.URL, Protocol: mcp.Revision}
	},
}

// A front is a gateway before an asker.
type front struct {
	up      *asker
	fleet   *fleet.Fleet
	host    *host.Host
	url     string
	records *rig.Records
	changed chan struct{} // each time that the fleet was told of a client's roots
}

func newFront(t *testing.T, up *asker, cfg options.Endpoint) *front {
	t.Helper()
	cfg.Server, cfg.Tools = "up", rig.Options()
	x := &front{up: up, records: new(rig.Records), changed: make(chan struct{}, 100)}
	x.fleet = rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}})
	g, err := gate.New(gate.Parts{
		Upstream: x.fleet, Sessions: rig.Sessions{}, Recorder: x.records,
		Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
			if q.Tool.Local == "up:///hidden" && q.Call != nil && q.Call.Action == gate.Subscribe {
				return gate.Decision{Effect: gate.Deny, Reasons: []string{"not this one"}}
			}
			return gate.Decision{Effect: gate.Allow}
		}),
		Sanitizer: rig.SanitizerFunc(func(s string) (string, []gate.Finding) {
			return strings.NewReplacer("<", "(", ">", ")").Replace(s), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	x.host, err = host.New(host.Config{
		Config: dispatch.Config{
			Do:          g.Do,
			Tools:       g.Tools,
			Features:    g.Features,
			Offering:    x.fleet.Offering,
			SetLevel:    x.fleet.Sessions.SetLevel,
			Unsubscribe: x.fleet.Sessions.Unsubscribe,
			Clean:       g.Tell,
			PeerChanged: func(k gate.SessionKey) {
				x.fleet.Sessions.PeerChanged(k)
				x.changed <- struct{}{}
			},
			Ended: x.fleet.Sessions.End,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	x.fleet.Sessions.OnNotice(x.host.Notify)
	if err := x.fleet.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(x.host)
	t.Cleanup(web.Close)
	x.url = web.URL
	return x
}

// A guest is a client of a front.
type guest struct {
	*sdk.ClientSession
	client *sdk.Client
	name   string

	mu    sync.Mutex
	heard []string // log messages and updates
	asked []string
}

func (g *guest) note(to *[]string, what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*to = append(*to, what)
}

func (g *guest) notes(from *[]string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(*from)
}

// dial connects a client, over HTTP or on streams; one that is mute can be asked nothing.
func (x *front) dial(t *testing.T, name, revision string, stdio, mute bool) *guest {
	t.Helper()
	g := &guest{name: name}
	o := &sdk.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			g.note(&g.heard, fmt.Sprint(r.Params.Level, " ", r.Params.Data))
		},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { g.note(&g.heard, r.Params.URI) },
	}
	if mute {
		o.Capabilities = &sdk.ClientCapabilities{}
	} else {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			g.note(&g.asked, r.Params.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
		}
		o.CreateMessageHandler = func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			g.note(&g.asked, "sample")
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "I am " + name}}, nil
		}
	}
	g.client = sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, o)
	if !mute {
		g.client.AddRoots(&sdk.Root{URI: "file:///" + name, Name: name})
	}
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: x.url}
	if stdio {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() {
			_ = x.host.Serve(context.Background(), gate.Local(), inR, outW)
			outW.Close()
		}()
		transport = &sdk.IOTransport{Reader: outR, Writer: inW}
	}
	var err error
	if g.ClientSession, err = g.client.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// use calls a tool and returns its text.
func (g *guest) use(t *testing.T, tool string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := g.CallTool(ctx, &sdk.CallToolParams{Name: "up__" + tool})
	if err != nil {
		return "error: " + err.Error()
	}
	return res.Content[0].(*sdk.TextContent).Text
}

// Servers of the older revisions ask the client of the call that they work on, and no
// other, over a connection that is its own.
func TestServersAskTheClientOfTheCall(t *testing.T) {
	unraced.Long(t)
	for way, upstream := range upstreams {
		for _, era := range []string{rig.Old, rig.Newest} {
			for _, stdio := range []bool{false, true} {
				t.Run(fmt.Sprint(way, " ", era, " ", stdio), func(t *testing.T) {
					up := newAsker()
					x := newFront(t, up, upstream(t, up))
					mute := x.dial(t, "mute", era, stdio, true)
					var wg sync.WaitGroup
					for _, name := range []string{"ann", "bob"} {
						g := x.dial(t, name, era, stdio, false)
						wg.Go(func() {
							for range 3 {
								for tool, want := range map[string]string{"ask": "accept " + name, "sample": "I am " + name, "roots": "file:///" + name} {
									if got := g.use(t, tool); got != want {
										t.Errorf("%s: %s says %q, want %q", name, tool, got, want)
									}
								}
							}
							if asked := g.notes(&g.asked); !slices.Contains(asked, "who (are) you?") {
								t.Errorf("%s was asked %q, which is not sanitized", name, asked)
							}
						})
					}
					wg.Wait()
					if got := mute.use(t, "ask"); !strings.Contains(got, "no client can be asked") {
						t.Errorf("for a client that cannot be asked the server was told %q", got)
					}
					if n := up.connections(); n > 3 {
						t.Errorf("%d connections for two clients and the others", n)
					}
				})
			}
		}
	}
}

// The connections of a session end with it. The server can ask for its client's roots
// when the session begins, and within the call after they have changed.
func TestOwnConnectionsEndWithTheirSession(t *testing.T) {
	unraced.Long(t)
	for way, upstream := range upstreams {
		for _, stdio := range []bool{false, true} {
			t.Run(fmt.Sprint(way, " ", stdio), func(t *testing.T) {
				up := newAsker()
				x := newFront(t, up, upstream(t, up))
				early := "not connected" // over HTTP the server may ask before anybody listens
				if got := up.told(); !strings.Contains(got, "no client can be asked") && !(way == "HTTP" && strings.Contains(got, early)) {
					t.Errorf("on the shared connection the server was told %q", got)
				}
				g := x.dial(t, "ann", rig.Old, stdio, false)
				g.use(t, "linger")
				if got := up.told(); got != "file:///ann" && !(way == "HTTP" && strings.Contains(got, early)) {
					t.Errorf("at first the server was told %q", got)
				}
				if n := up.connections(); n != 2 {
					t.Errorf("%d connections", n)
				}
				g.client.AddRoots(&sdk.Root{URI: "file:///new", Name: "new"})
				<-x.changed
				g.use(t, "linger")
				if got := up.told(); got != "again file:///ann file:///new" {
					t.Errorf("later the server was told %q", got)
				}
				g.Close()
				rig.Within(t, "the connection is closed", func() bool { return up.connections() == 1 })
			})
		}
	}
}

// A server has so many connections for a client alone, and no more; idle ones make room.
func TestOwnConnectionsAreBounded(t *testing.T) {
	unraced.Long(t)
	up := newAsker()
	e := rig.NewEndpoint(t, func() options.Endpoint {
		cfg := upstreams["one stream"](t, up)
		cfg.Server, cfg.Tools = "up", rig.Options()
		return cfg
	}())
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, _ := rig.NewGate(t, e)
	call := func(ctx context.Context, session string, p gate.Client, tool string) error {
		c := rig.NewCall("up__"+tool, "{}")
		c.Session, c.Client = gate.SessionKey{Owner: c.Who.Owner, ID: session}, p
		_, err := g.Do(ctx, c)
		return err
	}
	for i := range upstream.MaxAudiences + 5 {
		if err := call(t.Context(), fmt.Sprint(i), answering("accept"), "log"); err != nil {
			t.Fatal(err)
		}
	}
	rig.Within(t, "idle connections make room", func() bool { return up.connections() == upstream.MaxAudiences+1 })

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	const most = upstream.MaxAudiences + fair.Extras // for callers that have none
	waiting := make(chan struct{}, most)
	for i := range most {
		wg.Go(func() { _ = call(ctx, fmt.Sprint("busy ", i), patient(waiting), "ask") })
	}
	for range most {
		<-waiting
	}
	err := call(t.Context(), "one more", answering("accept"), "log")
	if rig.Kind(err) != string(fault.Busy) || !strings.Contains(message.Public(err), "too many clients") {
		t.Errorf("one more client was told %v", err)
	}
	cancel()
	wg.Wait()
}

// answering is a client that answers each form in one way.
func answering(action string) gate.Client {
	return gatetest.Asked(`{"elicitation":{},"sampling":{}}`, func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
		return gate.MustDoc(`{"action":"` + action + `","content":{"name":"x"}}`), nil
	})
}

// patient is a client whose person never answers.
func patient(waiting chan<- struct{}) gate.Client {
	return gatetest.Asked(`{"elicitation":{}}`, func(ctx context.Context, _ gate.Action, _ gate.Doc) (gate.Doc, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		return gate.Doc{}, ctx.Err()
	})
}

// With sessions: shared a server has one connection, and learns that it can ask no client.
func TestSharedSessions(t *testing.T) {
	up := newAsker()
	cfg := upstreams["one stream"](t, up)
	cfg.Sessions = options.SessionsShared
	x := newFront(t, up, cfg)
	g := x.dial(t, "ann", rig.Old, false, false)
	if got := g.use(t, "ask"); !strings.HasPrefix(got, "error: ") || len(g.notes(&g.asked)) > 0 {
		t.Errorf("the server asked, and was told %q", got)
	}
	if n := up.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	cfg.Sessions = "some"
	cfg.Server = "up"
	if _, err := upstream.New(cfg); err == nil {
		t.Error("unknown sessions are taken")
	}
}

// Log messages reach only the client that wants them, from the level that it wants, and within the
// call that they belong to.
func TestLogMessages(t *testing.T) {
	for way, upstream := range upstreams {
		for _, mute := range []bool{true, false} { // over the shared connection, and over one's own
			t.Run(fmt.Sprint(way, " ", mute), func(t *testing.T) {
				up := newAsker()
				x := newFront(t, up, upstream(t, up))
				all := x.dial(t, "all", rig.Old, false, mute)
				some := x.dial(t, "some", rig.Old, true, mute)
				none := x.dial(t, "none", rig.Old, false, mute)
				if all.InitializeResult().Capabilities.Logging == nil {
					t.Fatal("logging is not offered")
				}
				for g, level := range map[*guest]sdk.LoggingLevel{all: "debug", some: "error"} {
					if err := g.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: level}); err != nil {
						t.Fatal(err)
					}
				}
				if err := some.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "loud"}); err == nil {
					t.Error("a level that there is not is taken")
				}
				for _, g := range []*guest{all, some, none} {
					if got := g.use(t, "log"); got != "logged" {
						t.Fatal(got)
					}
				}
				for g, want := range map[*guest][]string{all: {"debug (debug)", "info (info)", "error (error)"}, some: {"error (error)"}} {
					rig.Within(t, g.name+" hears what it wants", func() bool { return slices.Equal(g.notes(&g.heard), want) })
				}
				if got := none.notes(&none.heard); got != nil {
					t.Errorf("who wants nothing heard %q", got)
				}
			})
		}
	}
}

// A client without a session says with each request what it wants to hear.
func TestLogMessagesWithoutSession(t *testing.T) {
	up := newAsker()
	x := newFront(t, up, upstreams["one stream"](t, up))
	g := x.dial(t, "ann", rig.Newest, false, true)
	g.use(t, "log")
	params := &sdk.CallToolParams{Name: "up__log", Meta: sdk.Meta{"io.modelcontextprotocol/logLevel": "info"}}
	if _, err := g.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	rig.Within(t, "it hears what it wants", func() bool { return slices.Equal(g.notes(&g.heard), []string{"info (info)", "error (error)"}) })
}

// A log message outside of a call reaches the client that owns the connection. On a shared
// connection it reaches no client, because it could tell one client about another.
func TestLogMessagesOutsideOfCalls(t *testing.T) {
	for way, upstream := range upstreams {
		t.Run(way, func(t *testing.T) {
			up := newAsker()
			x := newFront(t, up, upstream(t, up))
			own, other := x.dial(t, "own", rig.Old, false, false), x.dial(t, "other", rig.Old, true, false)
			mute := x.dial(t, "mute", rig.Old, true, true)
			for _, g := range []*guest{own, other, mute} {
				if err := g.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "debug"}); err != nil {
					t.Fatal(err)
				}
			}
			other.use(t, "touch")
			mute.use(t, "later")
			own.use(t, "later")
			rig.Within(t, "it is heard", func() bool { return slices.Equal(own.notes(&own.heard), []string{"error (later)"}) })
			time.Sleep(100 * time.Millisecond) // the others would have heard it by now
			for _, g := range []*guest{other, mute} {
				if got := g.notes(&g.heard); got != nil {
					t.Errorf("%s heard %q", g.name, got)
				}
			}
		})
	}
}

// Updates of resources reach those alone who have subscribed to them and may.
func TestSubscriptions(t *testing.T) {
	for way, upstream := range upstreams {
		for _, mute := range []bool{true, false} {
			t.Run(fmt.Sprint(way, " ", mute), func(t *testing.T) {
				up := newAsker()
				x := newFront(t, up, upstream(t, up))
				one, two := x.dial(t, "one", rig.Old, false, mute), x.dial(t, "two", rig.Old, true, mute)
				none := x.dial(t, "none", rig.Old, false, mute)
				if !one.InitializeResult().Capabilities.Resources.Subscribe {
					t.Fatal("subscriptions are not offered")
				}
				for _, g := range []*guest{one, two} {
					if err := g.Subscribe(t.Context(), &sdk.SubscribeParams{URI: watched}); err != nil {
						t.Fatal(err)
					}
				}
				if err := one.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "up:///hidden"}); err == nil || !strings.Contains(err.Error(), "not this one") {
					t.Errorf("a subscription that is denied: %v", err)
				}
				if err := one.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "up:///unknown"}); err == nil {
					t.Error("a resource that there is not is subscribed to")
				}
				none.use(t, "touch")
				for _, g := range []*guest{one, two} {
					rig.Within(t, g.name+" is told", func() bool { return slices.Equal(g.notes(&g.heard), []string{watched}) })
				}
				if err := one.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: watched}); err != nil {
					t.Fatal(err)
				}
				none.use(t, "touch")
				rig.Within(t, "who is still subscribed is told again", func() bool { return len(two.notes(&two.heard)) == 2 })
				if got := one.notes(&one.heard); len(got) != 1 {
					t.Errorf("who has unsubscribed heard %q", got)
				}
				if got := none.notes(&none.heard); got != nil {
					t.Errorf("who has not subscribed heard %q", got)
				}
				if done := x.records.Done(); !slices.Contains(done, watched+" ok") || !slices.Contains(done, "up:///hidden refused_authorize") {
					t.Errorf("recorded are %q", done)
				}
			})
		}
	}
}

// Of a client without sessions what it listens to is decided too.
func TestListen(t *testing.T) {
	up := newAsker()
	x := newFront(t, up, upstreams["one stream"](t, up))
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + watched + `","up:///hidden"]},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := rig.Post(ctx, x.url, rig.Newest, "", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	told := make(chan string, 10)
	go func() {
		_ = rig.ReadStream(resp.Body, func(data []byte) (bool, error) { told <- string(data); return true, nil })
		close(told)
	}()
	if ack := <-told; !strings.Contains(ack, watched) || strings.Contains(ack, "hidden") {
		t.Errorf("acknowledged was %s", ack)
	}
	other := x.dial(t, "other", rig.Old, false, true)
	other.use(t, "touch")
	if got := <-told; !strings.Contains(got, "notifications/resources/updated") || !strings.Contains(got, watched) || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":1`) {
		t.Errorf("told was %s", got)
	}
	cancel()
	rig.Within(t, "the subscription ends with the stream", func() bool { return up.unsubscribed.Load() > 0 })
	if got := other.notes(&other.heard); got != nil {
		t.Errorf("another client heard %q", got)
	}
}

// A connection that is made anew, and the one of a server that is reloaded, has the
// subscriptions and the level of the one before.
func TestSubscriptionsOutliveTheConnection(t *testing.T) {
	for how, renew := range map[string]func(*front) error{
		"lost": func(x *front) error {
			for ss := range x.up.Sessions() {
				ss.Close()
			}
			return nil
		},
		"reloaded": func(x *front) error { return x.fleet.Reload(context.Background(), "up") },
	} {
		t.Run(how, func(t *testing.T) {
			up := newAsker()
			x := newFront(t, up, upstreams["one stream"](t, up))
			g := x.dial(t, "ann", rig.Old, false, true)
			if err := errors.Join(g.Subscribe(t.Context(), &sdk.SubscribeParams{URI: watched}), g.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "error"})); err != nil {
				t.Fatal(err)
			}
			if err := renew(x); err != nil {
				t.Fatal(err)
			}
			rig.Within(t, "the connection is made again", func() bool { return g.use(t, "log") == "logged" })
			rig.Within(t, "what is logged is heard", func() bool { return slices.Contains(g.notes(&g.heard), "error (error)") })
			rig.Within(t, "updates are heard", func() bool { g.use(t, "touch"); return slices.Contains(g.notes(&g.heard), watched) })
		})
	}
}
