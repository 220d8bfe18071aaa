package gateway_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
)

// asking is a policy under which a person approves each call of mail__send.
func asking(more ...policy.Grant) gateway.Policy {
	return gateway.Policy{Options: policy.Options{
		Timeout: patience,
		Packs:   []string{"grants", "approve"},
		Grants:  append(more, policy.Grant{To: []string{"*"}, Tools: []string{"mail__send"}}),
	}}
}

func startAsking(t *testing.T, o approval.Options) (*gateway.Gateway, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	g := start(t, gateway.Config{
		Audit: log, AuditOptions: audit.Options{Node: "n1"}, Policy: asking(), Approvals: &o,
		Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}},
	})
	return g, log
}

// pending waits until a call waits for a person.
func pending(t *testing.T, g *gateway.Gateway) approval.Request {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if all := g.Approvals().Pending(t.Context()); len(all) > 0 {
			return all[0]
		}
	}
	t.Fatal("no call waits")
	return approval.Request{}
}

// A call waits until an operator approves it, and the log tells who did.
func TestApproval(t *testing.T) {
	g, log := startAsking(t, approval.Options{Node: "n1"})
	done := make(chan error, 1)
	go func() {
		_, err := call(g, "mail__send", `{"text":"hi"}`)
		done <- err
	}()
	r := pending(t, g)
	if got := r.Question.Call.Args.String(); got != `{"text":"hi"}` || !slices.Equal(r.Question.Reasons, []string{"approve: the tool does more than read"}) {
		t.Errorf("asked %s, %q", got, r.Question.Reasons)
	}
	if _, err := g.Approvals().Decide(t.Context(), r.ID, gate.Approved, "cli:local", ""); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range audit.Read(t.Context(), log, audit.Filter{Tool: "mail__send"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Approval.ID != r.ID || e.Approval.Binding != r.Question.Binding() {
			t.Errorf("%s: approval %+v", e.Event, e.Approval)
		}
		got = append(got, strings.TrimSpace(string(e.Event)+" "+e.Approval.State+" "+e.Approval.By))
	}
	want := []string{"approval requested", "approval approved cli:local", "approval redeemed cli:local", "granted  cli:local", "done  cli:local"}
	if !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
}

// A policy that is loaded while a call waits holds for it.
func TestPolicyChangesMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		policy gateway.Policy
		code   string
	}{
		"to one that asks, too": {asking(policy.Grant{To: []string{"bob"}, Tools: []string{"x__y"}}), "refused_approve"},
		"to one that denies":    {granting("other__*"), "refused_authorize"},
		"to one that allows":    {asking(policy.Grant{To: []string{"local"}, Always: []string{"mail__send"}}), "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := startAsking(t, approval.Options{})
			done := make(chan error, 1)
			go func() {
				_, err := call(g, "mail__send", `{"text":"hi"}`)
				done <- err
			}()
			r := pending(t, g)
			if err := g.SetPolicy(t.Context(), tt.policy); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Approvals().Decide(t.Context(), r.ID, gate.Approved, "cli:local", ""); err != nil {
				t.Fatal(err)
			}
			if err := <-done; gate.Code(err) != tt.code {
				t.Errorf("error %v, want %s", err, tt.code)
			}
		})
	}
}

// A shutdown does not wait for people.
func TestDrainLetsGoOfCallsThatWait(t *testing.T) {
	g, _ := startAsking(t, approval.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := call(g, "mail__send", `{"text":"hi"}`)
		done <- err
	}()
	pending(t, g)
	if err := g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; gate.Code(err) != "refused_approve" {
		t.Errorf("error %v", err)
	}
}

func TestNobodyToAsk(t *testing.T) {
	g := start(t, gateway.Config{Recorder: new(records), Policy: asking(), Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}}})
	if g.Approvals() != nil {
		t.Error("questions without Config.Approvals")
	}
	if _, err := call(g, "mail__send", `{"text":"hi"}`); gate.Code(err) != "refused_approve" {
		t.Errorf("error %v", err)
	}
	if _, err := gateway.New(context.Background(), gateway.Config{Recorder: new(records), Approvals: &approval.Options{Node: "a b"}}); err == nil {
		t.Error("a node that no id can begin with")
	}
	g, _ = startAsking(t, approval.Options{Hold: -1})
	_, err := call(g, "mail__send", `{"text":"hi"}`)
	if p, ok := errors.AsType[*gate.Pending](err); !ok || p.Remedy != "" {
		t.Errorf("error %v", err)
	}
}

// The person at the client is asked, in either protocol revision, sees what would be sent, and
// decides.
func TestApprovalByClient(t *testing.T) {
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		for decision, code := range map[string]string{"approve": "ok", "deny": "refused_approve"} {
			t.Run(era+" "+decision, func(t *testing.T) {
				g, log := startAsking(t, approval.Options{Channels: []approval.Channel{approval.Client}})
				srv := httptest.NewServer(g)
				defer srv.Close()
				var asked atomic.Int32
				c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked.Add(1)
						if !strings.Contains(r.Params.Message, "May local call send of server mail?\n- /text: \"hi\"\n") {
							t.Errorf("asked %q", r.Params.Message)
						}
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
					},
				})
				s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mail__send", Arguments: map[string]any{"text": "hi"}})
				if err != nil {
					t.Fatal(err)
				}
				if res.IsError != (code != "ok") || asked.Load() != 1 {
					t.Errorf("asked %d times, result %+v", asked.Load(), res)
				}
				var last audit.Entry
				var states []string
				for e, err := range audit.Read(t.Context(), log, audit.Filter{Tool: "mail__send"}) {
					if err != nil {
						t.Fatal(err)
					}
					if last = e; e.Event == gate.EventApproval {
						states = append(states, e.Approval.State+" "+e.Approval.By)
					}
				}
				want := []string{"requested ", "approved client", "redeemed client"}
				if code != "ok" {
					want = []string{"requested ", "denied client"}
				}
				if last.Code != code || !slices.Equal(states, want) {
					t.Errorf("code %q, approval %q, want %q and %q", last.Code, states, code, want)
				}
			})
		}
	}
}

// A client's own function gets the question. If the function fails, the call fails at once, and no
// one else is asked.
func TestApproveByFunction(t *testing.T) {
	yes := gate.Answer{Verdict: gate.Approved}
	for name, f := range map[string]func(p gate.Pending) (gate.Answer, error){
		"an error":   func(gate.Pending) (gate.Answer, error) { return yes, errors.New("no screen") },
		"a panic":    func(gate.Pending) (gate.Answer, error) { panic("no screen") },
		"no answer":  func(gate.Pending) (gate.Answer, error) { return gate.Answer{}, nil },
		"no verdict": func(gate.Pending) (gate.Answer, error) { return gate.Answer{Verdict: "yes"}, nil },
	} {
		for channels, o := range map[string]*approval.Options{"alone": nil, "with operators": {}} {
			t.Run(name+" "+channels, func(t *testing.T) {
				g := start(t, gateway.Config{
					Recorder: new(records), Policy: asking(), Approvals: o, Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}},
				})
				fails := true
				alice := &gate.Principal{Owner: gate.Owner{ID: "alice"}}
				c := g.NewClient(gateway.ClientConfig{Who: alice, Approve: func(_ context.Context, p gate.Pending) (gate.Answer, error) {
					if q := p.Asked; q == nil || q.Tool.Name.String() != "mail__send" || q.Call.Args.String() != `{"text":"hi"}` || q.Call.Who.ID != "alice" {
						t.Errorf("asked %+v", q)
					}
					if fails {
						return f(p)
					}
					return yes, nil
				}})
				_, err := c.CallTool(t.Context(), "mail__send", map[string]string{"text": "hi"})
				e, ok := errors.AsType[*gateway.Error](err)
				if !ok || e.Outcome != "refused_approve" || e.Approval != "" || e.Retryable() { // as it would be after a wait for operators
					t.Errorf("%+v", err)
				}
				fails = false
				if _, err := c.CallTool(t.Context(), "mail__send", map[string]string{"text": "hi"}); err != nil {
					t.Errorf("a later call: %v", err)
				}
			})
		}
	}
}
