package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/sandbox"
)

// listening connects a client that listens for changes, and returns a channel that counts them.
func listening(t *testing.T, url string) (*mcp.ClientSession, <-chan bool) {
	t.Helper()
	told := make(chan bool, 100)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- true },
	}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, told
}

// wait waits to be told of a change, if there is to be one.
func wait(t *testing.T, what string, told <-chan bool) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(patience):
		t.Errorf("%s: the client was not told", what)
	}
}

// TestSetGroups: connected clients are notified of other groups, and no server is connected anew
// for them.
func TestSetGroups(t *testing.T) {
	var connected atomic.Int32
	g, srv := grouped(t, func(c *gateway.Config) { c.Servers = []options.Endpoint{counted("far", &connected)} })
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, told := listening(t, srv.URL+"/mcp/docs")
	if got := sees(t, c); !slices.Equal(got, []string{"files__read"}) {
		t.Fatalf("before: %q", got)
	}
	if err := g.SetGroups(options.Groups{"docs": {"files__write", "far__*"}, "new": {"chat__*"}}); err != nil {
		t.Fatal(err)
	}
	wait(t, "groups", told)
	if got := sees(t, c); !slices.Equal(got, []string{"far__count", "files__write"}) {
		t.Errorf("after: %q", got)
	}
	if got := sees(t, connect(t, srv.URL+"/mcp/new", "2025-11-25")); !slices.Equal(got, []string{"chat__say"}) {
		t.Errorf("a new group: %q", got)
	}
	if g.Operator().HasGroup("talk") || !slices.Equal(g.Operator().Groups(), []string{"docs", "new"}) {
		t.Errorf("groups %q", g.Operator().Groups())
	}
	if n := connected.Load(); n != 1 {
		t.Errorf("connected to the server %d times", n)
	}
}

// Groups that only a server's tools are in are groups like those of the configuration.
func TestGroupsOfServers(t *testing.T) {
	var n atomic.Int32
	far := counted("far", &n)
	far.Tools.Groups = options.Groups{"office": {"far__*"}}
	g := start(t, gateway.Config{Servers: []options.Endpoint{far}, Groups: options.Groups{"docs": {"x__*"}}, Recorder: new(records), Policy: granting("*")})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := g.Operator().Groups(); !slices.Equal(got, []string{"docs", "office"}) || !g.Operator().HasGroup("office") {
		t.Errorf("groups %q", got)
	}
}

// TestSetCatalog: clients find tools in the other way from then on.
func TestSetCatalog(t *testing.T) {
	g, srv := grouped(t, nil)
	c, told := listening(t, srv.URL+"/mcp")
	all, catalog := []string{"chat__say", "files__read", "files__write"}, []string{"catalog__call", "catalog__describe", "catalog__search"}
	for _, step := range []struct {
		mode gateway.CatalogMode
		want []string
	}{
		{gateway.CatalogBeside, append(slices.Clone(catalog), all...)}, {gateway.CatalogOnly, catalog},
		{gateway.CatalogOff, all}, {gateway.CatalogOnly, catalog}, {gateway.CatalogOff, all},
	} {
		if err := g.SetCatalog(step.mode); err != nil {
			t.Fatal(err)
		}
		wait(t, string(step.mode), told)
		if diff := cmp.Diff(step.want, sees(t, c)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", step.mode, diff)
		}
	}
	if err := g.SetCatalog("loud"); err == nil {
		t.Error("a mode that there is not was set")
	}
}

// TestReconfigureLimits: calls under way go on, and those to come are held against the others.
func TestReconfigureLimits(t *testing.T) {
	begun, let := make(chan bool, 9), make(chan bool)
	waits := tool("waits", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		begun <- true
		select {
		case <-let:
		case <-time.After(patience):
		}
		return text("done"), nil
	})
	many := gateway.Limits{Wait: -1, Session: 9, Tools: []gateway.ToolLimit{{Pattern: "f__waits", Concurrent: 9}}}
	g := start(t, gateway.Config{Recorder: new(records), Limits: many, Policy: granting("f__*"), Functions: map[string][]options.LocalTool{"f": {waits, tool("echo", nil)}}})
	ended := make(chan error)
	go func() { _, err := call(g, "f__waits", "{}"); ended <- err }()
	<-begun
	for name, tt := range map[string]struct {
		limits gateway.Limits
		code   string
	}{
		"fewer in all":       {gateway.Limits{Concurrent: 1}, "refused_busy"},
		"fewer of a session": {gateway.Limits{Session: 1}, "refused_busy"},
		"as before":          {gateway.Limits{}, "ok"},
		"fewer of a tool":    {gateway.Limits{Tools: []gateway.ToolLimit{{Pattern: "f__waits", Concurrent: 1}}}, "ok"},
	} {
		if err := g.Reconfigure(t.Context(), gateway.Config{Limits: tt.limits}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := call(g, "f__echo", `{"text":"x"}`); gate.Code(err) != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	if err := g.Reconfigure(t.Context(), gateway.Config{Limits: gateway.Limits{Tools: []gateway.ToolLimit{{Pattern: "f__w*", Concurrent: 1}}}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := call(g, "f__waits", "{}"); gate.Code(err) != "refused_busy" {
		t.Errorf("the tool that is under way: %v", err)
	}
	close(let)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestReconfigureTellsOfNothing: who is connected hears of another policy, and not of what
// changes no list.
func TestReconfigureTellsOfNothing(t *testing.T) {
	g, srv := grouped(t, func(*gateway.Config) {})
	_, told := listening(t, srv.URL+"/mcp")
	for _, session := range []int{31, 32} {
		if err := g.Reconfigure(t.Context(), gateway.Config{Limits: gateway.Limits{Session: session}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond) // in which a client would have been told
	select {
	case <-told:
		t.Error("the client heard of a change that was none")
	default:
	}
	other := granting("files__*")
	if err := g.Reconfigure(t.Context(), gateway.Config{}, &other); err != nil {
		t.Fatal(err)
	}
	wait(t, "another policy", told)
}

// saying is a module, a command for WASI that says the same whatever it is asked, with a
// manifest of one tool.
func saying(t *testing.T, module, tool, words string) gateway.Module {
	t.Helper()
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	name := func(s string) string { return string([]byte{byte(len(s))}) + s }
	said := strconv.Quote(words)
	data := "\x10\x00\x00\x00" + string([]byte{byte(len(said))}) + "\x00\x00\x00" + strings.Repeat("\x00", 8) + said // where from, how much
	body := "\x00\x41\x01\x41\x00\x41\x01\x41\x08\x10\x00\x1a\x0b"                                                   // fd_write(1, ...)
	wasm := "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00") +
		section(2, "\x01"+name("wasi_snapshot_preview1")+name("fd_write")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+name("memory")+"\x02\x00"+name("_start")+"\x00\x01") +
		section(10, "\x01"+name(body)) + section(11, "\x01\x00\x41\x00\x0b"+name(data))
	manifest, err := sandbox.ParseManifest(fmt.Appendf(nil, `{"tools":[{"name":%q,"inputSchema":{"type":"object"}}]}`, tool))
	if err != nil {
		t.Fatal(err)
	}
	return gateway.Module{WASM: []byte(wasm), Config: sandbox.ModuleConfig{Name: module, Manifest: &manifest}}
}

// TestSetEmbedded offers the tools that the gateway brings along while a client is connected, and
// takes them away again.
func TestSetEmbedded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	g := start(t, gateway.Config{Audit: log, AuditOptions: audit.Options{Node: "n"}, Policy: granting("*"), LeaveOut: true, CacheDir: compiled.Folder(t)})
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	c, told := listening(t, srv.URL+"/mcp")
	hash := func() bool {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__hash", Arguments: map[string]any{"text": "a"}})
		return err == nil && !res.IsError
	}
	if hash() {
		t.Fatal("a gateway without the embedded tools has one")
	}
	for _, on := range []bool{true, false, true} {
		if err := g.SetEmbedded(on); err != nil {
			t.Fatal(err)
		}
		wait(t, fmt.Sprintf("embedded: %v", on), told)
		if hash() != on {
			t.Errorf("embedded: %v, and a call says otherwise", on)
		}
		if err := g.SetEmbedded(on); err != nil { // nothing changes
			t.Fatal(err)
		}
	}
}

// TestSetModules puts modules in, changes them and takes them out, under a client that
// stays connected.
func TestSetModules(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	one, two := saying(t, "one", "a", "first"), saying(t, "two", "b", "second")
	two.Server = "other"
	g := start(t, gateway.Config{Audit: log, AuditOptions: audit.Options{Node: "n"}, Policy: granting("*"), Modules: []gateway.Module{one}, CacheDir: compiled.Folder(t)})
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	c, told := listening(t, srv.URL+"/mcp")
	says := func(tool string) string {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
		if err != nil {
			return "unknown"
		}
		return strings.Trim(res.Content[0].(*mcp.TextContent).Text, `"`)
	}
	if got := says("local__a"); got != "first" {
		t.Fatalf("before: %q", got)
	}
	changed, clash, wrong := saying(t, "one", "a", "changed"), saying(t, "clash", "a", "clash"), two
	wrong.Broken = "it is another one"
	granted := saying(t, "granted", "c", "granted")
	granted.Grant.Secrets = []string{"API"}
	secret, err := dial.NewSecret("API", strings.Repeat("x", 20), "https://a.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		does    string
		modules []gateway.Module
		secrets []dial.Secret
		says    map[string]string
		left    []string
	}{
		{"one more, on a server of its own", []gateway.Module{one, two}, nil, map[string]string{"local__a": "first", "other__b": "second"}, nil},
		{"one changes", []gateway.Module{changed, two}, nil, map[string]string{"local__a": "changed", "other__b": "second"}, nil},
		{"one is not what it was named", []gateway.Module{changed, wrong}, nil, map[string]string{"local__a": "changed", "other__b": "unknown"}, []string{"two"}},
		{"one has another's tool", []gateway.Module{changed, clash, two}, nil, map[string]string{"local__a": "changed", "other__b": "second"}, []string{"clash"}},
		{"one lacks its secret", []gateway.Module{granted, two}, nil, map[string]string{"local__a": "unknown", "local__c": "unknown", "other__b": "second"}, []string{"granted"}},
		{"it gets it", []gateway.Module{granted}, []dial.Secret{secret}, map[string]string{"local__c": "granted", "other__b": "unknown"}, nil},
		{"none is left", nil, nil, map[string]string{"local__c": "unknown"}, nil},
	} {
		err := g.SetModules(t.Context(), step.modules, step.secrets)
		if _, left := errors.AsType[*gateway.ModuleError](err); left != (len(step.left) > 0) {
			t.Errorf("%s: error %v", step.does, err)
		}
		wait(t, step.does, told)
		for tool, want := range step.says {
			if got := says(tool); got != want {
				t.Errorf("%s: %s says %q, want %q", step.does, tool, got, want)
			}
		}
		var left []string
		for _, m := range g.Modules() {
			if m.Error != "" {
				left = append(left, m.Module)
			} else if m.Tools != 1 {
				t.Errorf("%s: %+v", step.does, m)
			}
		}
		if !slices.Equal(left, step.left) {
			t.Errorf("%s: left out %q, want %q", step.does, left, step.left)
		}
	}
	if len(g.Fleet().Status()) != 0 {
		t.Errorf("servers %+v", g.Fleet().Status())
	}
	var recorded []string
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Server {
			recorded = append(recorded, strings.TrimPrefix(e.Reasons[0], "configuration: module ")+" "+e.Code)
		}
	}
	want := []string{
		"two set ok", "one taken out ok", "one set ok", "two left out failed", "two taken out ok", "clash left out failed", "two set ok",
		"granted left out failed", "one taken out ok", "two taken out ok", "granted set ok", "granted taken out ok",
	}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestLeaveOut: with LeaveOut one module that cannot be used does not keep others from being
// served.
func TestLeaveOut(t *testing.T) {
	broken := gateway.Module{WASM: []byte("no"), Config: sandbox.ModuleConfig{Name: "broken"}}
	cfg := gateway.Config{Recorder: new(records), Policy: granting("*"), Modules: []gateway.Module{broken, saying(t, "good", "a", "fine")}, CacheDir: compiled.Folder(t), LeaveOut: true}
	g := start(t, cfg)
	if res, err := call(g, "local__a", "{}"); err != nil || res.Text() != `"fine"` {
		t.Errorf("%v, %v", res, err)
	}
	all := g.Modules()
	if len(all) != 2 || all[0].Module != "broken" || all[0].Error == "" || all[0].Tools != 0 || all[1].Error != "" {
		t.Errorf("modules %+v", all)
	}
	cfg.LeaveOut, cfg.Modules[0].Broken = false, "it is another one"
	if _, err := gateway.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "module broken: it is another one") {
		t.Errorf("error %v", err)
	}
}

// Clients get the name and the version of the program that embeds a gateway.
func TestNameOfTheGateway(t *testing.T) {
	for name, want := range map[string]string{"": "wasmgate " + product.Version(), "my-agent": "my-agent 7"} {
		version := ""
		if name != "" {
			version = "7"
		}
		g := start(t, gateway.Config{Name: name, Version: version, Recorder: new(records)})
		conn := g.Dial(gate.Local())
		s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if is := s.InitializeResult().ServerInfo; is.Name+" "+is.Version != want {
			t.Errorf("the gateway calls itself %s %s, want %s", is.Name, is.Version, want)
		}
	}
}
