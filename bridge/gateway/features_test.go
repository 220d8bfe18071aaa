package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
)

// hiddenText is what a person would not see, and a model would read.
const hiddenText = "plain\u200b\U000e0041\U000e0042"

// newLibrary returns a server with prompts, resources, a template and completion.
func newLibrary() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
				Values: []string{r.Params.Ref.Type + " " + r.Params.Ref.Name + r.Params.Ref.URI + " " + r.Params.Argument.Value + hiddenText},
			}}, nil
		},
	})
	for _, name := range []string{"greet", "secret", "odd name!"} {
		s.AddPrompt(&mcp.Prompt{Name: name, Description: "says " + hiddenText, Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
			func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				if r.Params.Arguments["who"] == "nobody" {
					return nil, &jsonrpc.Error{Code: -32077, Message: "nobody " + hiddenText, Data: json.RawMessage(`{"big":12345678901234567890}`)}
				}
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
					{Role: "user", Content: &mcp.TextContent{Text: "hello " + r.Params.Arguments["who"] + hiddenText}},
					{Role: "user", Content: &mcp.ImageContent{MIMEType: "image/png", Data: []byte("<script>no image</script>")}},
				}}, nil
			})
	}
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: r.Params.URI, MIMEType: "text/plain", Text: "text of " + r.Params.URI + hiddenText},
			{URI: r.Params.URI, MIMEType: "image/png", Blob: []byte("<script>no image</script>")},
		}}, nil
	}
	for _, uri := range []string{"doc://open/a", "doc://closed/b"} {
		s.AddResource(&mcp.Resource{URI: uri, Name: "a doc", MIMEType: "text/plain", Description: hiddenText}, read)
	}
	for _, template := range []string{"doc://open/pages/{page}", "doc://closed/pages/{page}"} {
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: template, Name: "pages"}, read)
	}
	return s
}

// upstream reaches an SDK server in this process.
func upstream(name string, s *mcp.Server) options.Endpoint {
	return options.Endpoint{Server: name, Dial: func() (mcp.Transport, error) {
		a, b := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), a, nil)
		return b, err
	}}
}

// openGrants grant a part of the library.
var openGrants = []policy.Grant{{To: []string{"*"}, Prompts: []string{"library__greet", "library__odd*"}, Resources: []string{"doc://open/*"}}}

// library starts a gateway in front of the library, and returns its log.
func library(t *testing.T, grants []policy.Grant) (*gateway.Gateway, string) {
	t.Helper()
	log := t.TempDir() + "/audit.jsonl"
	g := start(t, gateway.Config{
		Audit: log, AuditOptions: audit.Options{Node: "n"}, Servers: []options.Endpoint{upstream("library", newLibrary())},
		Policy: gateway.Policy{Options: policy.Options{Grants: grants}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, log
}

// clients returns a client of each revision, over each transport.
func clients(t *testing.T, g *gateway.Gateway) map[string]*mcp.ClientSession {
	t.Helper()
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	all := make(map[string]*mcp.ClientSession)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { // ends with the client
			_ = g.Serve(context.Background(), gate.Local(), inR, outW)
			outW.Close()
		}()
		for front, transport := range map[string]mcp.Transport{
			"HTTP": &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, "stdio": &mcp.IOTransport{Reader: outR, Writer: inW},
		} {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
				Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatalf("%s, %s: %v", front, revision, err)
			}
			t.Cleanup(func() { c.Close() })
			all[front+", "+revision] = c
		}
	}
	return all
}

func names[T any](list []T, name func(T) string) (all []string) {
	for _, one := range list {
		all = append(all, name(one))
	}
	slices.Sort(all)
	return all
}

// safe fails the test if hidden text, or what is no image, came through.
func safe(t *testing.T, what string, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\u200b", "\U000e0041", "PHNjcmlwdD5ubyBpbWFnZTwvc2NyaXB0Pg"} {
		if strings.Contains(string(b), bad) {
			t.Errorf("%s: %q came through: %s", what, bad, b)
		}
	}
	return string(b)
}

// Prompts, resources and completion through the whole gateway: only what is granted is listed and
// usable under its offered name, sanitized.
func TestFeatures(t *testing.T) {
	g, _ := library(t, openGrants)
	for front, c := range clients(t, g) {
		t.Run(front, func(t *testing.T) {
			ctx := t.Context()
			if caps := c.InitializeResult().Capabilities; caps.Prompts == nil || !caps.Prompts.ListChanged || caps.Resources == nil || caps.Resources.Subscribe || caps.Completions == nil {
				t.Errorf("capabilities %+v", caps)
			}
			prompts, err := c.ListPrompts(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := names(prompts.Prompts, func(p *mcp.Prompt) string { return p.Name })
			if diff := cmp.Diff([]string{"library__greet", "library__odd_name_"}, got); diff != "" {
				t.Error(diff)
			}
			safe(t, "prompts/list", prompts)
			resources, err := c.ListResources(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"doc://open/a"}, names(resources.Resources, func(r *mcp.Resource) string { return r.URI })); diff != "" {
				t.Error(diff)
			}
			safe(t, "resources/list", resources)
			templates, err := c.ListResourceTemplates(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"doc://open/pages/{page}"}, names(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) string { return r.URITemplate })); diff != "" {
				t.Error(diff)
			}

			for _, name := range []string{"library__greet", "library__odd_name_"} {
				prompt, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"who": "ann"}})
				if err != nil {
					t.Fatal(err)
				}
				if s := safe(t, "prompts/get", prompt); !strings.Contains(s, "hello annplain") || !strings.Contains(s, "[removed: ") {
					t.Errorf("prompts/get: %s", s)
				}
			}
			for _, uri := range []string{"doc://open/a", "doc://open/pages/7"} {
				res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
				if err != nil {
					t.Fatal(err)
				}
				if s := safe(t, "resources/read", res); !strings.Contains(s, "text of "+uri+"plain") || !strings.Contains(s, "[removed: ") {
					t.Errorf("resources/read: %s", s)
				}
			}
			for want, ref := range map[string]*mcp.CompleteReference{
				"ref/prompt odd name! anplain[removed: hidden text]":                 {Type: "ref/prompt", Name: "library__odd_name_"},
				"ref/resource doc://open/pages/{page} anplain[removed: hidden text]": {Type: "ref/resource", URI: "doc://open/pages/{page}"},
			} {
				argument := mcp.CompleteParamsArgument{Name: "who", Value: "an"}
				if ref.URI != "" {
					argument.Name = "page"
				}
				res, err := c.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: argument})
				if err != nil {
					t.Fatal(err)
				}
				if safe(t, "completion/complete", res); !slices.Equal(res.Completion.Values, []string{want}) {
					t.Errorf("completed %q, want %q", res.Completion.Values, want)
				}
			}
		})
	}
}

// What is hidden and what does not exist are answered alike, what is malformed is
// refused, and a server's own error stays one.
func TestFeaturesRefused(t *testing.T) {
	g, log := library(t, openGrants)
	prompt := func(name string, args map[string]string) func(*mcp.ClientSession) error {
		return func(c *mcp.ClientSession) error {
			_, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: args})
			return err
		}
	}
	read := func(uri string) func(*mcp.ClientSession) error {
		return func(c *mcp.ClientSession) error {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			return err
		}
	}
	complete := func(ref mcp.CompleteReference, argument string) func(*mcp.ClientSession) error {
		return func(c *mcp.ClientSession) error {
			_, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &ref, Argument: mcp.CompleteParamsArgument{Name: argument}})
			return err
		}
	}
	who := map[string]string{"who": "ann"}
	const noResource = -32002 // -32602 since 2026-07-28
	tests := map[string]struct {
		do   func(*mcp.ClientSession) error
		code int64
		says string
	}{
		"a hidden prompt":                  {prompt("library__secret", who), -32602, `unknown prompt "library__secret"`},
		"an unknown prompt":                {prompt("library__nothing", who), -32602, `unknown prompt "library__nothing"`},
		"a prompt by its server's name":    {prompt("greet", who), -32602, `unknown prompt "greet"`},
		"a prompt without its argument":    {prompt("library__greet", nil), -32010, "a required argument of the prompt is missing"},
		"a prompt with another argument":   {prompt("library__greet", map[string]string{"who": "a", "x": "y"}), -32010, "does not declare"},
		"a prompt that its server refuses": {prompt("library__greet", map[string]string{"who": "nobody"}), -32077, "nobody plain"},
		"a hidden resource":                {read("doc://closed/b"), noResource, `unknown resource "doc://closed/b"`},
		"an unknown resource":              {read("doc://nowhere/b"), noResource, `unknown resource "doc://nowhere/b"`},
		"a hidden page":                    {read("doc://closed/pages/1"), noResource, `unknown resource "doc://closed/pages/1"`},
		"a page of two segments":           {read("doc://open/pages/1/2"), noResource, "unknown resource"},
		"a page that climbs":               {read("doc://open/pages/%2e%2e%2fb"), noResource, "unknown resource"},
		"completion of a hidden prompt":    {complete(mcp.CompleteReference{Type: "ref/prompt", Name: "library__secret"}, "who"), -32602, `unknown prompt or template of resources "library__secret"`},
		"completion of an unknown prompt":  {complete(mcp.CompleteReference{Type: "ref/prompt", Name: "library__nothing"}, "who"), -32602, `unknown prompt or template of resources "library__nothing"`},
		"completion of a hidden template":  {complete(mcp.CompleteReference{Type: "ref/resource", URI: "doc://closed/pages/{page}"}, "page"), -32602, "unknown prompt or template"},
		"completion of what is not there":  {complete(mcp.CompleteReference{Type: "ref/prompt", Name: "library__greet"}, "whom"), -32010, "does not declare this argument"},
	}
	for front, c := range clients(t, g) {
		for name, tt := range tests {
			want := tt.code
			if want == noResource && strings.HasSuffix(front, "2026-07-28") {
				want = -32602
			}
			err := tt.do(c)
			rpc, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || rpc.Code != want || !strings.Contains(rpc.Message, tt.says) {
				t.Errorf("%s: %s: %v, want code %d and %q", front, name, err, want, tt.says)
				continue
			}
			if strings.HasPrefix(rpc.Message, "unknown resource") != strings.Contains(string(rpc.Data), `"uri"`) {
				t.Errorf("%s: %s: data %s", front, name, rpc.Data)
			}
			if safe(t, name, rpc); want == -32077 && string(rpc.Data) != `{"big":12345678901234567890}` {
				t.Errorf("%s: %s: data %s", front, name, rpc.Data)
			}
		}
	}
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == gate.Done {
			recorded[string(e.Action)+" "+e.Tool+" "+e.Code]++
		}
	}
	for _, want := range []string{
		"prompts/get library__secret refused_authorize", "prompts/get library__nothing refused_lookup",
		"resources/read doc://closed/b refused_authorize", "resources/read doc://closed/pages/1 refused_authorize",
		"completion/complete doc://closed/pages/{page} refused_authorize", "prompts/get library__greet tool_error",
	} {
		if recorded[want] == 0 {
			t.Errorf("no record of %q in %v", want, recorded)
		}
	}
}

// A granted server grants its prompts and resources; a granted tool grants none.
func TestFeaturesOfAGrantedServer(t *testing.T) {
	for name, tt := range map[string]struct {
		grant policy.Grant
		want  int
	}{
		"the server":     {policy.Grant{To: []string{"*"}, Servers: []string{"library"}}, 3},
		"all its tools":  {policy.Grant{To: []string{"*"}, Tools: []string{"library__*"}}, 0},
		"another server": {policy.Grant{To: []string{"*"}, Servers: []string{"libraries"}}, 0},
	} {
		g, _ := library(t, []policy.Grant{tt.grant})
		who := gate.Local()
		got := 0
		for _, c := range []gate.Call{
			{Action: gate.GetPrompt, Name: "library__greet", Args: gate.MustDoc(`{"who":"a"}`), Who: who},
			{Action: gate.ReadResource, Name: "doc://closed/b", Who: who},
			{Action: gate.ReadResource, Name: "doc://closed/pages/1", Who: who},
		} {
			if _, err := g.Do(t.Context(), c); err == nil {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d uses passed, want %d", name, got, tt.want)
		}
	}
}

// What a session reads of a resource or a prompt is untrusted from then on.
func TestFeaturesTaint(t *testing.T) {
	g, log := library(t, openGrants)
	for i, c := range []gate.Call{
		{Action: gate.GetPrompt, Name: "library__greet", Args: gate.MustDoc(`{"who":"a"}`)},
		{Action: gate.ReadResource, Name: "doc://open/a"},
	} {
		c.Who, c.Session = gate.Local(), gate.SessionKey{Owner: gate.Local().Owner, ID: []string{"one", "two"}[i]}
		if _, err := g.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	tainted := 0
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == gate.Done && e.LabelsAfter.Cover(gate.Labels{provenance.Untrusted}) && !e.LabelsBefore.Cover(gate.Labels{provenance.Untrusted}) {
			tainted++
		}
	}
	if tainted != 2 {
		t.Errorf("%d sessions became untrusted, want 2", tainted)
	}
}

// A gateway whose servers have nothing but tools does not say that it has more.
func TestFeaturesThatNobodyHas(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	g := start(t, gateway.Config{Recorder: new(records), Servers: []options.Endpoint{upstream("bare", s)}})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for front, c := range clients(t, g) {
		caps := c.InitializeResult().Capabilities
		if caps.Tools == nil || caps.Prompts != nil || caps.Resources != nil || caps.Completions != nil {
			t.Errorf("%s: capabilities %+v", front, caps)
		}
		if _, err := c.ListPrompts(t.Context(), nil); err == nil {
			t.Errorf("%s: prompts/list is served", front)
		}
	}
}

// A listing is its principal's own.
func TestFeaturesOfAPrincipal(t *testing.T) {
	g, _ := library(t, []policy.Grant{{To: []string{"alice"}, Prompts: []string{"library__greet"}}})
	for id, want := range map[string]int{"alice": 1, "bob": 0} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { // ends with the client
			_ = g.Serve(context.Background(), &gate.Principal{Owner: gate.Owner{ID: id}, Auth: "local"}, inR, outW)
			outW.Close()
		}()
		c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if list, err := c.ListPrompts(t.Context(), nil); err != nil || len(list.Prompts) != want {
			t.Errorf("%s is offered %v, %v; want %d prompts", id, list, err, want)
		}
		_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "library__greet", Arguments: map[string]string{"who": "x"}})
		if (err == nil) != (want == 1) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
