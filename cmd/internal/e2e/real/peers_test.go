//go:build unix

package real

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testPeers has server-everything, on stdio and over HTTP, ask its clients for forms,
// texts and folders, log, and tell of resources: two clients at once, which see nothing
// of each other, and whose connections end with them.
func testPeers(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl, mark := newReal(t, p, dir)
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s, data: {grants: grants.yaml}}\nservers:\n"+
		"  everything: {command: node, args: [%q, stdio, %s]}\n  remote: {url: 'http://localhost:%d/mcp'}\n"+
		"  files: {command: node, args: [%q, %q]}\n",
		filepath.Join(dir, everythingServer), mark, everything(t, pl, dir, "streamableHttp"),
		filepath.Join(dir, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), pl.File("docs")))
	// The form speaks of a pin, to say that it wants none.
	pl.Write("grants.yaml", "- {to: [\"*\"], servers: [everything, remote, files], resources: [\"demo://*\"], asks: [roots, sampling, secrets]}\n")
	gw := pl.Serve()
	for _, want := range []string{"everything__trigger-elicitation-request", "remote__trigger-sampling-request", "remote__get-roots-list"} {
		e2e.Holds(t, pl.Must("tools"), want) // also for callers that can be asked nothing
	}
	e2e.Holds(t, pl.Must("call", "files__list_allowed_directories", "{}"), pl.File("docs"))
	began := len(e2e.Processes(t, mark))

	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio")...)
	clients := []*peer{
		newPeer(pl, "ann", &mcp.StreamableClientTransport{Endpoint: gw.URL}),
		newPeer(pl, "bob", &mcp.CommandTransport{Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...)}),
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.check(t) })
	}
	wg.Wait()
	if n := len(e2e.Processes(t, mark)); n != began+len(clients) {
		t.Errorf("%d processes of the server on stdio, want %d", n, began+len(clients))
	}
	for _, c := range clients {
		c.session.Close()
	}
	askTypeScript(pl, t, dir, gw.URL)
	timelimit.Wait(t, "the clients' own servers end with them", func() bool { return len(e2e.Processes(t, mark)) == began })
	pl.Verify()
	for _, action := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "resources/subscribe"} {
		if !slices.ContainsFunc(pl.Log(), func(e e2e.Logged) bool { return e.Event == "done" && e.Action == action && e.Code == "ok" }) {
			t.Errorf("no record of %s", action)
		}
	}
}

// A peer is a client that servers can ask.
type peer struct {
	name    string
	session *mcp.ClientSession
	folder  string // its one root

	mu    sync.Mutex
	heard []string
}

func newPeer(pl *e2e.Place, name string, transport mcp.Transport) *peer {
	pl.T.Helper()
	pl.Write(name+"/note.txt", "of "+name)
	c := &peer{name: name, folder: pl.File(name)}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name, "check": true, "integer": 42, "firstLine": name}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "written by " + name}}, nil
		},
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { c.note(fmt.Sprint(r.Params.Data)) },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.note(r.Params.URI) },
	})
	client.AddRoots(&mcp.Root{URI: "file://" + c.folder, Name: name})
	var err error
	c.session, err = client.Connect(pl.T.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		pl.T.Fatal(err)
	}
	pl.T.Cleanup(func() { c.session.Close() })
	return c
}

func (c *peer) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, what)
}

func (c *peer) hears(t *testing.T, want string) {
	t.Helper()
	timelimit.Wait(t, c.name+" hears "+want, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.heard, func(h string) bool { return strings.Contains(h, want) })
	})
}

// use calls a tool and returns all texts of its result.
func (c *peer) use(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	res, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Errorf("%s: %s: %v", c.name, tool, err)
		return ""
	}
	var text strings.Builder
	for _, block := range res.Content {
		if one, ok := block.(*mcp.TextContent); ok {
			text.WriteString(one.Text + "\n")
		}
	}
	return text.String()
}

func (c *peer) check(t *testing.T) {
	none := map[string]any{}
	if err := c.session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	for _, server := range []string{"everything", "remote"} {
		e2e.Holds(t, c.use(t, server+"__trigger-elicitation-request", none), "Name: "+c.name)
		e2e.Holds(t, c.use(t, server+"__trigger-sampling-request", map[string]any{"prompt": "p", "maxTokens": 9}), "written by "+c.name)
		e2e.Holds(t, c.use(t, server+"__get-roots-list", none), c.folder)
	}
	c.hears(t, "1 root(s) received from client")
	list, err := c.session.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) == 0 {
		t.Errorf("%s: no resources: %v", c.name, err)
		return
	}
	uri := list.Resources[0].URI
	if err := c.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	c.use(t, "everything__toggle-subscriber-updates", none)
	c.hears(t, uri)

	// A server of files lets each client into its own folder alone.
	timelimit.Wait(t, "the server has taken in the folder of "+c.name, func() bool {
		return strings.Contains(c.use(t, "files__read_text_file", map[string]any{"path": filepath.Join(c.folder, "note.txt")}), "of "+c.name)
	})
	other := filepath.Join(filepath.Dir(c.folder), map[string]string{"ann": "bob", "bob": "ann"}[c.name], "note.txt")
	e2e.Holds(t, c.use(t, "files__read_text_file", map[string]any{"path": other}), "Access denied")
}

// askTypeScript has servers ask a client that is made with the TypeScript SDK, which
// they also tell how far they are.
func askTypeScript(pl *e2e.Place, t *testing.T, dir, url string) {
	t.Helper()
	calls := `[{"name":"remote__trigger-elicitation-request","arguments":{}},{"name":"everything__trigger-sampling-request","arguments":{"prompt":"p","maxTokens":9}},
		{"name":"remote__get-roots-list","arguments":{}},{"name":"everything__trigger-long-running-operation","arguments":{"duration":0.5,"steps":5}}]`
	o := pl.Finish("node", filepath.Join(dir, "tspeer.mjs"), calls, url)
	for _, want := range []string{"Name: tess", "written by tess", "/srv/tess", `"elicitation":1,"sampling":1,"roots":`, `"progress":5`} {
		e2e.Holds(t, o.Stdout, want)
	}
	if o.Code != 0 {
		t.Errorf("exit %d: %s", o.Code, o.Stderr)
	}
}
