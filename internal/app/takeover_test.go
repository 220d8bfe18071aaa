package app_test

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestTakeoverAtTheEndpoint: at a running gateway a session belongs to its principal. Another caller,
// however verified, gets the same answer to each verb as for a session that does not exist.
func TestTakeoverAtTheEndpoint(t *testing.T) {
	s, p := newTeam(t)
	alice := s.token(p, nil)
	session := s.session(alice)
	key, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	for name, credential := range map[string]string{
		"Bob's token":                 s.token(p, map[string]any{"sub": "bob"}),
		"an API key":                  "Bearer " + key.Secret,
		"a token of ALICE":            s.token(p, map[string]any{"sub": "ALICE"}),
		"no token of a name near by":  s.token(p, map[string]any{"sub": "alice\u200d"}),
		"a token of the same client":  s.token(p, map[string]any{"sub": "carol", "client_id": "agent", "jti": "t1"}),
		"a token of a mapped id only": s.token(p, map[string]any{"sub": "role:dev"}),
	} {
		unknown := ways(rand.Text())
		for i, w := range ways(session) {
			if i < 3 { // without a session
				continue
			}
			got, want := s.status(w, credential), s.status(unknown[i], credential)
			if got != want || got != http.StatusNotFound {
				t.Errorf("%s, %s: %d; of an unknown session %d", name, w.name, got, want)
			}
		}
	}
	if status := s.status(ways(session)[3], alice); status != 200 {
		t.Errorf("Alice's session, after all of them: %d", status)
	}
	if again := s.token(p, map[string]any{"jti": "t2"}); s.status(ways(session)[3], again) != 200 {
		t.Error("her next token is not let into her session")
	}
	if n := s.calls(); n != 2 {
		t.Errorf("%d calls were granted", n)
	}
}

// TestHandlesAtTheEndpoint: whatever the gateway hands out, other than sessions, works only for its
// principal: jobs, tasks, questions of servers and of the gateway, ids of requests and of progress. A
// caller with the same rights that brings another's handle gets the same answer as for one that does
// not exist, and nothing that is under way ends.
func TestHandlesAtTheEndpoint(t *testing.T) {
	unraced.Long(t)
	rules := filepath.Join(t.TempDir(), "asks.rego")
	write(t, rules, "package wasmgate\n\nask contains \"somebody has to look\" if input.tool.local_name == \"write\"\n")
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+fmt.Sprintf("jobs: {offer: true}\npolicy: {packs: [grants], paths: [%q], data: {grants: grants.yaml}}\n", rules))
	alice := front{http.DefaultClient, s.url, []string{"Authorization", s.token(p, nil)}}
	strangers := map[string]front{
		"Bob":     {http.DefaultClient, s.url, []string{"Authorization", s.token(p, map[string]any{"sub": "bob", "jti": "b"})}},
		"a group": {http.DefaultClient, s.url + "/both", []string{"Authorization", s.token(p, map[string]any{"sub": "bob", "jti": "b"})}},
		"ALICE":   {http.DefaultClient, s.url, []string{"Authorization", s.token(p, map[string]any{"sub": "ALICE", "jti": "c"})}},
	}
	got := func(body, pointer string) string {
		t.Helper()
		v := gate.MustDoc(body).At(pointer).Text()
		if v == "" {
			t.Fatalf("no %s in %s", pointer, body)
		}
		return v
	}
	const asked, answers = `{"elicitation":{}}`, `,"inputResponses":{"%s":{"action":"accept","content":{"decision":"approve"}}}`
	under := func() {
		t.Helper()
		select {
		case <-s.waits:
		case <-time.After(time.Minute):
			t.Fatal("a call has not begun")
		}
	}

	_, body := alice.newest(t, "tools/call", `"name":"jobs__start","arguments":{"tool":"files__wait","arguments":{}}`, `{}`)
	job := got(body, "/result/structuredContent/job_id")
	under()
	session := s.session(alice.headers[1])
	old := func(session, method, params string) way {
		body := `{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{` + params + `}}`
		if strings.HasPrefix(method, "notifications/") {
			body = strings.Replace(body, `"id":2,`, "", 1)
		}
		return way{method, "POST", body, []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", session}}
	}
	_, _, body = alice.send(t, old(session, "tools/call", `"name":"files__wait","arguments":{},"task":{}`))
	task := got(body, "/result/task/taskId")
	under()
	s.asks.Store(true)
	_, body = alice.newest(t, "tools/call", `"name":"files__wait","arguments":{}`, asked)
	question := got(body, "/result/requestState")
	under()
	name := ""
	for one := range gate.MustDoc(body).At("/result/inputRequests").Members() {
		name = one
	}
	_, body = alice.newest(t, "tools/call", `"name":"files__write","arguments":{}`, asked)
	approval := got(body, "/result/requestState")

	granted := s.granted("files__")
	for who, f := range strangers {
		own := ""
		if f.url == s.url {
			own = s.session(f.headers[1])
		}
		for what, tt := range map[string]struct {
			handle string
			send   func(handle string) string
		}{
			"a job's state":  {job, func(h string) string { return f.tool(t, "jobs__status", `{"job_id":"`+h+`"}`) }},
			"a job's end":    {job, func(h string) string { return f.tool(t, "jobs__wait", `{"job_id":"`+h+`","timeout_ms":0}`) }},
			"a job's result": {job, func(h string) string { return f.tool(t, "jobs__result", `{"job_id":"`+h+`"}`) }},
			"a job, ended":   {job, func(h string) string { return f.tool(t, "jobs__cancel", `{"job_id":"`+h+`"}`) }},
			"jobs after it":  {job, func(h string) string { return f.tool(t, "jobs__list", `{"after":"`+h+`"}`) }},
			"a server's question": {question, func(h string) string {
				_, body := f.newest(t, "tools/call", `"name":"files__wait","arguments":{},"requestState":"`+h+`"`+fmt.Sprintf(answers, name), asked)
				return body
			}},
			"a task, got":    {task, func(h string) string { return f.own(t, old(own, "tasks/get", `"taskId":"`+h+`"`)) }},
			"a task's end":   {task, func(h string) string { return f.own(t, old(own, "tasks/result", `"taskId":"`+h+`"`)) }},
			"a task, ended":  {task, func(h string) string { return f.own(t, old(own, "tasks/cancel", `"taskId":"`+h+`"`)) }},
			"tasks after it": {task, func(h string) string { return f.own(t, old(own, "tasks/list", `"cursor":"`+h+`"`)) }},
			"a request, ended": {"2", func(h string) string {
				return f.own(t, old(own, "notifications/cancelled", `"requestId":`+h))
			}},
			"progress": {"2", func(h string) string {
				return f.own(t, old(own, "notifications/progress", `"progressToken":`+h+`,"progress":1`))
			}},
			"a request without a session, ended": {"1", func(h string) string {
				status, body := f.newest(t, "notifications/cancelled", `"requestId":`+h, `{}`)
				return fmt.Sprint(status, body)
			}},
		} {
			if own == "" && strings.Contains(what, "task") {
				continue
			}
			unknown := map[string]string{job: "none", task: "none", question: "p1.none"}[tt.handle]
			a, b := tt.send(tt.handle), tt.send(cmp.Or(unknown, "9"))
			if unknown != "" {
				a, b = strings.ReplaceAll(a, tt.handle, "H"), strings.ReplaceAll(b, unknown, "H")
			}
			if a != b {
				t.Errorf("%s, %s: %s; of one that is not there: %s", who, what, a, b)
			}
		}
		if body := f.tool(t, "jobs__list", `{}`); !strings.Contains(body, `"jobs":[]`) {
			t.Errorf("%s has jobs: %s", who, body)
		}
		// The state of another's approval approves nothing, theirs or another's.
		for _, h := range []string{approval, "none"} {
			_, body := f.newest(t, "tools/call", `"name":"files__write","arguments":{},"requestState":"`+h+`"`+fmt.Sprintf(answers, "approval"), asked)
			if !strings.Contains(body, "refused_approve") {
				t.Errorf("%s brings the approval %.10s: %s", who, h, body)
			}
		}
	}
	if n := s.granted("files__"); n != granted {
		t.Errorf("%d calls were granted to strangers", n-granted)
	}
	select {
	case <-s.ended:
		t.Error("something of Alice's has ended")
	case <-time.After(50 * time.Millisecond):
	}
	if body := alice.tool(t, "jobs__status", `{"job_id":"`+job+`"}`); !strings.Contains(body, "running") {
		t.Errorf("Alice's job: %s", body)
	}
	_, body = alice.newest(t, "tools/call", `"name":"files__write","arguments":{},"requestState":"`+approval+`"`+fmt.Sprintf(answers, "approval"), asked)
	if !strings.Contains(body, `"write"`) {
		t.Errorf("Alice's approval: %s", body)
	}
	if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "alice"}); err != nil { // the gateway would wait for what is under way
		t.Fatal(err)
	}
	for range 3 {
		ends(t, "what Alice has under way", s.ended)
	}
}

// newest sends a request without a session, of a client that declares something.
func (f front) newest(t *testing.T, method, params, declares string) (status int, body string) {
	t.Helper()
	head := `{"jsonrpc":"2.0","id":1,`
	if strings.HasPrefix(method, "notifications/") {
		head = `{"jsonrpc":"2.0",`
	}
	body = head + `"method":"` + method + `","params":{` + params + `,` + strings.Replace(clientMeta, `Capabilities":{}`, `Capabilities":`+declares, 1) + `}}`
	status, _, body = f.send(t, way{method, "POST", body, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", gate.MustDoc(body).At("/params/name").Text()}})
	return status, body
}

// tool calls a tool, and own sends what is of a session of one's own; what comes back is whole but for ids of calls.
func (f front) tool(t *testing.T, name, args string) string {
	t.Helper()
	_, body := f.newest(t, "tools/call", `"name":"`+name+`","arguments":`+args, `{}`)
	return body
}

func (f front) own(t *testing.T, w way) string {
	t.Helper()
	status, _, body := f.send(t, w)
	return fmt.Sprint(status, body)
}
