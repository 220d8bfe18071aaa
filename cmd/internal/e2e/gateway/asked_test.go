//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testAsked has people approve calls at their clients: in the middle of a call
// (2025-11-25), and by the answer to it (2026-07-28); over HTTP, and over the
// stdio of a process that relays to the gateway.
func testAsked(t *testing.T, p *e2e.Program) {
	up := &e2e.Stub{Tools: `[{"name":"send","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "")
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {packs: [grants, approve], timeout: 5s}\nservers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	timelimit.Wait(t, "the server is ready", func() bool { return strings.Contains(pl.Must("tools", "--all"), "up__send") })
	info, err := os.Stat(pl.File("state/secret"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("the secret: %+v, %v", info, err)
	}

	var clients []*asking
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		clients = append(clients,
			newAsking(pl, "HTTP "+revision, revision, &mcp.StreamableClientTransport{Endpoint: gw.URL}),
			newAsking(pl, "stdio "+revision, revision, &mcp.CommandTransport{
				Command: pl.Command(context.WithoutCancel(t.Context()), p.Path, pl.Args("serve", "--stdio")...),
			}))
	}
	for i, c := range clients {
		c.says("approve")
		c.call(t, i, "fine")
		if asked := c.asked(); len(asked) != 1 || !strings.Contains(asked[0], fmt.Sprintf(`call send of server up?
- /n: %d

Why you are asked: approve: the tool does more than read`, i)) {
			t.Errorf("%s asked %q", c.name, asked)
		}
		c.says("deny")
		c.call(t, 100+i, "refused: a person has denied this call")
		c.says("")
		c.call(t, 200+i, "refused: waits for approval")
	}
	askAtOnce(t, clients)
	want := len(clients) * 2
	if seen := len(up.Calls("send")); seen != want {
		t.Errorf("the server saw %d calls, want %d", seen, want)
	}
	forgeState(t, gw.URL)
	if seen := len(up.Calls("send")); seen != want+1 {
		t.Errorf("the server saw %d calls after forged answers, want %d", seen, want+1)
	}

	c := clients[0]
	c.says("approve always for this tool")
	c.call(t, 300, "fine")
	timelimit.Wait(t, "no question is open", func() bool {
		c.asked()
		c.call(t, 301, "fine")
		return len(c.asked()) == 0
	})
	pl.Verify()
	answers := 0
	for _, e := range pl.Log() {
		if e.Event == "approval" && strings.Contains(e.Raw, `"client"`) {
			answers++
		}
	}
	if answers == 0 {
		t.Error("no answer of a client is in the audit log")
	}
}

// asking is a client with a person at it.
type asking struct {
	name    string
	session *mcp.ClientSession

	mu        sync.Mutex
	decision  string // "" dismisses the question
	questions []string
}

func newAsking(pl *e2e.Place, name, revision string, transport mcp.Transport) *asking {
	pl.T.Helper()
	a := &asking{name: name}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: a.elicit})
	var err error
	a.session, err = c.Connect(pl.T.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		pl.T.Fatal(err)
	}
	pl.T.Cleanup(func() { a.session.Close() })
	return a
}

func (a *asking) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions = append(a.questions, r.Params.Message)
	if a.decision == "" {
		time.Sleep(time.Second) // as a person: what closes a question at once leaves it to others
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": a.decision}}, nil
}

func (a *asking) says(decision string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decision = decision
}

// asked returns what the person was asked since it was last called.
func (a *asking) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.questions
	a.questions = nil
	return asked
}

// call calls the tool, whose result or refusal must begin with a text.
func (a *asking) call(t *testing.T, n int, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	res, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: "up__send", Arguments: map[string]any{"n": n}})
	if err != nil {
		t.Errorf("%s: %v", a.name, err)
		return
	}
	text, ok := "", false
	if len(res.Content) == 1 {
		var c *mcp.TextContent
		if c, ok = res.Content[0].(*mcp.TextContent); ok {
			text = c.Text
		}
	}
	if !ok || !strings.HasPrefix(text, want) || res.IsError != strings.HasPrefix(want, "refused") {
		t.Errorf("%s, call %d: %+v %q, want %q", a.name, n, res, text, want)
	}
}

// askAtOnce has every client ask about a call of its own at one time.
func askAtOnce(t *testing.T, clients []*asking) {
	t.Helper()
	var calls sync.WaitGroup
	for i, c := range clients {
		c.says("approve")
		calls.Go(func() { c.call(t, 1000+i, "fine") })
	}
	calls.Wait()
}

// forgeState brings answers with what the gateway gave for another call, with
// what it never gave, and twice; one of them is good.
func forgeState(t *testing.T, url string) {
	t.Helper()
	w := &e2e.Wire{URL: url, Stateless: true}
	call := func(params string) (res struct {
		ResultType   string
		RequestState string
		IsError      bool
		Meta         map[string]json.RawMessage `json:"_meta"`
	}) {
		t.Helper()
		msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__send",` + params + `,
			"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		_, body, err := w.Post(t.Context(), "up__send", msg)
		if err != nil {
			t.Fatal(err)
		}
		var a e2e.Answered
		if err := json.Unmarshal(body, &a); err != nil || a.Error != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if err := json.Unmarshal(a.Result, &res); err != nil {
			t.Fatal(err)
		}
		return res
	}
	asked := call(`"arguments":{"n":500}`)
	if asked.ResultType != "input_required" || asked.RequestState == "" {
		t.Fatalf("not asked: %+v", asked)
	}
	const yes = `,"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}},"requestState":`
	for _, try := range []struct{ what, params string }{
		{"other arguments", `"arguments":{"n":501}` + yes + fmt.Sprintf("%q", asked.RequestState)},
		{"a forged state", `"arguments":{"n":500}` + yes + fmt.Sprintf("%q", asked.RequestState[:len(asked.RequestState)-8]+"AAAAAAAA")},
		{"", `"arguments":{"n":500}` + yes + fmt.Sprintf("%q", asked.RequestState)},
		{"the same again", `"arguments":{"n":500}` + yes + fmt.Sprintf("%q", asked.RequestState)},
	} {
		res := call(try.params)
		refused := strings.Contains(string(res.Meta["io.github.wasmgate/refusal"]), "refused_approve")
		if res.ResultType != "complete" || res.IsError != (try.what != "") || refused != (try.what != "") {
			t.Errorf("%s: %+v", try.what, res)
		}
	}
}
