package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

func TestMain(m *testing.M) {
	gateway.ChildMain()
	if len(os.Args) > 1 && os.Args[1] == asServer {
		_ = newTimes().Run(context.Background(), &mcp.StdioTransport{}) // until its input ends
		return
	}
	os.Exit(m.Run())
}

// load returns a configuration in a new folder.
func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	withCompiled(t, dir)
	return reload(t, filepath.Join(dir, "wasmgate.yaml"), yaml)
}

// withCompiled makes the state folder of a configuration in dir, which has the compiled
// embedded tools.
func withCompiled(t *testing.T, dir string) {
	t.Helper()
	compiled.Link(t, filepath.Join(dir, "state"))
}

func reload(t *testing.T, file, yaml string) *config.Config {
	t.Helper()
	write(t, file, yaml)
	cfg, err := config.Load(file, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// patient is a configuration by which a decision may take its time, as it does on a busy machine.
func patient(text string) string {
	switch {
	case strings.Contains(text, "policy: {timeout:"):
		return text
	case strings.Contains(text, "\npolicy: {"):
		return strings.Replace(text, "\npolicy: {", "\npolicy: {timeout: 1m, ", 1)
	}
	return strings.TrimSuffix(text, "\n") + "\npolicy: {timeout: 1m}\n"
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if filepath.Base(file) == "wasmgate.yaml" {
		text = patient(compiled.Configured(text))
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func start(t *testing.T, cfg *config.Config) *app.App {
	t.Helper()
	a, err := app.New(t.Context(), cfg, quiet, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return a
}

// run runs a gateway until the test or end ends it, and returns once clients can
// come.
func run(t *testing.T, a *app.App, f app.Front) (url string, ended <-chan error, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan string, 1), make(chan error, 1)
	f.Ready = func(_ context.Context, _ *app.App, url string) { ready <- url }
	var wg sync.WaitGroup
	wg.Go(func() { done <- a.Run(ctx, f) })
	end = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(end)
	select {
	case url = <-ready:
	case err := <-done:
		t.Fatal("it ended:", err)
	}
	return url, done, end
}

func dial(t *testing.T, cfg *config.Config) *app.Remote {
	t.Helper()
	r, err := app.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

const hello = `{"text":"hello","algorithm":"sha256"}`

func TestOneOwner(t *testing.T) {
	cfg := load(t, "version: 1\n")
	if _, err := app.Dial(t.Context(), cfg); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	a := start(t, cfg)
	if _, err := app.New(t.Context(), cfg, quiet, ""); !errors.Is(err, control.ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
	_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	owner, r, err := app.Find(t.Context(), cfg, quiet, "")
	if owner != nil || r == nil || err != nil {
		t.Fatalf("found %v, %v, error %v", owner, r, err)
	}
	r.Close()
	end()
	if _, err := app.Dial(t.Context(), cfg); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
}

// A gateway that was started for one command answers other commands, too. A process that wants to own
// the configuration for longer waits for its end.
func TestPassingGateway(t *testing.T) {
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	end, err := a.Answer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := dial(t, cfg)
	if s, err := overview.Show.Ask(t.Context(), r, operation.None{}); err != nil || s.Running || len(s.Servers) == 0 {
		t.Errorf("status %+v, error %v", s, err)
	}
	r.Close()
	var waited atomic.Int64
	owns := make(chan error, 1)
	go func() {
		next, _, err := app.Own(t.Context(), cfg, quiet, func(pid int) { waited.Store(int64(pid)) })
		if next != nil {
			err = errors.Join(err, next.Close(context.Background()))
		}
		owns <- err
	}()
	timelimit.Wait(t, "who stays waits", func() bool { return waited.Load() == int64(os.Getpid()) })
	end()
	if err := a.Close(context.Background()); err != nil {
		t.Error(err)
	}
	timelimit.Wait(t, "it owns the configuration", func() bool { return len(owns) == 1 })
	if err := <-owns; err != nil {
		t.Error(err)
	}
}

// A gateway that cannot be built leaves the state folder to the next.
func TestNewThatFails(t *testing.T) {
	cfg := load(t, "version: 1\n")
	write(t, cfg.Policy.Grants, "- {too: [x]}\n")
	var problems tree.Problems
	if _, err := app.New(t.Context(), cfg, quiet, ""); !errors.As(err, &problems) {
		t.Fatalf("error %v", err)
	}
	if err := os.Remove(cfg.Policy.Grants); err != nil {
		t.Fatal(err)
	}
	start(t, cfg)
}

func TestNodeNameIsKept(t *testing.T) {
	cfg := load(t, "version: 1\n")
	name := func() string {
		b, err := os.ReadFile(filepath.Join(cfg.State, "node"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, damage := range []string{"", "\n"} { // an empty file is what a death in mid-write leaves
		write(t, filepath.Join(cfg.State, "node"), damage)
		var names []string
		for range 2 {
			a, err := app.New(t.Context(), cfg, quiet, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			names = append(names, name())
		}
		if len(strings.TrimSpace(names[0])) != 8 || names[0] != names[1] {
			t.Errorf("names %q", names)
		}
	}
}

// Commands get the same answers from a gateway of their own and from one in another process.
func TestRemoteAnswersAsOwn(t *testing.T) {
	cfg := load(t, `
version: 1
principals: {alice: {roles: [dev]}}
servers: {gone: {command: /nonexistent/server}}
`)
	write(t, cfg.Policy.Grants, "- {to: [alice], tools: [\"gone__*\"]}\n")
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	r := dial(t, cfg)
	if err := a.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, as := range []string{"", "local", "alice", "nobody"} {
		own, err := a.Inventory.Tools(t.Context(), as, true)
		other, rerr := inventory.Tools.Ask(t.Context(), r, inventory.Request{As: as, All: true})
		if diff := cmp.Diff(own, other); diff != "" {
			t.Errorf("tools as %q:\n%s", as, diff)
		}
		same(t, "tools as "+as, err, rerr)
	}
	for _, c := range []calls.Request{
		{Tool: "local__hash", Args: hello},
		{Tool: "local__hash", Args: hello, As: "alice"},
		{Tool: "local__hash", Args: hello, As: "nobody"},
		{Tool: "local__hash", Args: `{"text":`},
		{Tool: "local__hash", Args: `{"text":1}`},
		{Tool: "local__json_query", Args: `{"json":"{}","query":"syntax("}`},
		{Tool: "local__nothing", Args: `{}`},
		{Tool: "no tool at all", Args: `{}`},
	} {
		own, err := a.Calls.Call(t.Context(), c)
		other, rerr := calls.Call(t.Context(), r, c)
		if own.IsError != other.IsError || (err == nil && own.Doc.Digest() != other.Doc.Digest()) {
			t.Errorf("call %+v: %v and %v", c, own, other)
		}
		same(t, fmt.Sprintf("call %+v", c), err, rerr)
	}
	own := a.Overview.Status()
	other, err := overview.Show.Ask(t.Context(), r, operation.None{})
	if err != nil || !other.Running {
		t.Errorf("%+v, error %v", other, err)
	}
	if diff := cmp.Diff(own, other, cmpopts.IgnoreFields(overview.Status{}, "Running"), cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error(diff)
	}
}

// same compares errors by all that a command reads of them.
func same(t *testing.T, what string, a, b error) {
	t.Helper()
	var ca, cb *calls.Error
	if errors.As(a, &ca) && errors.As(b, &cb) {
		if diff := cmp.Diff(ca, cb, cmpopts.IgnoreFields(calls.Error{}, "RecordID"), cmpopts.IgnoreUnexported(calls.Error{})); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	var pa, pb *naming.PrincipalError
	if errors.As(a, &pa) != errors.As(b, &pb) || !cmp.Equal(pa, pb) || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%s: errors %v and %v", what, a, b)
	}
}

func TestPrincipals(t *testing.T) {
	cfg := load(t, "version: 1\nprincipals: {alice: {roles: [dev]}, local: {roles: [ops]}}\nservers: {gone: {command: /nonexistent/server}}\n")
	write(t, filepath.Join(filepath.Dir(cfg.File), "p", "p.rego"), `package wasmgate

deny contains reason if {
	input.tool.local_name == "hash"
	reason := sprintf("%s %s %v", [input.principal.id, input.principal.tenant, input.principal.roles])
}
`)
	cfg = reload(t, cfg.File, "version: 1\nprincipals: {alice: {roles: [dev]}, local: {roles: [ops]}}\npolicy: {paths: [p]}\n")
	a := start(t, cfg)
	for as, want := range map[string]string{"": `local  ["ops"]`, "local": `local  ["ops"]`, "alice": `alice  ["dev"]`} {
		_, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello, As: as})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("as %q: error %v, want %s", as, err, want)
		}
	}
	_, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello, As: "bob"})
	var who *naming.PrincipalError
	if !errors.As(err, &who) || !cmp.Equal(who, &naming.PrincipalError{ID: "bob", Known: []string{"local", "alice"}}) {
		t.Errorf("error %v", err)
	}
}

// A policy that does not load leaves the last good one in place, and the status says so until it is
// fixed.
func TestPolicyReload(t *testing.T) {
	const good = "package wasmgate\n\ndeny contains \"not today\" if input.tool.local_name == \"hash\"\n"
	cfg := load(t, "version: 1\n")
	file := filepath.Join(filepath.Dir(cfg.File), "p", "p.rego")
	write(t, file, good)
	cfg = reload(t, cfg.File, "version: 1\npolicy: {paths: [p]}\n")
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	r := dial(t, cfg)
	denied := func() bool {
		_, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello})
		return err != nil
	}
	problem := func() string { return strings.Join(a.Overview.Status().Problems, "\n") }
	first := a.Overview.Status().Policy

	write(t, file, "package wasmgate\n\nallow contains if if\n")
	if _, err := policies.Reload.Ask(t.Context(), r, operation.None{}); err == nil || !strings.Contains(err.Error(), "p/p.rego:3") {
		t.Errorf("error %v", err)
	}
	if !denied() || a.Overview.Status().Policy != first || !strings.Contains(problem(), "p/p.rego:3") || !strings.Contains(problem(), "the last good one is in use") {
		t.Errorf("policy %s, was %s; problems %q", a.Overview.Status().Policy, first, problem())
	}

	write(t, file, "package wasmgate\n# nothing\n") // without being asked to
	timelimit.Wait(t, "the corrected policy", func() bool { return a.Overview.Status().Policy != first })
	if denied() || problem() != "" {
		t.Errorf("problems %q", problem())
	}

	if _, err := policydata.AddGrant(t.Context(), policydata.GrantsFile(cfg.Policy.Grants), policydata.Grant{To: []string{"local"}, Tools: []string{"files__x"}}); err != nil {
		t.Fatal(err)
	}
	second := a.Overview.Status().Policy
	if _, err := policies.Reload.Ask(t.Context(), r, operation.None{}); err != nil || a.Overview.Status().Policy == second {
		t.Errorf("the grant has no effect; error %v", err)
	}
	write(t, cfg.Policy.Grants, "- nonsense\n")
	if _, err := policies.Reload.Ask(t.Context(), r, operation.None{}); err == nil || !strings.Contains(problem(), "grants.yaml:1") {
		t.Errorf("error %v, problems %q", err, problem())
	}
}

// A folder of policies may be a link.
func TestPolicyFolderBehindLink(t *testing.T) {
	cfg := load(t, "version: 1\n")
	dir := filepath.Dir(cfg.File)
	write(t, filepath.Join(dir, "real", "sub", "p.rego"), "package wasmgate\n\ndeny contains \"found\"\n")
	if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "p")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	cfg = reload(t, cfg.File, "version: 1\npolicy: {paths: [p]}\n")
	a := start(t, cfg)
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err == nil || !strings.Contains(err.Error(), "found") {
		t.Errorf("error %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a := start(t, load(t, "version: 1\n"))
	err = a.Run(t.Context(), app.Front{Listen: []string{ln.Addr().String()}})
	if err == nil || !strings.Contains(err.Error(), "has "+ln.Addr().String()+" already") {
		t.Errorf("error %v", err)
	}
}

// A conversation is a client of a gateway in lines.
type conversation struct {
	t    *testing.T
	to   *io.PipeWriter
	from *bufio.Reader
	id   int
}

// converse returns the two ends of one: what a gateway reads and writes.
func converse(t *testing.T) (*conversation, io.Reader, io.Writer) {
	in, to := io.Pipe()
	from, out := io.Pipe()
	t.Cleanup(func() {
		to.Close()
		from.Close()
	})
	return &conversation{t: t, to: to, from: bufio.NewReader(from)}, in, out
}

// ask sends a request and returns the line of its answer.
func (c *conversation) ask(method, params string) string {
	c.t.Helper()
	c.id++
	fmt.Fprintf(c.to, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.id, method, params)
	for {
		line, err := c.from.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		if strings.Contains(line, fmt.Sprintf(`"id":%d`, c.id)) {
			return line
		}
	}
}

func (c *conversation) begin() {
	c.t.Helper()
	answer := c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	if !strings.Contains(answer, `"serverInfo"`) {
		c.t.Fatal("handshake: " + answer)
	}
	fmt.Fprintln(c.to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (c *conversation) works() {
	c.t.Helper()
	if answer := c.ask("tools/list", "{}"); !strings.Contains(answer, "local__hash") {
		c.t.Error("list: " + answer)
	}
	if answer := c.ask("tools/call", `{"name":"local__hash","arguments":`+hello+`}`); !strings.Contains(answer, "2cf24dba5fb0a30e") {
		c.t.Error("call: " + answer)
	}
}

// The gateway of a client on standard input serves those that came to it later,
// until the last has gone.
func TestOwnerServesOthersToTheirEnd(t *testing.T) {
	cfg := load(t, "version: 1\n")
	first, in, out := converse(t)
	_, ended, _ := run(t, start(t, cfg), app.Front{Stdio: true, In: in, Out: out})
	first.begin()
	first.works()

	second, in2, out2 := converse(t)
	left := make(chan error, 1)
	r := dial(t, cfg)
	go func() { left <- r.Relay(context.WithoutCancel(t.Context()), "", nil, in2, out2) }()
	second.begin()
	first.to.Close()
	second.works()
	select {
	case err := <-ended:
		t.Fatal("it ended with its own client:", err)
	default:
	}
	second.to.Close()
	if err := <-left; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Clients that a gateway in another client's process serves are served on by one of their own processes
// when it ends.
func TestFollow(t *testing.T) {
	cfg := load(t, "version: 1\n")
	owner := start(t, cfg)
	_, _, end := run(t, owner, app.Front{Listen: []string{"127.0.0.1:0"}})

	const followers = 3
	var clients []*conversation
	var owners sync.WaitGroup
	for range followers {
		c, in, out := converse(t)
		r := dial(t, cfg)
		f := app.Front{Stdio: true, In: in, Out: out, Ready: func(context.Context, *app.App, string) {}}
		owners.Go(func() {
			if err := app.Follow(context.WithoutCancel(t.Context()), cfg, quiet, r, f); err != nil {
				t.Error(err)
			}
		})
		c.begin()
		c.works()
		clients = append(clients, c)
	}
	end()
	if err := owner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		c.works()
	}
	for _, c := range clients { // each is the first or a further one to go
		c.to.Close()
	}
	owners.Wait()
}

func TestFollowAsNobody(t *testing.T) {
	cfg := load(t, "version: 1\n")
	_, _, _ = run(t, start(t, cfg), app.Front{Listen: []string{"127.0.0.1:0"}})
	_, in, out := converse(t)
	err := app.Follow(t.Context(), cfg, quiet, dial(t, cfg), app.Front{Stdio: true, As: "nobody", In: in, Out: out})
	var who *naming.PrincipalError
	if !errors.As(err, &who) {
		t.Errorf("error %v", err)
	}
}
