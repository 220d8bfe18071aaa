package gateway_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

const shared = "doc://shared"

// newShelf returns a server with a resource, a tool that links to it, and updates of it.
// What is subscribed to there, and no more, goes to asked.
func newShelf(name string, asked chan<- string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { asked <- "+" + r.Params.URI; return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { asked <- "-" + r.Params.URI; return nil },
	})
	for _, uri := range []string{shared, "doc://only-of-" + name} {
		s.AddResource(&mcp.Resource{URI: uri, Name: "of " + name}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name + " has " + r.Params.URI}}}, nil
		})
	}
	s.AddTool(&mcp.Tool{Name: "find", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.ResourceLink{URI: shared, Name: "shared"}, &mcp.ResourceLink{URI: "doc://only-of-" + name, Name: "own"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: shared, Text: shared}},
			},
			StructuredContent: map[string]string{"uri": shared},
		}, nil
	})
	return s
}

// TestTwoServersWithOneURI: the first has it, the other's is read, linked to and
// subscribed to by another one. Policies see what the servers wrote.
func TestTwoServersWithOneURI(t *testing.T) {
	first, second := newShelf("first", nil), newShelf("second", nil)
	rules := fstest.MapFS{"a.rego": {Data: []byte(`package wasmgate

deny contains sprintf("%s of %s", [input.resource.uri, input.resource.server]) if {
	input.resource.uri == "doc://shared"
	input.resource.server == data.grants[0].servers[2]
}
`)}}
	run := func(denied string) *gateway.Gateway {
		g := start(t, gateway.Config{
			Recorder: new(records), Servers: []options.Endpoint{upstream("first", first), upstream("second", second)},
			Sanitize: clean.Sanitize{Links: []string{"*"}},
			Policy:   gateway.Policy{Files: rules, Options: policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"first", "second", denied}}}}},
		})
		if err := g.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := run("none")
	opaque := "wasmgate://second/" + base64.RawURLEncoding.EncodeToString([]byte(shared))
	for _, c := range g.Fleet().Features(t.Context(), gate.FeatureResource) {
		if c.Offered == opaque && c.Local != shared {
			t.Errorf("%+v", c)
		}
	}
	for era, c := range clients(t, g) {
		list, err := c.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.Resources {
			got = append(got, r.URI+" "+r.Name)
		}
		want := []string{"doc://only-of-first of first", shared + " of first", "doc://only-of-second of second", opaque + " of second"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", era, diff)
		}
		for uri, text := range map[string]string{shared: "first has " + shared, opaque: "second has " + shared} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(res.Contents) != 1 || res.Contents[0].URI != uri || res.Contents[0].Text != text {
				t.Errorf("%s: %s: %+v, %v", era, uri, res, err)
			}
		}
		for tool, link := range map[string]string{"first__find": shared, "second__find": opaque} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if err != nil || len(res.Content) != 3 {
				t.Fatalf("%s: %s: %+v, %v", era, tool, res, err)
			}
			embedded := res.Content[2].(*mcp.EmbeddedResource).Resource
			if res.Content[0].(*mcp.ResourceLink).URI != link || embedded.URI != link || embedded.Text != shared ||
				res.Content[1].(*mcp.ResourceLink).URI == link || !cmp.Equal(res.StructuredContent, any(map[string]any{"uri": shared})) {
				t.Errorf("%s: %s: %+v", era, tool, res)
			}
		}
		forged := "wasmgate://first/" + base64.RawURLEncoding.EncodeToString([]byte(shared))
		for _, uri := range []string{forged, opaque + "x", "wasmgate://second/%", strings.ToUpper(opaque)} {
			if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s: %s is read: %+v", era, uri, res)
			}
		}
	}

	g = run("second")
	for _, c := range clients(t, g) {
		if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: opaque}); err == nil {
			t.Errorf("what the policy denies by its own URI is read: %+v", res)
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: shared}); err != nil {
			t.Error(err)
		}
	}
}

// TestUpdatesOfASharedURI reach who subscribed to the one of that server, under the URI
// by which it did.
func TestUpdatesOfASharedURI(t *testing.T) {
	asked := make(chan string, 10)
	first, second := newShelf("first", asked), newShelf("second", asked)
	g := start(t, gateway.Config{
		Recorder: new(records), Servers: []options.Endpoint{upstream("first", first), upstream("second", second)},
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"first", "second"}}}}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	opaque := "wasmgate://second/" + base64.RawURLEncoding.EncodeToString([]byte(shared))
	heard := make(chan string, 10)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
	}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: opaque}); err != nil {
		t.Fatal(err)
	}
	updated := func(s *mcp.Server) {
		t.Helper()
		if err := s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: shared}); err != nil {
			t.Fatal(err)
		}
	}
	updated(first)
	updated(second)
	select {
	case uri := <-heard:
		if uri != opaque {
			t.Errorf("heard of %s", uri)
		}
	case <-time.After(patience):
		t.Fatal("heard of nothing")
	}
	if err := c.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: opaque}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+" + shared, "-" + shared} {
		select {
		case got := <-asked:
			if got != want {
				t.Errorf("the server was asked %s, want %s", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("the server was not asked %s", want)
		}
	}
}

// TestNobodyTakesTheGatewaysScheme: a server that lists such a URI could have what is
// another's.
func TestNobodyTakesTheGatewaysScheme(t *testing.T) {
	s := newShelf("first", nil)
	for _, uri := range []string{"wasmgate://second/ZG9j", "WasmGate://x"} {
		s.AddResource(&mcp.Resource{URI: uri, Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, io.ErrUnexpectedEOF
		})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "wasmgate://second/{x}", Name: "x"}, nil)
	g := start(t, gateway.Config{Recorder: new(records), Servers: []options.Endpoint{upstream("first", s)}})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := g.Fleet().Status()[0]
	refused := 0
	for _, n := range st.Notes {
		if n.Quarantined && strings.Contains(n.Text, "reserved for the gateway") {
			refused++
		}
	}
	if refused != 3 || st.Resources != 2 || st.Templates != 0 {
		t.Errorf("status %+v", st)
	}
}

// TestConflictsWithTheHost: a host that has tools of its own keeps their names.
func TestConflictsWithTheHost(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"Read", "Stat"} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
	}
	bare := upstream("files", s)
	bare.Tools.Bare = true
	g := start(t, gateway.Config{Recorder: new(records), Servers: []options.Endpoint{bare}, HostTools: []string{"Read", "Write"}, Policy: granting("*")})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools, err := g.Operator().Tools(t.Context(), gate.Local())
	if err != nil || len(tools) != 2 {
		t.Fatal(tools, err)
	}
	other := tools[0].Offered
	if !strings.HasPrefix(other, "Read_") || tools[0].Definition.Get("name").Text() != other || tools[1].Offered != "Stat" {
		t.Errorf("offered %s and %s", other, tools[1].Offered)
	}
	want := []status.Conflict{{Name: "Read", Server: "files", ShadowedBy: fleet.OwnerHost, Offered: other, Resolution: "offered as " + other}}
	if diff := cmp.Diff(want, g.Fleet().Conflicts()); diff != "" {
		t.Error(diff)
	}
	if res, err := call(g, other, `{}`); err != nil || res.Doc.At("/content/0/text").Text() != "Read" {
		t.Errorf("%s: %s, %v", other, res.Doc, err)
	}
	if _, err := call(g, "Read", `{}`); gate.Code(err) != "refused_lookup" {
		t.Errorf("the host's own name is the server's: %v", err)
	}
	st := g.Fleet().Status()[0]
	if len(st.Notes) == 0 || !strings.Contains(st.Notes[len(st.Notes)-1].Text, "the host has a tool of its own by Read") {
		t.Errorf("notes %+v", st.Notes)
	}
}

// TestTwoServersWithOneTemplate: the first server keeps the template; the other's is offered, read,
// completed and denied by an opaque one, which policies and the audit log do not see.
func TestTwoServersWithOneTemplate(t *testing.T) {
	const template, made = "note://{id}{?rev}", "note://7?rev=2"
	server := func(name string) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
			CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
				return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{name + " " + r.Params.Ref.URI}}}, nil
			},
		})
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: template, Name: "of " + name}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name}}}, nil
		})
		s.AddTool(&mcp.Tool{Name: "find", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: made, Name: "found"}, &mcp.ResourceLink{URI: "other://7", Name: "other"}}}, nil
		})
		return s
	}
	log := new(records)
	g := start(t, gateway.Config{
		Recorder: log, Servers: []options.Endpoint{upstream("first", server("first")), upstream("second", server("second"))},
		Sanitize: clean.Sanitize{Links: []string{"*"}},
		Policy: gateway.Policy{
			Options: policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"first", "second"}}}},
			Files: fstest.MapFS{"a.rego": {Data: []byte(`package wasmgate

deny contains "not this one" if {
	input.resource.uri == "note://hidden"
	input.resource.template == "note://{id}{?rev}"
	input.resource.server == "second"
}
`)}},
		},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	const opaque = "wasmgate://second/template/"
	if got := g.Fleet().Conflicts(); len(got) != 1 || got[0].Name != template || got[0].Offered != opaque+template || got[0].ShadowedBy != "first" {
		t.Errorf("conflicts: %+v", got)
	}
	for era, c := range clients(t, g) {
		list, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.ResourceTemplates {
			got = append(got, r.URITemplate+" "+r.Name)
		}
		if diff := cmp.Diff([]string{template + " of first", opaque + template + " of second"}, got); diff != "" {
			t.Errorf("%s: %s", era, diff)
		}
		for uri, name := range map[string]string{made: "first", opaque + made: "second"} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(res.Contents) != 1 || res.Contents[0].URI != uri || res.Contents[0].Text != name {
				t.Errorf("%s: %s: %+v, %v", era, uri, res, err)
			}
		}
		for uri, name := range map[string]string{template: "first", opaque + template: "second"} {
			res, err := c.Complete(t.Context(), &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/resource", URI: uri}, Argument: mcp.CompleteParamsArgument{Name: "id", Value: "x"},
			})
			if err != nil || !cmp.Equal(res.Completion.Values, []string{name + " " + template}) {
				t.Errorf("%s: completing %s: %+v, %v", era, uri, res, err)
			}
		}
		for tool, link := range map[string]string{"first__find": made, "second__find": opaque + made} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if err != nil || len(res.Content) != 2 {
				t.Fatalf("%s: %s: %+v, %v", era, tool, res, err)
			}
			if res.Content[0].(*mcp.ResourceLink).URI != link || res.Content[1].(*mcp.ResourceLink).URI != "other://7" {
				t.Errorf("%s: %s: %+v", era, tool, res)
			}
		}
		for _, uri := range []string{
			"wasmgate://first/template/" + made, opaque, opaque + "other://7", opaque + "note://..", opaque + opaque + made,
			"wasmgate://nobody/template/" + made, opaque + "note://hidden",
		} {
			if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s: %s is read: %+v", era, uri, res)
			}
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://hidden"}); err != nil {
			t.Errorf("%s: what is denied of the second is denied of the first: %v", era, err)
		}
	}
}
