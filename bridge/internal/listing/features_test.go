package listing_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// everyCapability is the answer to initialize of a server that has all.
const everyCapability = `{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}`

// newLister returns a server that lists the given answers, by method.
func newLister(answers map[string]string) *rig.Script {
	all := map[string]string{
		"initialize": everyCapability, "prompts/list": `{"prompts":[]}`, "resources/list": `{"resources":[]}`, "resources/templates/list": `{"resourceTemplates":[]}`,
	}
	for method, answer := range answers {
		all[method] = answer
	}
	return rig.NewScript(all)
}

// fleetOf returns a fleet of servers that are connected.
func fleetOf(t testing.TB, servers ...options.Endpoint) *fleet.Fleet {
	t.Helper()
	return rig.Connected(t, fleet.Config{Servers: servers})
}

// frontOf returns a host in front of a fleet, whose gate allows everything.
func frontOf(t testing.TB, f *fleet.Fleet) *rig.Fixture {
	t.Helper()
	g, recorded := rig.NewGate(t, f)
	h, err := host.New(host.Config{Config: dispatch.Config{Do: g.Do, Tools: g.Tools, Features: g.Features, Offering: f.Offering}, Terms: host.Terms{Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(f.Watch(func(status.Lists) { h.Changed() }))
	return &rig.Fixture{Host: h, Fleet: f, Records: recorded, URL: srv.URL}
}

// TestLosslessFeatures: definitions and results of prompts and resources pass as the
// server wrote them, and requests reach it under its own names.
func TestLosslessFeatures(t *testing.T) {
	const (
		strange = `"x-unknown":{"n":12345678901234567890,"e":1e+5,"a":[-0,0.10]},"_meta":{"k":1.0}`
		prompt  = `{"name":"greet","description":"\u003ca>",` + strange + `}`
		doc     = `{"uri":"doc://a?x=1&y=2","name":"a",` + strange + `}`
		pages   = `{"uriTemplate":"doc://pages/{page}","name":"pages",` + strange + `}`
		got     = `{"messages":[{"role":"user","content":{"type":"novel","z":1.50}}],` + strange + `}`
		read    = `{"contents":[{"uri":"doc://a?x=1&y=2","text":"t","z":1.50}],` + strange + `}`
		values  = `{"completion":{"values":["a"],"total":100000000000000000000},` + strange + `}`
	)
	s := newLister(map[string]string{
		"prompts/list": `{"prompts":[` + prompt + `]}`, "resources/list": `{"resources":[` + doc + `]}`,
		"resources/templates/list": `{"resourceTemplates":[` + pages + `]}`,
		"prompts/get":              got, "resources/read": read, "completion/complete": values,
	})
	x := frontOf(t, fleetOf(t, s.Config("lib")))
	const cache = `,"ttlMs":0,"cacheScope":"private"`
	tests := []struct {
		method, params, want string
		cached               bool
	}{
		{"prompts/list", "", `{"prompts":[` + strings.Replace(prompt, "greet", "lib__greet", 1) + `]}`, true},
		{"resources/list", "", `{"resources":[` + doc + `]}`, true},
		{"resources/templates/list", "", `{"resourceTemplates":[` + pages + `]}`, true},
		{"prompts/get", `"name":"lib__greet"`, got, false},
		{"resources/read", `"uri":"doc://a?x=1&y=2"`, read, true},
		{"resources/read", `"uri":"doc://pages/7"`, read, true},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"doc://pages/{page}"},"argument":{"name":"page","value":"1"}`, values, false},
	}
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			send := w.Dial(t, x)
			for _, tt := range tests {
				want := gate.MustDoc(tt.want)
				if w.Era == rig.Newest {
					if tt.cached {
						want = gate.MustDoc(strings.TrimSuffix(tt.want, "}") + cache + "}")
					}
					want = want.With("resultType", []byte(`"complete"`))
					meta := want.Get("_meta")
					if meta.IsZero() {
						meta = gate.MustDoc("{}")
					}
					want = want.With("_meta", meta.With("io.modelcontextprotocol/serverInfo", []byte(`{"name":"wasmgate","version":"1"}`)).Raw())
				}
				answer := send(rig.Request(w.Era, "1", tt.method, tt.params))
				if diff := cmp.Diff(want.String(), gate.MustDoc(answer).Get("result").String()); diff != "" {
					t.Errorf("%s: %s\n%s", tt.method, diff, answer)
				}
			}
		})
	}
}

// TestServersSeeTheirOwnNames: what a client calls by offered names reaches the
// server under those that it gave.
func TestServersSeeTheirOwnNames(t *testing.T) {
	type seen struct{ prompt, uri, ref string }
	var last seen
	s := mcp.NewServer(&mcp.Implementation{Name: "lib", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			last.ref = r.Params.Ref.Type + " " + r.Params.Ref.Name + r.Params.Ref.URI + " " + r.Params.Argument.Name + " " + r.Params.Context.Arguments["b"]
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
	})
	s.AddPrompt(&mcp.Prompt{Name: "my prompt", Arguments: []*mcp.PromptArgument{{Name: "a"}, {Name: "b"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		last.prompt = r.Params.Name + " " + r.Params.Arguments["a"]
		return &mcp.GetPromptResult{}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "doc://{a}", Name: "d"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		last.uri = r.Params.URI
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "t"}}}, nil
	})
	f := fleetOf(t, options.Endpoint{Server: "lib", Tools: rig.Options(), Dial: func() (mcp.Transport, error) {
		a, b := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), a, nil)
		return b, err
	}})
	g, _ := rig.NewGate(t, f)
	for _, c := range []gate.Call{
		{Action: gate.GetPrompt, Name: "lib__my_prompt", Args: gate.MustDoc(`{"a":"x"}`)},
		{Action: gate.ReadResource, Name: "doc://y"},
		{Action: gate.Complete, Name: "lib__my_prompt", Args: gate.MustDoc(`{"argument":{"name":"a","value":""},"context":{"arguments":{"b":"z"}}}`)},
	} {
		c.Who = gate.Local()
		if res, err := g.Do(t.Context(), c); err != nil || res.IsError {
			t.Errorf("%s: %v %s", c.Action, err, res.Doc)
		}
	}
	if want := (seen{"my prompt x", "doc://y", "ref/prompt my prompt a z"}); last != want {
		t.Errorf("the server saw %+v, want %+v", last, want)
	}
}

// TestFeatureConflicts: two servers never have one name or one URI, and who lost is
// said.
func TestFeatureConflicts(t *testing.T) {
	one := newLister(map[string]string{
		"prompts/list":             `{"prompts":[{"name":"greet"},{"name":"my greet"},{"name":"my_greet"},{"name":"my greet"}]}`, // what is listed again as it was is one
		"resources/list":           `{"resources":[{"uri":"doc://a"},{"uri":"doc://a"},{"uri":"doc://\u200bb"},{"uri":"relative"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"doc://{x}"},{"uriTemplate":"doc://{x*}"},{"uriTemplate":"doc://literal"}]}`,
	})
	two := newLister(map[string]string{
		"prompts/list":             `{"prompts":[{"name":"greet"}]}`,
		"resources/list":           `{"resources":[{"uri":"doc://a"},{"uri":"doc://c"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"doc://{x}"},{"uriTemplate":"doc://long-{x}"},{"uriTemplate":"{+all}://x"}]}`,
	})
	bare := two.Config("two")
	bare.Tools.Bare = true
	f := fleetOf(t, one.Config("one"), bare)
	var got []string
	for _, feature := range []gate.Feature{gate.FeaturePrompt, gate.FeatureResource, gate.FeatureTemplate} {
		for _, one := range f.Features(t.Context(), feature) {
			got = append(got, one.Name.Server+" "+one.Offered)
		}
	}
	want := []string{"one one__greet", "one one__my_greet", "two greet", "one doc://a", "two wasmgate://two/ZG9jOi8vYQ", "two doc://c", "one doc://{x}", "one doc://{x*}", "one doc://literal", "two wasmgate://two/template/doc://{x}", "two doc://long-{x}"}
	renamed := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "one one__my_greet_") })
	if renamed < 0 {
		t.Errorf("%q has no second name for what is my_greet to clients", got)
	} else {
		got = slices.Delete(got, renamed, renamed+1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for uri, owner := range map[string]string{"doc://a": "one", "wasmgate://two/ZG9jOi8vYQ": "two", "doc://c": "two", "doc://d": "one", "doc://long-d": "two"} {
		if found, err := f.Lookup(t.Context(), gate.ReadResource, uri); err != nil || found.Name.Server != owner {
			t.Errorf("%s belongs to %v, want %s (%v)", uri, found, owner, err)
		}
	}
	wantConflicts := []status.Conflict{
		{Feature: gate.FeatureResource, Name: "doc://a", Server: "two", ShadowedBy: "one", Offered: "wasmgate://two/ZG9jOi8vYQ", Resolution: "offered as wasmgate://two/ZG9jOi8vYQ"},
		{Feature: gate.FeatureTemplate, Name: "doc://{x}", Server: "two", ShadowedBy: "one", Offered: "wasmgate://two/template/doc://{x}", Resolution: "offered as wasmgate://two/template/doc://{x}"},
	}
	if diff := cmp.Diff(wantConflicts, f.Conflicts()); diff != "" {
		t.Error(diff)
	}
	said := map[string]int{}
	for _, s := range f.Status() {
		for _, n := range s.Notes {
			if n.Quarantined {
				said[s.Server+" "+string(n.Feature)+" "+n.Tool]++
			}
		}
	}
	wantSaid := map[string]int{
		`one resource "doc://\u200bb"`: 1, "one resource relative": 1,
		"two template {+all}://x": 1,
	}
	if diff := cmp.Diff(wantSaid, said); diff != "" {
		t.Error(diff)
	}
}

// TestTemplates: which URIs a template stands for.
func TestTemplates(t *testing.T) {
	tests := map[string]struct{ yes, no []string }{
		"doc://a/{x}/end":     {[]string{"doc://a/b/end", "doc://a/%C3%A9/end"}, []string{"doc://a//end", "doc://a/b/c/end", "doc://a/b/end2", "doc://b/b/end", "doc://a/../end", "doc://a/%2e%2E/end", "doc://a/%252e%252e/end", "doc://a/.%2e/end", "doc://a/%62/end", "doc://a/%2562/end", "doc://a/b%2Dc/end"}},
		"doc://a/{+x}":        {[]string{"doc://a/b", "doc://a/b/c?d#e"}, []string{"doc://a/", "doc://b", "doc://a/b/../c", `doc://a/b\..\c`, "doc://a/b%5c..%5cc", "doc://a/b/%63", "doc://a/%7E"}},
		"doc://a{?q,r}":       {[]string{"doc://a", "doc://a?q=1", "doc://a?q=1&r=2"}, []string{"doc://a/b", "doc://a#f"}},
		"doc://a{/x,y}":       {[]string{"doc://a", "doc://a/b", "doc://a/b/c"}, []string{"doc://a/b/c/d", "doc://a?b"}},
		"doc://a{#f}":         {[]string{"doc://a", "doc://a#b"}, []string{"doc://ab"}},
		"doc://a{.x}":         {[]string{"doc://a.txt"}, []string{"doc://a/txt"}},
		"doc://a{;x}?z{&y}":   {[]string{"doc://a;x=1?z&y=2", "doc://a?z"}, []string{"doc://a;x=1"}},
		"doc://a/{x,y}":       {[]string{"doc://a/1,2"}, []string{"doc://a/1/2"}},
		"doc://a/{x*}":        {[]string{"doc://a/b", "doc://a/b/c"}, []string{"doc://a/", "doc://a/b/../c", "doc://b/c"}},
		"doc://café/{x}":      {[]string{"doc://café/b", "doc://caf%C3%A9/b", "doc://caf%c3%a9/b", "doc://café/ü", "doc://caf%C3%A9/%C3%BC"}, []string{"doc://cafe/b", "doc://caf%25C3%25A9/b", "doc://caf%C3/b", "doc://café/%62", "doc://caf%C3%A9/../b"}},
		"doc://caf%C3%A9/{x}": {[]string{"doc://café/b", "doc://caf%c3%a9/b"}, []string{"doc://cafe/b"}},
		"doc://a b/{x}":       {[]string{"doc://a b/c", "doc://a%20b/c"}, []string{"doc://a/b/c"}},
	}
	for text, tt := range tests {
		s := newLister(map[string]string{"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":` + fmt.Sprintf("%q", text) + `}]}`})
		f := fleetOf(t, s.Config("lib"))
		for _, uri := range tt.yes {
			if _, err := f.Lookup(t.Context(), gate.ReadResource, uri); err != nil {
				t.Errorf("%s: %s is not found: %v", text, uri, err)
			}
		}
		for _, uri := range tt.no {
			if _, err := f.Lookup(t.Context(), gate.ReadResource, uri); err == nil {
				t.Errorf("%s: %s is found", text, uri)
			}
		}
	}
}

// TestFeatureListings: listings of many pages are read whole, one that fails costs
// no tools, and a server that completes nothing answers so.
func TestFeatureListings(t *testing.T) {
	s := newLister(map[string]string{
		"initialize":     strings.Replace(everyCapability, `,"completions":{}`, "", 1),
		"prompts/list":   `{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}`,
		"resources/list": "?out of order",
	})
	f := fleetOf(t, s.Config("lib"))
	is := f.Status()[0]
	if is.Phase != status.Ready || is.Tools != 1 || is.Prompts != 1 || is.Resources != 0 || len(is.Notes) != 1 || !strings.Contains(is.Notes[0].Text, "out of order") {
		t.Errorf("status %+v", is)
	}
	g, _ := rig.NewGate(t, f)
	res, err := g.Do(t.Context(), gate.Call{Action: gate.Complete, Name: "lib__p", Args: gate.MustDoc(`{"argument":{"name":"a","value":""}}`), Who: gate.Local()})
	if err != nil || res.Doc.String() != `{"completion":{"values":[]}}` || s.Count("completion/complete") != 0 {
		t.Errorf("completion: %s, %v", res.Doc, err)
	}

	paged := mcp.NewServer(&mcp.Implementation{Name: "paged", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	for i := range 5 {
		paged.AddPrompt(&mcp.Prompt{Name: fmt.Sprint("p", i)}, nil)
		paged.AddResource(&mcp.Resource{Name: "r", URI: fmt.Sprint("doc://", i)}, nil)
		paged.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: fmt.Sprintf("doc://%d/{x}", i)}, nil)
	}
	f = fleetOf(t, options.Endpoint{Server: "paged", Tools: rig.Options(), Dial: func() (mcp.Transport, error) {
		a, b := mcp.NewInMemoryTransports()
		_, err := paged.Connect(context.Background(), a, nil)
		return b, err
	}})
	if s := f.Status()[0]; s.Prompts != 5 || s.Resources != 5 || s.Templates != 5 {
		t.Errorf("status %+v", s)
	}
}

// TestFeatureChanges: what a server adds later is offered, and clients of every revision are
// notified.
func TestFeatureChanges(t *testing.T) {
	lib := mcp.NewServer(&mcp.Implementation{Name: "lib", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Prompts: &mcp.PromptCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true}},
	})
	x := frontOf(t, fleetOf(t, options.Endpoint{Server: "lib", Tools: rig.Options(), Dial: func() (mcp.Transport, error) {
		a, b := mcp.NewInMemoryTransports()
		_, err := lib.Connect(context.Background(), a, nil)
		return b, err
	}}))
	told := make(chan string, 100)
	for _, revision := range []string{rig.Old, rig.Newest} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { told <- revision + " prompts" },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { told <- revision + " resources" },
		}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: x.URL}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	missing := map[string]bool{rig.Old + " prompts": true, rig.Old + " resources": true, rig.Newest + " prompts": true, rig.Newest + " resources": true}
	deadline := time.After(time.Minute)
	for i := 0; len(missing) > 0; i++ { // a client may still be opening its stream
		lib.AddPrompt(&mcp.Prompt{Name: fmt.Sprint("later", i)}, nil)
		lib.AddResource(&mcp.Resource{Name: "later", URI: fmt.Sprint("doc://later/", i)}, nil)
		next := time.After(2 * time.Second)
		for waiting := true; waiting && len(missing) > 0; {
			select {
			case what := <-told:
				delete(missing, what)
			case <-next:
				waiting = false
			case <-deadline:
				t.Fatalf("not told: %v", missing)
			}
		}
	}
	if got := x.Fleet.Features(t.Context(), gate.FeaturePrompt); len(got) == 0 || got[0].Offered != "lib__later0" {
		t.Errorf("offered %v", got)
	}
}

// TestMalformedFeatures: parameters of another shape are refused before anything
// else reads them, and recorded.
func TestMalformedFeatures(t *testing.T) {
	s := newLister(nil)
	tests := map[string]struct{ method, params, record string }{
		"a prompt without a name":           {"prompts/get", `"arguments":{}`, " refused_parse"},
		"a prompt with a number":            {"prompts/get", `"name":7`, " refused_parse"},
		"arguments that are none":           {"prompts/get", `"name":"p","arguments":[]`, "p refused_parse"},
		"a resource without a URI":          {"resources/read", `"name":"x"`, " refused_parse"},
		"a completion of nothing":           {"completion/complete", `"argument":{"name":"a","value":"b"}`, " refused_parse"},
		"a completion of another kind":      {"completion/complete", `"ref":{"type":"ref/tool","name":"x"},"argument":{}`, " refused_parse"},
		"a prompt that is called by a URI":  {"completion/complete", `"ref":{"type":"ref/prompt","name":"doc://x"},"argument":{}`, "doc://x refused_parse"},
		"an argument that is not an object": {"completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":7`, "p refused_parse"},
		"duplicate members, as a tool call": {"resources/read", `"uri":"doc://a","uri":"doc://b"`, "doc://b refused_parse"},
	}
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := frontOf(t, fleetOf(t, s.Config("lib")))
			send := w.Dial(t, x)
			for name, tt := range tests {
				before := len(x.Records.Done())
				answer := gate.MustDoc(send(rig.Request(w.Era, "5", tt.method, tt.params)))
				if answer.Get("id").String() != "5" || answer.At("/error/code").String() != "-32602" {
					t.Errorf("%s: %s", name, answer)
				}
				if got := strings.Join(x.Records.Done()[before:], ","); got != tt.record {
					t.Errorf("%s: recorded %q, want %q", name, got, tt.record)
				}
			}
		})
	}
	if n := s.Count("prompts/get") + s.Count("resources/read") + s.Count("completion/complete"); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// TestSpellings: a resource is known by its URI with letters as they are and as escapes, and
// policies and the server see the spelling that was listed.
func TestSpellings(t *testing.T) {
	rng := seed.Rand(t)
	letters := []rune("aé日𝒳 ñ/-")
	for range 200 {
		listed := []rune("note://x/é")
		for range rng.IntN(8) {
			listed = append(listed, letters[rng.IntN(len(letters))])
		}
		uri := string(listed)
		escaped := listing.Spellings(uri)[0]
		s := newLister(map[string]string{
			"resources/list":           `{"resources":[{"name":"n","uri":` + fmt.Sprintf("%q", uri) + `}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"name":"n","uriTemplate":` + fmt.Sprintf("%q", uri+"/t/{v}") + `}]}`,
		})
		f := fleetOf(t, s.Config("s"))
		for asked, want := range map[string]string{uri: uri, escaped: uri, uri + "/t/1": uri + "/t/1", escaped + "/t/1": uri + "/t/1"} {
			found, err := f.Lookup(t.Context(), gate.ReadResource, asked)
			if err != nil {
				t.Errorf("%q of a server that lists %q: %v", asked, uri, err)
				continue
			}
			c := gate.Call{Action: gate.ReadResource, Name: asked}
			if got := c.URI(found); got != want {
				t.Errorf("%q reaches the server as %q, want %q", asked, got, want)
			}
		}
	}
}
