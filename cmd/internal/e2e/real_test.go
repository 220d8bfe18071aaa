//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// node returns the folder of the real servers and clients, or skips.
func node(t *testing.T) string {
	t.Helper()
	toolchain.Need(t, "node", toolchain.NodePackages)
	return filepath.Join(toolchain.Root(), ".ci", "node")
}

const everythingServer = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// everything starts server-everything over HTTP, and returns its port.
func everything(t *testing.T, pl *place, dir, transport string) int {
	t.Helper()
	port := freeport.Port(t)
	c := pl.command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, everythingServer), transport)
	c.Env = append(c.Env, "PORT="+strconv.Itoa(port))
	start(t, c)
	timelimit.Wait(t, "server-everything listens", func() bool { return listens(t, fmt.Sprintf("localhost:%d", port)) })
	return port
}

// stdioServers is the configuration of two real stdio servers, whose processes
// carry the mark.
func (pl *place) stdioServers(dir, mark string) string {
	return fmt.Sprintf("  everything: {command: node, args: [%q, stdio, %s]}\n  files: {command: node, args: [%q, %q, %q]}\n",
		filepath.Join(dir, everythingServer), mark,
		filepath.Join(dir, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), pl.file("docs"), pl.file(mark))
}

// newReal returns a place with the real servers, and a document to read.
func newReal(t *testing.T, p *program, dir string) (pl *place, mark string) {
	pl = p.place(t, "")
	mark = "mark-" + filepath.Base(pl.dir)
	pl.write("docs/a.txt", "the text of a file")
	pl.write(mark+"/b.txt", "")
	return pl, mark
}

// wanted are calls that every client makes, and a part of what it must get.
func (pl *place) wanted() []wantedCall {
	return []wantedCall{
		{"everything__echo", "message", "hello", "Echo: hello"},
		{"everything-http__echo", "message", "hello", "Echo: hello"},
		{"everything-sse__echo", "message", "hello", "Echo: hello"},
		{"files__read_text_file", "path", pl.file("docs/a.txt"), "the text of a file"},
	}
}

type wantedCall struct{ tool, argument, value, want string }

func (c wantedCall) args() map[string]string { return map[string]string{c.argument: c.value} }

func testRealServers(t *testing.T, p *program) {
	dir := node(t)
	pl, mark := newReal(t, p, dir)
	pl.write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nservers:\n%s"+
		"  everything-http: {url: 'http://localhost:%d/mcp'}\n  everything-sse: {url: 'http://localhost:%d/sse', transport: sse}\n"+
		"  broken: {command: ./no-such-server}\n",
		pl.stdioServers(dir, mark), everything(t, pl, dir, "streamableHttp"), everything(t, pl, dir, "sse")))

	checkStatus(t, pl, false)
	gw := pl.serve()
	timelimit.Wait(t, "all servers but the broken one are ready", func() bool {
		_, phases, _ := pl.phases()
		return strings.Count(strings.Join(phases, ","), " ready") == 5 // with local
	})
	checkStatus(t, pl, true)
	if o := pl.run("call", "everything__echo", `{"message":"hello"}`); o.code != 3 {
		t.Errorf("a tool that nobody granted: exit %d, %s", o.code, o.stderr)
	}
	for _, pattern := range []string{"everything*", "files__read_*"} {
		pl.must("grant", "--yes", pattern)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	stdio := append([]string{p.path}, pl.args("serve", "--stdio")...)
	clients := map[string]client{
		"wasmgate call":                    commandLine{pl},
		"the inspector over HTTP":          inspector{pl, filepath.Join(bin, "mcp-inspector"), gw.url},
		"mcporter over HTTP":               mcporter{pl, filepath.Join(bin, "mcporter"), []string{"--http-url", gw.url, "--allow-http"}},
		"mcporter over stdio":              mcporter{pl, filepath.Join(bin, "mcporter"), []string{"--stdio", strings.Join(stdio, " ")}},
		"the TypeScript client over HTTP":  typeScript{pl, filepath.Join(dir, "tsclient.mjs"), []string{gw.url}},
		"the TypeScript client over stdio": typeScript{pl, filepath.Join(dir, "tsclient.mjs"), stdio},
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		clients["the Go client over HTTP, "+revision] = goSDK{revision, &mcp.StreamableClientTransport{Endpoint: gw.url}}
		clients["the Go client over stdio, "+revision] = goSDK{revision, &mcp.CommandTransport{
			Command: pl.command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...),
		}}
	}
	for name, c := range clients {
		t.Run(name, func(t *testing.T) { c.check(t, pl.wanted()) })
	}
	t.Run("the log has all of it", func(t *testing.T) {
		pl.verify()
		for _, c := range pl.wanted() {
			ok := slices.DeleteFunc(pl.log(), func(e logged) bool { return e.Event != "done" || e.Tool != c.tool || e.Code != "ok" })
			if len(ok) != len(clients) {
				t.Errorf("%d records of calls of %s, want %d", len(ok), c.tool, len(clients))
			}
		}
	})
	gw.signal(os.Interrupt)
	if code := gw.wait(); code != 0 {
		t.Errorf("exit %d after an interrupt", code)
	}
	none(t, mark)
}

// checkStatus looks at what status says, with a gateway running or not.
func checkStatus(t *testing.T, pl *place, running bool) {
	t.Helper()
	code, got, is := pl.phases()
	if code != 3 {
		t.Errorf("status --check: exit %d, want 3 for a faulted server", code)
	}
	want := []string{"local ready", "everything ready", "files ready", "everything-http ready", "everything-sse ready", "broken faulted spawn_failed"}
	if !slices.Equal(got, want) || is != running {
		t.Errorf("status = %q, running %v; want %q, %v", got, is, want, running)
	}
}

// phases are what status --check says of the servers, and whether a gateway runs.
func (pl *place) phases() (code int, servers []string, running bool) {
	pl.t.Helper()
	o := pl.run("status", "--check", "--json")
	var s struct {
		Running bool
		Servers []struct{ Server, Phase, Fault string }
	}
	if err := json.Unmarshal([]byte(o.stdout), &s); err != nil {
		pl.t.Fatalf("status: %v\n%s", err, o.stdout)
	}
	for _, one := range s.Servers {
		servers = append(servers, strings.TrimSpace(one.Server+" "+one.Phase+" "+one.Fault))
	}
	return o.code, servers, s.Running
}

// A client is a kind of MCP client.
type client interface {
	// check lists the tools and makes the calls.
	check(t *testing.T, calls []wantedCall)
}

type commandLine struct{ *place }

func (c commandLine) check(t *testing.T, calls []wantedCall) {
	list := c.must("tools")
	for _, call := range calls {
		holds(t, list, call.tool)
		args, err := json.Marshal(call.args())
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c.must("call", call.tool, string(args)), call.want)
	}
}

type inspector struct {
	*place
	path, url string
}

func (c inspector) check(t *testing.T, calls []wantedCall) {
	inspect := func(args ...string) string {
		o := c.finish(c.path, append([]string{"--cli", c.url, "--transport", "http", "--method"}, args...)...)
		if o.code != 0 {
			t.Fatalf("inspector %q: exit %d\n%s%s", args, o.code, o.stdout, o.stderr)
		}
		return o.stdout
	}
	list := inspect("tools/list")
	for _, call := range calls {
		holds(t, list, call.tool)
		holds(t, inspect("tools/call", "--tool-name", call.tool, "--tool-arg", call.argument+"="+call.value), call.want)
	}
}

type mcporter struct {
	*place
	path   string
	server []string
}

func (c mcporter) check(t *testing.T, calls []wantedCall) {
	port := func(command string, args ...string) string {
		o := c.finish(c.path, append(append([]string{command}, c.server...), args...)...)
		if o.code != 0 {
			t.Fatalf("mcporter %s %q: exit %d\n%s%s", command, args, o.code, o.stdout, o.stderr)
		}
		return o.stdout
	}
	list := port("list", "--name", "gw")
	for _, call := range calls {
		holds(t, list, call.tool)
		holds(t, port("call", call.tool, call.argument+"="+call.value), call.want)
	}
}

type typeScript struct {
	*place
	script string
	server []string
}

func (c typeScript) check(t *testing.T, calls []wantedCall) {
	type toolCall struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	var all []toolCall
	for _, call := range calls {
		all = append(all, toolCall{call.tool, call.args()})
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	o := c.finish("node", append([]string{c.script, string(b)}, c.server...)...)
	if o.code != 0 {
		t.Fatalf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var answer struct {
		Tools   []string
		Results []json.RawMessage
	}
	if err := json.Unmarshal([]byte(o.stdout), &answer); err != nil || len(answer.Results) != len(calls) {
		t.Fatalf("%v\n%s", err, o.stdout)
	}
	for i, call := range calls {
		holds(t, strings.Join(answer.Tools, " "), call.tool)
		holds(t, string(answer.Results[i]), call.want)
	}
}

type goSDK struct {
	revision  string
	transport mcp.Transport
}

func (c goSDK) check(t *testing.T, calls []wantedCall) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(t.Context(), c.transport, &mcp.ClientSessionOptions{ProtocolVersion: c.revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != c.revision {
		t.Errorf("speaks %s, want %s", got, c.revision)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		if !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == call.tool }) {
			t.Errorf("%s is not listed", call.tool)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args()})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, firstText(res), call.want)
	}
}

func firstText(res *mcp.CallToolResult) string {
	if len(res.Content) > 0 {
		if text, ok := res.Content[0].(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

func holds(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q is not in %.2000s", want, text)
	}
}

// testOneFleet starts the gateway three times at once, as three clients on one
// machine do.
func testOneFleet(t *testing.T, p *program) {
	dir := node(t)
	pl, mark := newReal(t, p, dir)
	pl.write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n"+pl.stdioServers(dir, mark))
	pl.must("grant", "--yes", "everything__*")
	clients := make([]*stdioClient, 3)
	for i := range clients {
		clients[i] = pl.stdioClient()
	}
	for _, c := range clients {
		c.connect(t)
		goSDKCalls(t, c.session)
	}
	if own := processes(t, mark); len(own) != 1+len(clients) { // a server that nobody has called, and one with a process for each client
		t.Errorf("%d processes of two servers: %v", len(own), own)
	}
	for _, c := range clients {
		if holdsFile(c.process.pid(), pl.file("state/lock")) {
			t.Error("the process of a client owns the gateway")
		}
	}
	checkOneLog(t, pl, len(clients))

	clients[0].stdin.Close() // its client goes; the others stay
	for _, c := range clients[1:] {
		goSDKCalls(t, c.session)
	}
	for _, c := range clients {
		c.stdin.Close()
	}
	for _, c := range clients {
		if code := c.process.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, c.process.stderr)
		}
	}
	none(t, mark)
	pl.verify()
}

func checkOneLog(t *testing.T, pl *place, clients int) {
	t.Helper()
	pl.verify()
	writers, sessions := map[string]bool{}, map[string]bool{}
	for _, e := range pl.log() {
		writers[e.Log] = true
		if e.Event == "done" && e.Code == "ok" {
			sessions[e.Session] = true
		}
	}
	if len(writers) != 1 || len(sessions) != clients {
		t.Errorf("%d writers and %d sessions in the log, want 1 and %d", len(writers), len(sessions), clients)
	}
}

func goSDKCalls(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "everything__echo", Arguments: map[string]string{"message": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, firstText(res), "Echo: hello")
}

// A stdioClient is a client with a wasmgate of its own.
type stdioClient struct {
	process *process
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	session *mcp.ClientSession
}

func (pl *place) stdioClient() *stdioClient {
	pl.t.Helper()
	cmd := pl.command(context.WithoutCancel(pl.t.Context()), pl.program.path, pl.args("serve", "--stdio")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		pl.t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	c := &stdioClient{process: start(pl.t, cmd), stdin: stdin, stdout: r}
	go func() { <-c.process.ended; w.Close() }()
	return c
}

func (c *stdioClient) connect(t *testing.T) {
	t.Helper()
	var err error
	// A client that servers can ask something would get servers of its own.
	silent := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	c.session, err = mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, silent).
		Connect(t.Context(), &mcp.IOTransport{Reader: c.stdout, Writer: c.stdin}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.process.stderr)
	}
}

// holdsFile reports whether a process has a file open and locked.
func holdsFile(pid int, path string) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(fds, func(fd string) bool {
		target, err := os.Readlink(fd)
		return err == nil && target == path
	})
}

// testDenied shows that a server does not see a call that nobody granted.
func testDenied(t *testing.T, p *program) {
	up := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}},{"name":"wipe","inputSchema":{"type":"object"}}]`, answer: answerFine}
	pl := p.place(t, "servers:\n  counted: {url: "+up.start(t)+"}\n")
	pl.must("grant", "counted__echo")
	gw := pl.serve()
	o := pl.run("call", "counted__wipe", "{}")
	if o.code != 3 || o.stdout != "" {
		t.Errorf("exit %d, stdout %q; want 3 and nothing", o.code, o.stdout)
	}
	holds(t, o.stderr, "wasmgate grant counted__wipe --config "+pl.file("wasmgate.yaml"))
	holds(t, o.stderr, "refused_authorize")
	var refusal struct {
		Code, Reason string
		RecordID     string `json:"record_id"`
	}
	o = pl.run("call", "--json", "counted__wipe", "{}")
	if err := json.Unmarshal([]byte(o.stderr), &refusal); err != nil || refusal.Code != "refused_authorize" || o.code != 3 {
		t.Errorf("call --json: exit %d, %v: %s", o.code, err, o.stderr)
	}
	denied := pl.must("audit", "--denied")
	holds(t, denied, "counted__wipe")
	holds(t, denied, refusal.RecordID)

	w := mustWire(t, gw.url)
	hidden, unknown := w.mustCall(t, "counted__wipe", "{}"), w.mustCall(t, "counted__none", "{}")
	if hidden.Error == nil || unknown.Error == nil || hidden.Error.Code != -32602 || unknown.Error.Code != -32602 ||
		strings.ReplaceAll(hidden.Error.Message, "wipe", "none") != unknown.Error.Message {
		t.Errorf("a hidden tool answers %+v, an unknown one %+v; want the same -32602", hidden.Error, unknown.Error)
	}
	if n := len(up.calls("wipe")); n != 0 {
		t.Errorf("the server saw %d calls that were refused", n)
	}
	w.mustCall(t, "counted__echo", "{}")
	if n := len(up.calls("echo")); n != 1 {
		t.Errorf("the server saw %d calls that were granted, want 1", n)
	}
	if o := pl.run("audit", "--denied", "--json"); strings.Contains(o.stdout, `"tool":"counted__echo"`) {
		t.Errorf("audit --denied shows what was granted: %s", o.stdout)
	}
	if status, _ := get(t, strings.TrimSuffix(gw.url, "/mcp")+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz = %d", status)
	}
}
