package upstream_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// caller makes calls of a session of a client that cannot be asked anything, and returns
// what the server says of its process.
type caller struct {
	t testing.TB
	g *gate.Gate
}

func (c caller) call(session string) (calls, pid string, err error) {
	c.t.Helper()
	call := rig.NewCall("liar__echo", "{}")
	call.Session = gate.SessionKey{Owner: call.Who.Owner, ID: session}
	res, err := c.g.Do(c.t.Context(), call)
	return res.Doc.Get("calls").String(), res.Doc.Get("pid").String(), err
}

// TestOwnProcesses: what a call leaves in a server on stdio is met only by its own client, and by
// no client after it. The first client has the process that lists.
func TestOwnProcesses(t *testing.T) {
	rig.NoLeaks(t)
	e := rig.Ready(t, rig.Child("remembers"))
	g, _ := rig.NewGate(t, e)
	c := caller{t, g}
	pids := map[string]string{}
	for round := 1; round <= 3; round++ {
		for _, session := range []string{"a", "b"} {
			calls, pid, err := c.call(session)
			if err != nil || calls != fmt.Sprint(round) || pids[session] != "" && pids[session] != pid {
				t.Fatalf("round %d of session %s: %s calls in process %s, %v", round, session, calls, pid, err)
			}
			pids[session] = pid
		}
	}
	for _, session := range []string{"a", "b"} {
		e.EndSession(gate.SessionKey{Owner: gate.Local().Owner, ID: session})
	}
	calls, pid, err := c.call("after")
	if err != nil || calls != "1" || pid == pids["a"] || pid == pids["b"] {
		t.Errorf("a client that came later: %s calls in process %s of %v, %v", calls, pid, pids, err)
	}
	e.Close()
}

// TestJobsInOwnProcesses: a job and a task (2025-11-25) run in the process of their session,
// of a client that can be asked something, too, and in no other client's of its principal.
func TestJobsInOwnProcesses(t *testing.T) {
	unraced.Long(t)
	rig.NoLeaks(t)
	e := rig.Ready(t, rig.Child("remembers"))
	g, _ := rig.NewGate(t, e)
	peer := gatetest.Asked(`{"roots":{"listChanged":true},"elicitation":{"form":{}}}`, nil)
	pids := map[string]string{}
	for i, how := range []string{"call", "job", "task", "job", "call"} {
		for _, session := range []string{"a", "b"} {
			c := rig.NewCall("liar__echo", "{}")
			c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: session}
			if how != "job" {
				c.Client = peer
			}
			gatetest.Of(&c).Can.Detached = how != "call"
			res, err := g.Do(t.Context(), c)
			pid := res.Doc.Get("pid").String()
			if calls := res.Doc.Get("calls").String(); err != nil || calls != fmt.Sprint(i+1) || pids[session] != "" && pids[session] != pid {
				t.Errorf("%s %d of session %s: call %s of process %s, want %s; %v", how, i+1, session, calls, pid, pids[session], err)
			}
			pids[session] = pid
		}
	}
	if pids["a"] == pids["b"] {
		t.Error("two clients have one process")
	}
	e.Close()
}

// TestJobBeforeCalls: a job with which a session begins has a process that can ask nothing.
// The session's calls have another, and so has the next job.
func TestJobBeforeCalls(t *testing.T) {
	unraced.Long(t)
	g, _ := rig.NewGate(t, rig.Ready(t, rig.Child("remembers")))
	var pids []string
	for _, how := range []string{"job", "call", "job"} {
		c := rig.NewCall("liar__echo", "{}")
		c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: "s"}
		if how == "call" {
			c.Client = gatetest.Asked(`{"roots":{}}`, nil)
		}
		gatetest.Of(&c).Can.Detached = how == "job"
		res, err := g.Do(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, res.Doc.Get("pid").String())
	}
	if pids[0] == pids[1] || pids[1] != pids[2] {
		t.Errorf("a job, a call and a job ran in the processes %v", pids)
	}
}

// TestWhatHasNoSessionsProcess: a call of 2026-07-28 that can become a task, and a task without a
// session, meet neither another client's question, nor what others have left.
func TestWhatHasNoSessionsProcess(t *testing.T) {
	unraced.Long(t)
	g, _ := rig.NewGate(t, rig.Ready(t, rig.Child("remembers")))
	can := gate.MustDoc(`{"roots":{}}`)
	for name, tt := range map[string]struct {
		session      string
		first, other gate.Reach
	}{
		"can become a task": {"s", gate.Reach{Capabilities: can}, gate.Reach{Capabilities: can, Detached: true, MayBeTask: true}},
		"without a session": {"", gate.Reach{}, gate.Reach{Capabilities: can, Detached: true}},
	} {
		pid := func(how gate.Reach) string {
			c := rig.NewCall("liar__echo", "{}")
			c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: tt.session}
			c.Client = &gatetest.Client{Can: how}
			res, err := g.Do(t.Context(), c)
			if err != nil {
				t.Fatal(name, err)
			}
			return res.Doc.Get("pid").String()
		}
		if first, other := pid(tt.first), pid(tt.other); first == other {
			t.Errorf("%s: both calls in process %s", name, first)
		}
	}
}

// TestTaskOverHTTP: where what a server asks says for which call, and nothing is left in a
// process, a task outlives the connection of its session by one of its own.
func TestTaskOverHTTP(t *testing.T) {
	p, e := newProber(t, "{}", rig.EchoTool)
	g, _ := rig.NewGate(t, e)
	for _, detached := range []bool{false, true} {
		c := rig.NewCall("up__echo", "{}")
		c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: "s"}
		c.Client = gatetest.Asked(`{"roots":{}}`, nil)
		gatetest.Of(&c).Can.Detached = detached
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = g.Do(ctx, c) })
		<-p.calls
		if len(p.conn) != 1 {
			t.Errorf("detached %v: %d connections were made for it", detached, len(p.conn))
		} else {
			<-p.conn
		}
		cancel()
		wg.Wait()
	}
}

// asking is a server that asks for its client's roots when it has started, when they have
// changed and in each call, which it answers then. A call to hold it answers with the next.
func asking() {
	const asks = `{"jsonrpc":"2.0","id":%q,"method":"roots/list"}` + "\n"
	var held []string
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		msg, err := gate.ParseDoc(in.Bytes())
		if err != nil {
			return
		}
		id := msg.Get("id").String()
		answer := func(id, result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result) }
		switch msg.Get("method").Text() {
		case "initialize":
			answer(id, rig.Initialized)
		case "tools/list":
			answer(id, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
		case "ping":
			answer(id, "{}")
		case "notifications/initialized", mcp.MethodRootsChanged:
			fmt.Printf(asks, "meanwhile")
		case "tools/call":
			if held = append(held, id); msg.At("/params/arguments/hold").True() {
				fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":%s}}`+"\n", msg.At("/params/_meta/progressToken"))
				continue
			}
			fmt.Printf(asks, "now")
		case "": // an answer
			if id == `"now"` {
				for _, call := range held {
					answer(call, fmt.Sprintf(`{"content":[],"refused":%t}`, !msg.Get("error").IsZero()))
				}
				held = nil
			}
		}
	}
}

// TestWhomJobsAsk: while a client waits for its call, the server's questions go to that client,
// even if a job or task is under way in the process, too. If there is only a job, no client is
// asked; if there is only a task, the client that comes back to it is asked. If the server does not
// get the client's roots during either, it gets them with the next call.
func TestWhomJobsAsk(t *testing.T) {
	unraced.Long(t)
	e := rig.Ready(t, rig.Child("asking"))
	g, _ := rig.NewGate(t, e)
	key := func(session string) gate.SessionKey { return gate.SessionKey{Owner: gate.Local().Owner, ID: session} }
	do := func(session, how, args string, want int, refused bool, held func()) {
		t.Helper()
		asked := 0
		c := rig.NewCall("liar__echo", args)
		c.Session = key(session)
		if held != nil {
			c.Meta = gate.MustDoc(`{"progressToken":1}`)
			gatetest.Of(&c).OnNotify = func(context.Context, string, gate.Doc) { held() }
		}
		one := gatetest.Of(&c)
		if one.Can.Detached = how != "call"; how != "job" {
			one.Can.Capabilities = gate.MustDoc(`{"roots":{"listChanged":true}}`)
			one.OnRequest = func(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
				asked++ // one after the other
				return gate.MustDoc(`{"roots":[]}`), nil
			}
		}
		res, err := g.Do(t.Context(), c)
		if err != nil || asked != want || res.Doc.Get("refused").True() != refused {
			t.Errorf("%s of session %s is asked %d times, want %d: %s, %v", how, session, asked, want, res.Doc, err)
		}
	}
	for how, alone := range map[string]int{"job": 0, "task": 1} {
		do(how, "call", "{}", 2, false, nil) // when the server starts, and in the call
		do(how, how, "{}", alone, alone == 0, nil)
		e.RootsChanged(key(how))
		do(how, how, "{}", alone, alone == 0, nil)
		do(how, "call", "{}", 2, false, nil)

		held := make(chan struct{})
		var beside sync.WaitGroup
		beside.Go(func() { do(how, how, `{"hold":true}`, 0, false, func() { close(held) }) })
		<-held
		do(how, "call", "{}", 1, false, nil)
		beside.Wait()
	}
	// A session's end leaves a job its process.
	held := make(chan struct{})
	var job sync.WaitGroup
	job.Go(func() { do("job", "job", `{"hold":true}`, 0, true, func() { close(held) }) })
	<-held
	e.EndSession(key("job"))
	do("job", "job", "{}", 0, true, nil)
	job.Wait()

	do("begins with a task", "task", "{}", 2, false, nil)
	do("begins with a task", "call", "{}", 2, false, nil)
	do("begins with a task", "call", "{}", 1, false, nil)
}

// levels counts what servers say on their standard error, by the level at which it is logged.
type levels struct {
	slog.Handler
	mu   sync.Mutex
	said map[slog.Level]int
}

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Message == "server log" {
		l.said[r.Level]++
	}
	return nil
}

func (l *levels) of(level slog.Level) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said[level]
}

// TestOneLineOfAllProcesses: what each process of a server says when it starts is logged
// once for people, and for the processes of single clients for who looks closer.
func TestOneLineOfAllProcesses(t *testing.T) {
	unraced.Long(t)
	cfg := rig.Child("remembers")
	cfg.Args = append([]string{"-c", `echo "Starting ..." >&2; exec "$0" "$@"`, cfg.Command}, cfg.Args...)
	cfg.Command = "/bin/sh"
	heard := &levels{Handler: slog.DiscardHandler, said: map[slog.Level]int{}}
	cfg.Log = slog.New(heard)
	e := rig.Ready(t, cfg)
	g, _ := rig.NewGate(t, e)
	for _, session := range []string{"a", "b", "c"} {
		if _, _, err := (caller{t, g}).call(session); err != nil {
			t.Fatal(err)
		}
	}
	rig.Within(t, "all processes are heard", func() bool { return heard.of(slog.LevelInfo)+heard.of(slog.LevelDebug) >= 3 })
	if heard.of(slog.LevelInfo) != 1 {
		t.Errorf("%d lines for people, want that of the process which lists", heard.of(slog.LevelInfo))
	}
	e.Close()
}

// TestSharedProcess: on request there is one for all.
func TestSharedProcess(t *testing.T) {
	cfg := rig.Child("remembers")
	cfg.Sessions = options.SessionsShared
	g, _ := rig.NewGate(t, rig.Ready(t, cfg))
	c := caller{t, g}
	for i, session := range []string{"a", "b", "a"} {
		if calls, _, err := c.call(session); err != nil || calls != fmt.Sprint(i+1) {
			t.Errorf("call %d: %s, %v", i, calls, err)
		}
	}
}

// TestOwnProcessDeclaresAnother: a process that declares other tools than those that were
// listed, and held against the pins, is not called.
func TestOwnProcessDeclaresAnother(t *testing.T) {
	unraced.Long(t)
	cfg := rig.Child("turns")
	cfg.Env = append(cfg.Env, "WASMGATE_TEST_FIRST="+filepath.Join(t.TempDir(), "first"))
	g, _ := rig.NewGate(t, rig.Ready(t, cfg))
	c := caller{t, g}
	if _, _, err := c.call("a"); err != nil {
		t.Errorf("the process that was listed: %v", err)
	}
	if _, _, err := c.call("b"); rig.Kind(err) != string(fault.Pinned) {
		t.Errorf("a process that declares another definition: %v", err)
	}
}

// TestToolsThatComeLater: what a call adds in a client's own process is listed, works there,
// and nowhere else, and goes with the process.
func TestToolsThatComeLater(t *testing.T) {
	unraced.Long(t)
	e := rig.Ready(t, rig.Child("grows"))
	changed := make(chan struct{}, 100)
	e.Join(nil, new(wants.Levels), func() { changed <- struct{}{} }, func(status.Declaration) {}, func(mcp.Notice) {})
	g, _ := rig.NewGate(t, e)
	lists := func(want int) {
		t.Helper()
		end := time.After(time.Minute)
		for len(e.Tools(t.Context())) != want {
			select {
			case <-changed:
			case <-end:
				t.Fatalf("%d tools are listed, want %d", len(e.Tools(t.Context())), want)
			}
		}
	}
	call := func(session, tool, args string) error {
		c := rig.NewCall("liar__"+tool, args)
		c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: session}
		_, err := g.Do(t.Context(), c)
		return err
	}
	if err := call("spare", "echo", "{}"); err != nil { // who has the process that lists
		t.Fatal(err)
	}
	for _, session := range []string{"first", "second"} {
		if err := call(session, "echo", `{"add":true}`); err != nil {
			t.Fatal(err)
		}
		lists(2)
		if err := call(session, "late", "{}"); err != nil {
			t.Errorf("client %s calls the tool that it has added: %v", session, err)
		}
	}
	if err := call("third", "late", "{}"); rig.Kind(err) != string(fault.NotConnected) {
		t.Errorf("a client that has not added it: %v", err)
	}
	for _, session := range []string{"first", "second"} {
		e.EndSession(gate.SessionKey{Owner: gate.Local().Owner, ID: session})
	}
	lists(1)
}

// TestProcessesAreBounded: a process that its only client used a moment ago makes no room. As
// many clients as the bound get a process beyond it; the refusal of the next one names the key.
func TestProcessesAreBounded(t *testing.T) {
	unraced.Long(t)
	cfg := rig.Child("remembers")
	cfg.Processes = 2
	g, _ := rig.NewGate(t, rig.Ready(t, cfg))
	c := caller{t, g}
	for _, session := range []string{"a", "b", "c", "d"} {
		if _, _, err := c.call(session); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.call("e"); rig.Kind(err) != string(fault.Busy) || !strings.Contains(err.Error(), "limits.processes") {
		t.Errorf("a fifth client: %v", err)
	}
	if calls, _, err := c.call("a"); err != nil || calls != "2" {
		t.Errorf("the first one: %s, %v", calls, err)
	}
}
