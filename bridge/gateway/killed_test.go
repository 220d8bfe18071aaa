package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// upstreamEnv makes the test binary an MCP server: on standard input and output, or at
// the address that it names.
const upstreamEnv = "WASMGATE_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	gateway.ChildMain()
	if at := os.Getenv(upstreamEnv); at != "" {
		if err := serveUpstream(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveUpstream serves the tools work, which takes a moment, and pid.
func serveUpstream(at string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
	answer := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		time.Sleep(5 * time.Millisecond)
		return answer("done")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return answer(strconv.Itoa(os.Getpid()))
	})
	if at == "stdio" {
		return s.Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := rig.Listen(at)
	if err != nil {
		return err
	}
	return http.Serve(l, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
}

// outcomes keeps the code of each call that has ended, and how often it was granted.
type outcomes struct {
	mu      sync.Mutex
	done    map[string]string
	granted map[string]int
	spans   map[string]*span
	begun   map[string]chan struct{} // by tool; closed when a call of it is granted
}

// A span is when a call was under way, or when a server died.
type span struct{ from, to time.Time }

func (s span) meets(o span) bool { return !s.from.After(o.to) && !o.from.After(s.to) }

func (o *outcomes) Record(_ context.Context, r *gate.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Event == gate.Granted {
		o.granted[r.Call.ID]++
		o.spans[r.Call.ID] = &span{from: time.Now()}
		if begun := o.begun[r.Call.Name]; begun != nil {
			close(begun)
			delete(o.begun, r.Call.Name)
		}
	}
	if r.Event == gate.Done {
		o.done[r.Call.ID] = r.Code
		if s := o.spans[r.Call.ID]; s != nil {
			s.to = time.Now()
		}
	}
	return nil
}

// underWay waits until a call of a tool begins.
func (o *outcomes) underWay(t *testing.T, tool string) {
	t.Helper()
	begun := make(chan struct{})
	o.mu.Lock()
	o.begun[tool] = begun
	o.mu.Unlock()
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatalf("nobody calls %s", tool)
	}
}

// unnoticed is how long, at most, it may take on a busy machine until what a process that
// has gone leaves of its connections is noticed at their other end.
const unnoticed = time.Second

// Servers are killed under load, and come back. Only calls that are under way then are lost, one of
// each client that they serve or, over HTTP, seldom two. Other calls wait for the server, or get
// the error that it is away while it is, and were not made. Each call has its record; no client
// notices anything of it in its session; and in the end all are served again.
func TestKilledUpstreams(t *testing.T) {
	unraced.Long(t)
	const clients, kills = 8, 3
	o := &outcomes{done: make(map[string]string), granted: make(map[string]int), spans: make(map[string]*span), begun: make(map[string]chan struct{})}
	web := startWeb(t)
	g := start(t, gateway.Config{
		Recorder: o, Policy: granting("pipe__*", "web__*"),
		Servers: []options.Endpoint{
			{Server: "pipe", Command: os.Args[0], Env: []string{upstreamEnv + "=stdio"}},
			{Server: "web", URL: web.url},
		},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	defer front.Close()

	var made atomic.Int32
	var lost [2]atomic.Int32
	var deaths, absences [2][]span // from each kill until the process is gone, and until all are served again
	back := func(which int) {
		if n := len(deaths[which]); n > len(absences[which]) {
			absences[which] = append(absences[which], span{deaths[which][n-1].from, time.Now()})
		}
	}
	var served [clients][2]atomic.Int32
	var sessions [clients]*mcp.ClientSession // each has a process of its own behind the pipe
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range clients {
		// One that can be asked for its roots has connections of its own to the web, others share one.
		capabilities := new(mcp.ClientCapabilities)
		if i%4 == 0 {
			capabilities.RootsV2 = new(mcp.RootCapabilities)
		}
		c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{Capabilities: capabilities})
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: front.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions[i] = s
		session := s.ID()
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if s.ID() != session || session == "" {
						t.Errorf("the session %q has become %q", session, s.ID())
					}
					return
				default:
				}
				which := n % 2
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: []string{"pipe", "web"}[which] + "__work"})
				made.Add(1)
				if err != nil {
					t.Errorf("a client's session broke: %v", err)
					return
				}
				switch {
				case !res.IsError:
					served[i][which].Add(1)
				case o.check(t, res) == "transport":
					lost[which].Add(1)
				default:
					time.Sleep(10 * time.Millisecond) // it is away, and asking without a pause would only keep it from coming back
				}
			}
		})
	}
	// all waits until each client has been served by a server once more.
	all := func(which int) {
		t.Helper()
		for i := range clients {
			for before, end := served[i][which].Load(), time.Now().Add(time.Minute); served[i][which].Load() == before; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("client %d is not served again", i)
				}
			}
		}
	}
	for i := range kills {
		all(0)
		back(0)
		p := pipe(t, sessions[i])
		o.underWay(t, "pipe__work")
		died := span{from: time.Now()}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); p.Signal(syscall.Signal(0)) == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the process that was killed is still there")
			}
		}
		died.to = time.Now()
		deaths[0] = append(deaths[0], died)
		all(1)
		back(1)
		o.underWay(t, "web__work")
		deaths[1] = append(deaths[1], web.restart(t))
	}
	all(0)
	back(0)
	all(1)
	back(1)
	close(stop)
	wg.Wait()
	// A client that is served by the pipe has a process of its own, and one call at a time.
	if n := lost[0].Load(); n > kills {
		t.Errorf("%d calls of the pipe were lost, with %d kills", n, kills)
	}
	// A process that dies closes its connections one after the other, which takes a while
	// on a busy machine: a client of the web can lose its next call on one of the last.
	if n := lost[1].Load(); n > 2*clients*kills {
		t.Errorf("%d calls of the web were lost, with %d clients and %d kills", n, clients, kills)
	}
	for id, code := range o.done {
		within := map[string][]span{"transport": slices.Concat(deaths[0], deaths[1]), "not_connected": slices.Concat(absences[0], absences[1])}[code]
		if within == nil {
			continue
		}
		s := *o.spans[id]
		s.from = s.from.Add(-unnoticed)
		if !slices.ContainsFunc(within, s.meets) {
			t.Errorf("call %s: %s, and no server died or was away then", id, code)
		}
	}
	if lost[0].Load()+lost[1].Load() == 0 {
		t.Error("no call was under way when a server was killed: nothing was tested")
	}
	t.Logf("%d calls; lost: %d of the pipe, %d of the web", made.Load(), lost[0].Load(), lost[1].Load())
	for id, n := range o.granted {
		if n != 1 || o.done[id] == "" {
			t.Errorf("call %s: granted %d times, ended %q", id, n, o.done[id])
		}
	}
}

// check looks the record of a call up that has failed, and returns its code.
func (o *outcomes) check(t *testing.T, res *mcp.CallToolResult) string {
	refusal, _ := res.Meta["io.github.wasmgate/refusal"].(map[string]any)
	id, _ := refusal["record_id"].(string)
	o.mu.Lock()
	defer o.mu.Unlock()
	if code := o.done[id]; code != "transport" && code != "not_connected" || code != refusal["code"] {
		t.Errorf("a lost call has the record %q: %v", code, res.Meta)
	}
	return o.done[id]
}

// pipe is the process that a client has behind the pipe, which says who it is.
func pipe(t *testing.T, s *mcp.ClientSession) *os.Process {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pipe__pid"})
	if err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
	pid, err := strconv.Atoi(res.Content[0].(*mcp.TextContent).Text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A webProcess is a server over HTTP in a process of its own.
type webProcess struct {
	url, at string
	cmd     *exec.Cmd
}

func startWeb(t *testing.T) *webProcess {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &webProcess{at: l.Addr().String(), url: "http://" + l.Addr().String() + "/mcp"}
	l.Close()
	w.start(t)
	t.Cleanup(w.kill)
	rig.Within(t, "the server listens", func() bool {
		c, err := net.Dial("tcp", w.at)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return w
}

func (w *webProcess) start(t *testing.T) {
	t.Helper()
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), upstreamEnv+"="+w.at)
	w.cmd.Stderr = os.Stderr
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (w *webProcess) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// restart kills the server, and starts it again after a while. It returns when it died.
func (w *webProcess) restart(t *testing.T) span {
	t.Helper()
	died := span{from: time.Now()}
	w.kill()
	died.to = time.Now()
	time.Sleep(200 * time.Millisecond)
	w.start(t)
	return died
}
