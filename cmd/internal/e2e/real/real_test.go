//go:build unix

package real

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

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

const everythingServer = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// everything starts server-everything over HTTP, and returns its port.
func everything(t *testing.T, pl *e2e.Place, dir, transport string) int {
	t.Helper()
	port := freeport.Port(t)
	c := pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, everythingServer), transport)
	c.Env = append(c.Env, "PORT="+strconv.Itoa(port))
	e2e.Start(t, c)
	timelimit.Wait(t, "server-everything listens", func() bool { return e2e.Listens(t, fmt.Sprintf("localhost:%d", port)) })
	return port
}

// stdioServers is the configuration of two real stdio servers, whose processes
// carry the mark.
func stdioServers(pl *e2e.Place, dir, mark string) string {
	return fmt.Sprintf("  everything: {command: node, args: [%q, stdio, %s]}\n  files: {command: node, args: [%q, %q, %q]}\n",
		filepath.Join(dir, everythingServer), mark,
		filepath.Join(dir, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), pl.File("docs"), pl.File(mark))
}

// newReal returns a place with the real servers, and a document to read.
func newReal(t *testing.T, p *e2e.Program, dir string) (pl *e2e.Place, mark string) {
	pl = p.Place(t, "")
	mark = "mark-" + filepath.Base(pl.Dir)
	pl.Write("docs/a.txt", "the text of a file")
	pl.Write(mark+"/b.txt", "")
	return pl, mark
}

// wanted are calls that every client makes, and a part of what it must get.
func wanted(pl *e2e.Place) []e2e.WantedCall {
	return []e2e.WantedCall{
		{Tool: "everything__echo", Argument: "message", Value: "hello", Want: "Echo: hello"},
		{Tool: "everything-http__echo", Argument: "message", Value: "hello", Want: "Echo: hello"},
		{Tool: "everything-sse__echo", Argument: "message", Value: "hello", Want: "Echo: hello"},
		{Tool: "files__read_text_file", Argument: "path", Value: pl.File("docs/a.txt"), Want: "the text of a file"},
	}
}

func testRealServers(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl, mark := newReal(t, p, dir)
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nservers:\n%s"+
		"  everything-http: {url: 'http://localhost:%d/mcp'}\n  everything-sse: {url: 'http://localhost:%d/sse', transport: sse}\n"+
		"  broken: {command: ./no-such-server}\n",
		stdioServers(pl, dir, mark), everything(t, pl, dir, "streamableHttp"), everything(t, pl, dir, "sse")))

	checkStatus(t, pl, false)
	gw := pl.Serve()
	timelimit.Wait(t, "all servers but the broken one are ready", func() bool {
		_, phases, _ := phases(pl)
		return strings.Count(strings.Join(phases, ","), " ready") == 5 // with local
	})
	checkStatus(t, pl, true)
	if o := pl.Run("call", "everything__echo", `{"message":"hello"}`); o.Code != 3 {
		t.Errorf("a tool that no one granted: exit %d, %s", o.Code, o.Stderr)
	}
	for _, pattern := range []string{"everything*", "files__read_*"} {
		pl.Must("grant", "--yes", pattern)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio")...)
	clients := map[string]e2e.Client{
		"wasmgate call":                    e2e.CommandLine{Place: pl},
		"the inspector over HTTP":          inspector{pl, filepath.Join(bin, "mcp-inspector"), gw.URL},
		"mcporter over HTTP":               mcporter{pl, filepath.Join(bin, "mcporter"), []string{"--http-url", gw.URL, "--allow-http"}},
		"mcporter over stdio":              mcporter{pl, filepath.Join(bin, "mcporter"), []string{"--stdio", strings.Join(stdio, " ")}},
		"the TypeScript client over HTTP":  typeScript{pl, filepath.Join(dir, "tsclient.mjs"), []string{gw.URL}},
		"the TypeScript client over stdio": typeScript{pl, filepath.Join(dir, "tsclient.mjs"), stdio},
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		clients["the Go client over HTTP, "+revision] = e2e.GoSDK{Revision: revision, Transport: &mcp.StreamableClientTransport{Endpoint: gw.URL}}
		clients["the Go client over stdio, "+revision] = e2e.GoSDK{Revision: revision, Transport: &mcp.CommandTransport{
			Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...),
		}}
	}
	for name, c := range clients {
		t.Run(name, func(t *testing.T) { c.Check(t, wanted(pl)) })
	}
	t.Run("the log has all of it", func(t *testing.T) {
		pl.Verify()
		for _, c := range wanted(pl) {
			ok := slices.DeleteFunc(pl.Log(), func(e e2e.Logged) bool { return e.Event != "done" || e.Tool != c.Tool || e.Code != "ok" })
			if len(ok) != len(clients) {
				t.Errorf("%d records of calls of %s, want %d", len(ok), c.Tool, len(clients))
			}
		}
	})
	gw.Signal(os.Interrupt)
	if code := gw.Wait(); code != 0 {
		t.Errorf("exit %d after an interrupt", code)
	}
	e2e.WaitGone(t, mark)
}

// checkStatus looks at what status says, with a gateway running or not.
func checkStatus(t *testing.T, pl *e2e.Place, running bool) {
	t.Helper()
	code, got, is := phases(pl)
	if code != 3 {
		t.Errorf("status --check: exit %d, want 3 for a faulted server", code)
	}
	want := []string{"local ready", "everything ready", "files ready", "everything-http ready", "everything-sse ready", "broken faulted spawn_failed"}
	if !slices.Equal(got, want) || is != running {
		t.Errorf("status = %q, running %v; want %q, %v", got, is, want, running)
	}
}

// phases are what status --check says of the servers, and whether a gateway runs.
func phases(pl *e2e.Place) (code int, servers []string, running bool) {
	pl.T.Helper()
	o := pl.Run("status", "--check", "--json")
	var s struct {
		Running bool
		Servers []struct{ Server, Phase, Fault string }
	}
	if err := json.Unmarshal([]byte(o.Stdout), &s); err != nil {
		pl.T.Fatalf("status: %v\n%s", err, o.Stdout)
	}
	for _, one := range s.Servers {
		servers = append(servers, strings.TrimSpace(one.Server+" "+one.Phase+" "+one.Fault))
	}
	return o.Code, servers, s.Running
}

type inspector struct {
	*e2e.Place
	path, url string
}

func (c inspector) Check(t *testing.T, calls []e2e.WantedCall) {
	inspect := func(args ...string) string {
		o := c.Finish(c.path, append([]string{"--cli", c.url, "--transport", "http", "--method"}, args...)...)
		if o.Code != 0 {
			t.Fatalf("inspector %q: exit %d\n%s%s", args, o.Code, o.Stdout, o.Stderr)
		}
		return o.Stdout
	}
	list := inspect("tools/list")
	for _, call := range calls {
		e2e.Holds(t, list, call.Tool)
		e2e.Holds(t, inspect("tools/call", "--tool-name", call.Tool, "--tool-arg", call.Argument+"="+call.Value), call.Want)
	}
}

type mcporter struct {
	*e2e.Place
	path   string
	server []string
}

func (c mcporter) Check(t *testing.T, calls []e2e.WantedCall) {
	port := func(command string, args ...string) string {
		o := c.Finish(c.path, append(append([]string{command}, c.server...), args...)...)
		if o.Code != 0 {
			t.Fatalf("mcporter %s %q: exit %d\n%s%s", command, args, o.Code, o.Stdout, o.Stderr)
		}
		return o.Stdout
	}
	list := port("list", "--name", "gw")
	for _, call := range calls {
		e2e.Holds(t, list, call.Tool)
		e2e.Holds(t, port("call", call.Tool, call.Argument+"="+call.Value), call.Want)
	}
}

type typeScript struct {
	*e2e.Place
	script string
	server []string
}

func (c typeScript) Check(t *testing.T, calls []e2e.WantedCall) {
	type toolCall struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	var all []toolCall
	for _, call := range calls {
		all = append(all, toolCall{call.Tool, call.Args()})
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Finish("node", append([]string{c.script, string(b)}, c.server...)...)
	if o.Code != 0 {
		t.Fatalf("exit %d\n%s%s", o.Code, o.Stdout, o.Stderr)
	}
	var answer struct {
		Tools   []string
		Results []json.RawMessage
	}
	if err := json.Unmarshal([]byte(o.Stdout), &answer); err != nil || len(answer.Results) != len(calls) {
		t.Fatalf("%v\n%s", err, o.Stdout)
	}
	for i, call := range calls {
		e2e.Holds(t, strings.Join(answer.Tools, " "), call.Tool)
		e2e.Holds(t, string(answer.Results[i]), call.Want)
	}
}

// testOneFleet starts the gateway three times at once, as three clients on one
// machine do.
func testOneFleet(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl, mark := newReal(t, p, dir)
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n"+stdioServers(pl, dir, mark))
	pl.Must("grant", "--yes", "everything__*")
	clients := make([]*stdioClient, 3)
	for i := range clients {
		clients[i] = newStdioClient(pl)
	}
	for _, c := range clients {
		c.connect(t)
		goSDKCalls(t, c.session)
	}
	if own := e2e.Processes(t, mark); len(own) != 1+len(clients) { // a server that no one has called, and one with a process for each client
		t.Errorf("%d processes of two servers: %v", len(own), own)
	}
	for _, c := range clients {
		if holdsFile(c.process.PID(), pl.File("state/lock")) {
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
		if code := c.process.Wait(); code != 0 {
			t.Errorf("exit %d: %s", code, c.process.Stderr)
		}
	}
	e2e.WaitGone(t, mark)
	pl.Verify()
}

func checkOneLog(t *testing.T, pl *e2e.Place, clients int) {
	t.Helper()
	pl.Verify()
	writers, sessions := map[string]bool{}, map[string]bool{}
	for _, e := range pl.Log() {
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
	e2e.Holds(t, e2e.FirstText(res), "Echo: hello")
}

// A stdioClient is a client with a wasmgate of its own.
type stdioClient struct {
	process *e2e.Process
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	session *mcp.ClientSession
}

func newStdioClient(pl *e2e.Place) *stdioClient {
	pl.T.Helper()
	cmd := pl.Command(context.WithoutCancel(pl.T.Context()), pl.Program.Path, pl.Args("serve", "--stdio")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		pl.T.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	c := &stdioClient{process: e2e.Start(pl.T, cmd), stdin: stdin, stdout: r}
	go func() { <-c.process.Ended; w.Close() }()
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
		t.Fatalf("%v\n%s", err, c.process.Stderr)
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

// testDenied shows that a server does not see a call that no one granted.
func testDenied(t *testing.T, p *e2e.Program) {
	up := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}},{"name":"wipe","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "servers:\n  counted: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "counted__echo")
	gw := pl.Serve()
	o := pl.Run("call", "counted__wipe", "{}")
	if o.Code != 3 || o.Stdout != "" {
		t.Errorf("exit %d, stdout %q; want 3 and nothing", o.Code, o.Stdout)
	}
	e2e.Holds(t, o.Stderr, "wasmgate grant counted__wipe --config ")
	e2e.Holds(t, o.Stderr, pl.File("wasmgate.yaml")) // in quotes if it has spaces
	e2e.Holds(t, o.Stderr, "refused_authorize")
	var refusal struct {
		Code, Reason string
		RecordID     string `json:"record_id"`
	}
	o = pl.Run("call", "--json", "counted__wipe", "{}")
	if err := json.Unmarshal([]byte(o.Stderr), &refusal); err != nil || refusal.Code != "refused_authorize" || o.Code != 3 {
		t.Errorf("call --json: exit %d, %v: %s", o.Code, err, o.Stderr)
	}
	denied := pl.Must("audit", "--denied")
	e2e.Holds(t, denied, "counted__wipe")
	e2e.Holds(t, denied, refusal.RecordID)

	w := e2e.MustWire(t, gw.URL)
	hidden, unknown := w.MustCall(t, "counted__wipe", "{}"), w.MustCall(t, "counted__none", "{}")
	if hidden.Error == nil || unknown.Error == nil || hidden.Error.Code != -32602 || unknown.Error.Code != -32602 ||
		strings.ReplaceAll(hidden.Error.Message, "wipe", "none") != unknown.Error.Message {
		t.Errorf("a hidden tool answers %+v, an unknown one %+v; want the same -32602", hidden.Error, unknown.Error)
	}
	if n := len(up.Calls("wipe")); n != 0 {
		t.Errorf("the server saw %d calls that were refused", n)
	}
	w.MustCall(t, "counted__echo", "{}")
	if n := len(up.Calls("echo")); n != 1 {
		t.Errorf("the server saw %d calls that were granted, want 1", n)
	}
	if o := pl.Run("audit", "--denied", "--json"); strings.Contains(o.Stdout, `"tool":"counted__echo"`) {
		t.Errorf("audit --denied shows what was granted: %s", o.Stdout)
	}
	if status, _ := e2e.Get(t, strings.TrimSuffix(gw.URL, "/mcp")+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz = %d", status)
	}
}
