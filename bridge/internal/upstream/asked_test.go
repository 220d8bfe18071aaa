package upstream_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A prober is a server on whose connection a test speaks for it while it works on a call.
type prober struct {
	capabilities, tools string

	conn    chan sdk.Connection // of a client's own connection
	calls   chan jsonrpc.ID     // of tools
	answers chan *jsonrpc.Response
}

// newProber returns a server with these capabilities and tools.
func newProber(t *testing.T, capabilities, tools string) (*prober, *upstream.Endpoint) {
	p := &prober{capabilities: capabilities, tools: tools, conn: make(chan sdk.Connection, 9), calls: make(chan jsonrpc.ID, 9), answers: make(chan *jsonrpc.Response, 99)}
	e := rig.NewEndpoint(t, options.Endpoint{Server: "up", Tools: rig.Options(), Protocol: mcp.Revision, Dial: func() (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		c, err := ours.Connect(context.Background())
		if err == nil {
			p.conn <- c
			go p.serve(c)
		}
		return theirs, err
	}})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-p.conn // the shared one
	return p, e
}

func (p *prober) serve(c sdk.Connection) {
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			p.answers <- m
		case *jsonrpc.Request:
			result := map[string]string{
				"initialize": strings.Replace(rig.Initialized, `"capabilities":{}`, `"capabilities":`+p.capabilities, 1),
				"tools/list": `{"tools":[` + p.tools + `]}`,
			}[m.Method]
			result = cmp.Or(result, "{}")
			if m.Method == "tools/call" {
				p.calls <- m.ID
			} else if m.IsCall() {
				_ = c.Write(context.Background(), &jsonrpc.Response{ID: m.ID, Result: json.RawMessage(result)})
			}
		}
	}
}

// A slowPeer is a client that answers when a test gives it the answer.
type slowPeer struct {
	gate.Nobody
	asked  chan context.Context
	answer chan string
}

func (slowPeer) Reach() gate.Reach {
	return gate.Reach{Capabilities: gate.MustDoc(`{"roots":{},"elicitation":{}}`)}
}

func (s slowPeer) Request(ctx context.Context, _ gate.Action, _ gate.Doc) (gate.Doc, error) {
	s.asked <- ctx
	select {
	case a := <-s.answer:
		return gate.MustDoc(a), nil
	case <-ctx.Done():
		return gate.Doc{}, ctx.Err()
	}
}

// What a server asks in a call is answered, cancelled when it wants no answer any more,
// and bounded; what comes after the call is refused.
func TestAsked(t *testing.T) {
	p, e := newProber(t, `{}`, rig.EchoTool)
	client := slowPeer{asked: make(chan context.Context, 99), answer: make(chan string)}
	g, _ := rig.NewGate(t, e)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		c := rig.NewCall("up__echo", "{}")
		c.Session, c.Client = gate.SessionKey{Owner: c.Who.Owner, ID: "s"}, client
		_, _ = g.Do(t.Context(), c)
	})
	conn, call := <-p.conn, <-p.calls
	ask := func(id, method, params string) {
		t.Helper()
		n, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), &jsonrpc.Request{ID: n, Method: method, Params: json.RawMessage(params)}); err != nil {
			t.Fatal(err)
		}
	}
	code := func() string {
		t.Helper()
		select {
		case a := <-p.answers:
			var wire *jsonrpc.Error
			if a.Error == nil {
				return fmt.Sprint(a.ID.Raw(), " ", string(a.Result))
			}
			if w, ok := a.Error.(*jsonrpc.Error); ok {
				wire = w
			}
			return fmt.Sprint(a.ID.Raw(), " ", wire.Code)
		case <-time.After(time.Minute):
			return "no answer"
		}
	}

	ask("a", "roots/list", "{}")
	<-client.asked
	client.answer <- `{"roots":[]}`
	if got := code(); got != `a {"roots":[]}` {
		t.Errorf("answered %s", got)
	}
	ask("b", "tools/list", "{}")
	if got := code(); got != "b -32601" {
		t.Errorf("a method that clients have not is answered %s", got)
	}

	ask("c", "roots/list", "{}")
	ctx := <-client.asked
	if err := conn.Write(t.Context(), &jsonrpc.Request{Method: "notifications/cancelled", Params: json.RawMessage(`{"requestId":"c"}`)}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("the client is still asked what the server has cancelled")
	}

	for i, end := 0, time.Now().Add(time.Minute); i < wire.MaxAsked; {
		ask(fmt.Sprint("d", i), "roots/list", "{}")
		select {
		case <-client.asked:
			i++
		case <-p.answers: // what the server has cancelled is counted for a moment yet
		case <-time.After(time.Until(end)):
			t.Fatalf("of %d requests the client is asked %d", wire.MaxAsked, i)
		}
	}
	ask("d0", "roots/list", "{}") // the id of one that waits
	if got := code(); got != "d0 -32012" {
		t.Errorf("an id in use is answered %s", got)
	}
	ask("e", "roots/list", "{}")
	if got := code(); got != "e -32012" {
		t.Errorf("one request too many is answered %s", got)
	}
	for range wire.MaxAsked {
		client.answer <- `{"roots":[]}`
		code()
	}

	if err := conn.Write(t.Context(), &jsonrpc.Response{ID: call, Result: json.RawMessage(`{"content":[]}`)}); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	ask("f", "roots/list", "{}")
	if got := code(); got != "f -32011" {
		t.Errorf("a request after the call is answered %s", got)
	}
}
