package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/sqlite"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// jobbing returns a gateway that offers jobs, with tools that do as their names say.
func jobbing(t *testing.T, more func(*gateway.Config)) (*gateway.Gateway, string) {
	t.Helper()
	returns := func(name, schema, result string) options.LocalTool {
		return options.LocalTool{
			Definition: gate.MustDoc(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, schema)),
			Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc(result)}, nil
			},
		}
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	cfg := gateway.Config{
		Audit: log, AuditOptions: audit.Options{Node: "n"}, Policy: granting("a__*"), Jobs: &gateway.Jobs{Offer: true},
		Functions: map[string][]options.LocalTool{
			"a": {
				tool("echo", nil),
				tool("hang", func(ctx context.Context, _ *gate.Call, _ gate.Permit) (gate.Result, error) {
					<-ctx.Done()
					return gate.Result{}, ctx.Err()
				}),
				returns("dirty", "", `{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m"}]}`),
				returns("wrong", `,"outputSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`, `{"content":[],"structuredContent":{"n":"x"}}`),
				returns("fails", "", `{"content":[{"type":"text","text":"out of paper"}],"isError":true}`),
			},
			"b": {tool("denied", nil)},
		},
	}
	if more != nil {
		more(&cfg)
	}
	return start(t, cfg), log
}

// callAs calls a tool in a session of a principal.
func callAs(g *gateway.Gateway, who, session, name, args string) (gate.Result, error) {
	p := gate.Local()
	p.ID = who
	return g.Do(context.Background(), gate.Call{
		Action: gate.CallTool, Name: name, Args: gate.MustDoc(args), Who: p, Session: gate.SessionKey{Owner: p.Owner, ID: session},
	})
}

// about calls a tool of the server jobs about a job, for alice.
func about(t *testing.T, g *gateway.Gateway, name, id string) gate.Doc {
	t.Helper()
	res, err := callAs(g, "alice", "s", name, fmt.Sprintf(`{"job_id":%q}`, id))
	if err != nil {
		t.Fatal(err)
	}
	return res.Doc
}

// started starts a tool as a job of alice's.
func started(t *testing.T, g *gateway.Gateway, tool, arguments string) (id string) {
	t.Helper()
	res, err := callAs(g, "alice", "s", "jobs__start", fmt.Sprintf(`{"tool":%q,"arguments":%s}`, tool, arguments))
	if err != nil {
		t.Fatal(err)
	}
	status := res.Doc.Get("structuredContent")
	if status.Get("lifecycle_status").Text() != "running" || status.Get("is_terminal").True() || status.Get("tool").Text() != tool {
		t.Fatalf("it starts as %s", res.Doc)
	}
	return status.Get("job_id").Text()
}

func TestJob(t *testing.T) {
	g, log := jobbing(t, nil)
	id := started(t, g, "a__echo", `{"text":"hello"}`)
	status := about(t, g, "jobs__wait", id).Get("structuredContent")
	if status.Get("lifecycle_status").Text() != "completed" || !status.Get("is_terminal").True() || !status.Get("result_available").True() {
		t.Errorf("status %s", status)
	}
	res := about(t, g, "jobs__result", id)
	if res.At("/content/0/text").Text() != "hello" || res.Get("isError").True() {
		t.Errorf("result %s", res)
	}
	of := res.Get("_meta").Get("io.github.wasmgate/job")
	if of.Get("job_id").Text() != id || of.Get("status").Text() != "completed" || !of.Get("is_terminal").True() {
		t.Errorf("the result says of its job %s", of)
	}
	// The call that was made is recorded, and so are those of the tools of jobs: the records
	// of the first two name each other.
	var got []string
	parent, relayed := "", []string(nil)
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event != audit.Opened {
			got = append(got, e.Tool+" "+string(e.Event)+" "+e.Principal+" "+e.Session)
		}
		switch {
		case e.Tool == "a__echo" && (e.ID != of.Get("record_id").Text() || e.Parent == ""):
			t.Errorf("record %s, parent %q", e.ID, e.Parent)
		case e.Tool == "a__echo":
			parent = e.Parent
		case e.Tool == "jobs__start" && e.Event == gate.Done:
			relayed = append(e.Relayed, e.ID)
		}
	}
	if !slices.Equal(relayed, []string{of.Get("record_id").Text(), parent}) {
		t.Errorf("the call of jobs__start says that it made %v, for %s", relayed, parent)
	}
	slices.Sort(got) // the call can end before its start does
	if diff := cmp.Diff([]string{
		"a__echo done alice s", "a__echo granted alice s", "jobs__result done alice s", "jobs__result granted alice s",
		"jobs__start done alice s", "jobs__start granted alice s", "jobs__wait done alice s", "jobs__wait granted alice s",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// A rule that denies the tools of jobs has them denied, whatever they are to call.
func TestJobsAreDecidedOn(t *testing.T) {
	g, log := jobbing(t, func(c *gateway.Config) {
		c.Policy.Files = fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\ndeny contains \"no jobs\" if input.tool.name == \"jobs__start\"\n")}}
	})
	if _, err := callAs(g, "alice", "s", "jobs__start", `{"tool":"a__echo","arguments":{"text":"hello"}}`); gate.Code(err) != "refused_authorize" {
		t.Errorf("err = %v", err)
	}
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil || e.Tool == "a__echo" || e.Event == gate.Granted {
			t.Errorf("record %s of %s, %v", e.Event, e.Tool, err)
		}
	}
	tools, err := g.Operator().Tools(t.Context(), &gate.Principal{Owner: gate.Owner{ID: "alice"}, Auth: "local"})
	if err != nil || slices.ContainsFunc(tools, func(t *gate.Tool) bool { return t.Offered == "jobs__start" }) ||
		!slices.ContainsFunc(tools, func(t *gate.Tool) bool { return t.Offered == "jobs__list" }) {
		t.Errorf("tools %v, %v", tools, err)
	}
}

func TestJobIsRefusedAtOnce(t *testing.T) {
	g, log := jobbing(t, nil)
	for name, tt := range map[string]struct{ tool, code string }{
		"what is not granted":      {"b__denied", "refused_authorize"},
		"what nobody has":          {"a__none", "refused_lookup"},
		"a job that starts a job":  {"jobs__start", "refused_authorize"},
		"a job that waits for one": {"jobs__wait", "refused_authorize"},
	} {
		_, err := callAs(g, "alice", "s", "jobs__start", fmt.Sprintf(`{"tool":%q}`, tt.tool))
		if gate.Code(err) != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	if list := about2(t, g, "jobs__list", `{}`); len(slices.Collect(list.Get("jobs").Elements())) != 0 {
		t.Errorf("calls that were refused are jobs: %s", list)
	}
	for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == "done" && e.Tool == "jobs__start" && e.Parent == "" && len(e.Relayed) != 1 {
			t.Errorf("a refusal is recorded as that of jobs__start itself: it made %v", e.Relayed)
		}
	}
}

func about2(t *testing.T, g *gateway.Gateway, name, args string) gate.Doc {
	t.Helper()
	res, err := callAs(g, "alice", "s", name, args)
	if err != nil {
		t.Fatal(err)
	}
	return res.Doc.Get("structuredContent")
}

// A client that is offered some groups learns nothing of the calls of other tools.
func TestJobOfAToolThatIsNotOffered(t *testing.T) {
	g, _ := jobbing(t, func(c *gateway.Config) { c.Groups = options.Groups{"one": {"a__echo"}, "other": {"a__hang"}} })
	id := started(t, g, "a__echo", `{}`)
	about(t, g, "jobs__wait", id)
	in := func(group, name, args string) gate.Doc {
		who := gate.Local()
		who.ID = "alice"
		res, err := g.Do(t.Context(), gate.Call{
			Action: gate.CallTool, Name: name, Args: gate.MustDoc(args), Who: who, Session: gate.SessionKey{Owner: who.Owner, ID: "s"}, Groups: gate.Groups{{group}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Doc.Get("structuredContent")
	}
	for _, name := range []string{"jobs__status", "jobs__wait", "jobs__result", "jobs__cancel"} {
		if got := in("other", name, fmt.Sprintf(`{"job_id":%q}`, id)); got.Get("code").Text() != "job_handle_not_found" {
			t.Errorf("%s: %s", name, got)
		}
		if got := in("one", name, fmt.Sprintf(`{"job_id":%q}`, id)); got.Get("code").Text() == "job_handle_not_found" {
			t.Errorf("%s, of a tool that is offered: %s", name, got)
		}
	}
	if got := in("other", "jobs__list", `{}`).Get("jobs").String(); got != "[]" {
		t.Errorf("listed are %s", got)
	}
	if got := in("one", "jobs__list", `{}`).At("/jobs/0/job_id").Text(); got != id {
		t.Errorf("of a tool that is offered, listed is %q", got)
	}
}

// The result of a job is checked and sanitized as that of any call.
func TestJobsResultsPassTheGate(t *testing.T) {
	g, _ := jobbing(t, nil)
	for tool, want := range map[string]struct{ text, state, code string }{
		"a__dirty": {"red", "completed", ""},
		"a__wrong": {"refused: the result breaks the output schema that the tool declares, at /n; the server has carried out the call", "failed", "refused_validate_output"},
		"a__fails": {"out of paper", "failed", ""},
	} {
		id := started(t, g, tool, `{}`)
		about(t, g, "jobs__wait", id)
		res := about(t, g, "jobs__result", id)
		if got := res.At("/content/0/text").Text(); got != want.text {
			t.Errorf("%s: result %q, want %q", tool, got, want.text)
		}
		if res.Get("isError").True() != (want.state == "failed") {
			t.Errorf("%s: %s", tool, res)
		}
		if got := res.Get("_meta").Get("io.github.wasmgate/job").Get("status").Text(); got != want.state {
			t.Errorf("%s: status %q, want %q", tool, got, want.state)
		}
		if got := res.Get("_meta").Get(gate.MetaRefusal).Get("code").Text(); got != want.code {
			t.Errorf("%s: code %q, want %q", tool, got, want.code)
		}
	}
}

// Scripts hold on to these words.
func TestJobHandlesThatAreOfNoUse(t *testing.T) {
	g, _ := jobbing(t, nil)
	id := started(t, g, "a__echo", `{}`)
	about(t, g, "jobs__wait", id)
	short := about2(t, g, "jobs__start", `{"tool":"a__echo","ttl_ms":1}`).Get("job_id").Text()
	about(t, g, "jobs__wait", short)
	time.Sleep(5 * time.Millisecond) // longer than it is kept
	for name, tt := range map[string]struct{ who, id, code, message, status, reason string }{
		"one that never was":    {"alice", "missing", "job_handle_not_found", "Job handle not found: missing. Result unavailable.", "invalid", "not_found"},
		"somebody else's":       {"bob", id, "job_handle_not_found", "Job handle not found: " + id + ". Result unavailable.", "invalid", "not_found"},
		"one that has expired":  {"alice", short, "job_handle_expired", "Job handle expired: " + short + ". Result unavailable.", "expired", "expired"},
		"somebody's who is new": {"carol", short, "job_handle_not_found", "Job handle not found: " + short + ". Result unavailable.", "invalid", "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := callAs(g, tt.who, "x", "jobs__result", fmt.Sprintf(`{"job_id":%q}`, tt.id))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"code": tt.code, "message": tt.message, "job_id": tt.id, "lifecycle_status": tt.status,
				"is_terminal": true, "result_available": false, "reason": tt.reason,
			}
			if diff := cmp.Diff(any(want), res.Doc.Get("structuredContent").Value()); diff != "" {
				t.Error(diff)
			}
			if !res.IsError || res.Doc.At("/content/0/text").Text() != tt.message {
				t.Errorf("result %s", res.Doc)
			}
		})
	}
	if s := about(t, g, "jobs__status", short).Get("structuredContent"); s.Get("lifecycle_status").Text() != "completed" || !s.Get("expired").True() || s.Get("result_available").True() {
		t.Errorf("the status of one that has expired is %s", s)
	}
	for _, name := range []string{"jobs__status", "jobs__wait", "jobs__cancel"} {
		res, err := callAs(g, "bob", "x", name, fmt.Sprintf(`{"job_id":%q}`, id))
		if err != nil || !res.IsError || res.Doc.At("/structuredContent/code").Text() != "job_handle_not_found" {
			t.Errorf("%s of somebody else's job: %s, %v", name, res.Doc, err)
		}
	}
}

// A session that reads a result has read what the result holds, whichever session had
// the call made.
func TestFetchingAResultTeaches(t *testing.T) {
	g, _ := jobbing(t, nil)
	id := started(t, g, "a__echo", `{"text":"x"}`)
	about(t, g, "jobs__wait", id)
	labels := func(session string) []string {
		for _, s := range g.Operator().Sessions().List() {
			if s.Key.ID == session {
				return s.Labels
			}
		}
		return nil
	}
	if _, err := callAs(g, "alice", "other", "jobs__status", fmt.Sprintf(`{"job_id":%q}`, id)); err != nil {
		t.Fatal(err)
	}
	if got := labels("other"); len(got) != 0 {
		t.Errorf("a status teaches %v", got)
	}
	if _, err := callAs(g, "alice", "other", "jobs__result", fmt.Sprintf(`{"job_id":%q}`, id)); err != nil {
		t.Fatal(err)
	}
	if got := labels("other"); !slices.Contains(got, provenance.Untrusted) {
		t.Errorf("the session that has read it has the labels %v", got)
	}
}

func TestJobThatRuns(t *testing.T) {
	g, _ := jobbing(t, nil)
	id := started(t, g, "a__hang", `{}`)
	res := about(t, g, "jobs__result", id)
	if s := res.Get("structuredContent"); !res.Get("isError").True() || s.Get("code").Text() != "job_not_finished" || s.Get("is_terminal").True() {
		t.Errorf("its result is %s", res)
	}
	if s := about2(t, g, "jobs__wait", fmt.Sprintf(`{"job_id":%q,"timeout_ms":10}`, id)); s.Get("lifecycle_status").Text() != "running" {
		t.Errorf("after waiting it is %s", s)
	}
	if counts, err := g.Operator().Jobs(); err != nil || counts.Running != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	if s := about2(t, g, "jobs__cancel", fmt.Sprintf(`{"job_id":%q,"reason":"not needed"}`, id)); s.Get("lifecycle_status").Text() != "cancelled" || s.Get("reason").Text() != "the job was cancelled: not needed" {
		t.Errorf("cancelled it is %s", s)
	}
	res = about(t, g, "jobs__result", id)
	if of := res.Get("_meta").Get("io.github.wasmgate/job"); !res.Get("isError").True() || of.Get("lifecycle_status").Text() != "cancelled" || of.Get("error").Text() != "the job was cancelled: not needed" {
		t.Errorf("its result is %s", res)
	}
}

func TestJobsAreListedInPages(t *testing.T) {
	g, _ := jobbing(t, nil)
	var want []string
	for range 53 {
		id := started(t, g, "a__echo", `{}`)
		about(t, g, "jobs__wait", id)
		want = append(want, id)
	}
	slices.Reverse(want)
	var got []string
	for args := `{}`; args != ""; {
		page := about2(t, g, "jobs__list", args)
		for j := range page.Get("jobs").Elements() {
			got = append(got, j.Get("job_id").Text())
		}
		args = ""
		if next := page.Get("next"); !next.IsZero() {
			args = fmt.Sprintf(`{"after":%s}`, next)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A shutdown waits for jobs as long as for calls, and records how the others end.
func TestDrainEndsJobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	g, log := jobbing(t, func(c *gateway.Config) { c.Jobs.Open = sqlite.File(path) })
	id := started(t, g, "a__hang", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := g.Drain(ctx); err != nil {
		t.Errorf("drain: %v", err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := logged(t, log); !slices.Contains(got, "done cancelled") {
		t.Errorf("recorded %q", got)
	}
	next, _ := jobbing(t, func(c *gateway.Config) { c.Jobs.Open = sqlite.File(path) })
	if s := about(t, next, "jobs__status", id).Get("structuredContent"); s.Get("lifecycle_status").Text() != "cancelled" || s.Get("reason").Text() != "the gateway was shut down while the call ran" {
		t.Errorf("afterwards it is %s", s)
	}
}

// A job and a task of a client that can be asked something are carried out in the process that the
// client has of a server on stdio, next to the process of another client of the same principal.
func TestJobsInTheirClientsProcess(t *testing.T) {
	unraced.Long(t)
	g, _ := jobbing(t, func(c *gateway.Config) {
		c.Policy = granting("up__*")
		c.Servers = []options.Endpoint{{Server: "up", Command: os.Args[0], Env: []string{upstreamEnv + "=stdio"}}}
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	pids := map[string]bool{}
	for range 2 {
		c := lines(t, g, `{"roots":{"listChanged":true},"elicitation":{"form":{}}}`)
		defer func() { c.in.Close(); <-c.ended }()
		ask := func(method, params string) gate.Doc {
			t.Helper()
			answer, err := c.ask(req("1", method, params))
			for err == nil && answer.Get("id").IsZero() { // it tells something
				var line []byte
				if line, err = c.out.ReadBytes('\n'); err == nil {
					answer, err = gate.ParseDoc(line)
				}
			}
			if err != nil || answer.Get("result").IsZero() {
				t.Fatalf("%s is answered %s, %v", method, answer, err)
			}
			return answer.Get("result")
		}
		pid := ask("tools/call", `"name":"up__pid"`).At("/content/0/text").Text()
		id := ask("tools/call", `"name":"jobs__start","arguments":{"tool":"up__pid"}`).At("/structuredContent/job_id").String()
		ask("tools/call", `"name":"jobs__wait","arguments":{"job_id":`+id+`}`)
		if job := ask("tools/call", `"name":"jobs__result","arguments":{"job_id":`+id+`}`); job.At("/content/0/text").Text() != pid {
			t.Errorf("a job of the client of process %s: %s", pid, job)
		}
		id = ask("tools/call", `"name":"up__pid","task":{}`).At("/task/taskId").String()
		if task := ask("tasks/result", `"taskId":`+id); task.At("/content/0/text").Text() != pid {
			t.Errorf("a task of the client of process %s: %s", pid, task)
		}
		pids[pid] = true
	}
	if len(pids) != 2 {
		t.Errorf("two clients have the processes %v", pids)
	}
}

func TestJobsAreOfferedToThoseWhoWantThem(t *testing.T) {
	g, _ := jobbing(t, func(c *gateway.Config) { c.Jobs.Offer = false })
	if _, err := callAs(g, "alice", "s", "jobs__start", `{"tool":"a__echo"}`); gate.Code(err) != "refused_lookup" {
		t.Errorf("error %v", err)
	}
}

func TestDamagedJobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("nonsense ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := gateway.New(t.Context(), gateway.Config{Recorder: new(records), Jobs: &gateway.Jobs{Open: sqlite.File(path)}})
	if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}
