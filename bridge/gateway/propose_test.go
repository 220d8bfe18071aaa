package gateway_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/policy"
)

// proposing is a gateway with the tool that proposes calls.
func proposing(t *testing.T, o approval.Options, more ...policy.Grant) *gateway.Gateway {
	t.Helper()
	return start(t, gateway.Config{
		Recorder: new(records), Policy: asking(more...), Approvals: &o, Propose: true, Catalog: gateway.CatalogBeside,
		Functions: map[string][]options.LocalTool{"mail": {tool("send", nil), tool("hidden", nil)}},
	})
}

const twoMails = `{"calls":[{"tool":"mail__send","arguments":{"text":"one"}},{"tool":"mail__send","arguments":{"text":"two"}}]}`

// One question is asked about a set, by the client in either revision, and each of its calls passes once.
func TestProposalByClient(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			g := proposing(t, approval.Options{Channels: []approval.Channel{approval.Client}})
			srv := httptest.NewServer(g)
			defer srv.Close()
			var asked atomic.Int32
			decision := "deny"
			c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					set := strings.Contains(r.Params.Message, "May local make these 2 calls, each once?\n1. Call send of server mail\n- /text: \"one\"\n")
					if again := strings.Contains(r.Params.Message, "May local call send"); set == again {
						t.Errorf("asked %q", r.Params.Message)
					}
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
				},
			})
			s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			does := func(name, args string, passes bool, questions int32) {
				t.Helper()
				before := asked.Load()
				var in map[string]any
				if err := json.Unmarshal([]byte(args), &in); err != nil {
					t.Fatal(err)
				}
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
				if err != nil {
					t.Fatal(err)
				}
				if res.IsError == passes || asked.Load()-before != questions {
					t.Errorf("%s %s: asked %d times, result %+v", name, args, asked.Load()-before, res)
				}
			}
			does("gateway__propose", twoMails, false, 1)
			decision = "approve"
			does("gateway__propose", strings.Replace(twoMails, "two", "2", 1), true, 1)
			decision = "deny"
			does("mail__send", `{"text":"two"}`, false, 1)
			does("mail__send", `{"text":"one"}`, true, 0)
			does("mail__send", `{"text":"one"}`, false, 1)
			does("catalog__call", `{"tool":"mail__send","arguments":{"text":"2"}}`, true, 0)
		})
	}
}

// The operator answers for a set, and what has changed since is asked about anew.
func TestProposalByOperator(t *testing.T) {
	g := proposing(t, approval.Options{Hold: -1}, policy.Grant{To: []string{"*"}, Tools: []string{"mail__free"}})
	approve := func(args string) {
		t.Helper()
		if _, err := call(g, "gateway__propose", args); gate.Code(err) != "refused_approve" {
			t.Fatalf("error %v", err)
		}
		r := pending(t, g)
		if i := r.Question.Inquiry(); !i.Set || len(i.Calls) != 2 {
			t.Errorf("asked %+v", i)
		}
		if _, err := g.Approvals().Decide(t.Context(), r.ID, gate.Approved, "cli:local", ""); err != nil {
			t.Fatal(err)
		}
		res, err := call(g, "gateway__propose", args)
		if err != nil || !strings.Contains(res.Doc.String(), `"structuredContent":{"approved":2,"calls":2}`) {
			t.Fatalf("%s, %v", res.Doc, err)
		}
	}
	approve(twoMails)
	if _, err := call(g, "mail__send", `{"text":"two"}`); err != nil {
		t.Error(err)
	}
	if err := g.SetPolicy(t.Context(), asking(policy.Grant{To: []string{"bob"}, Tools: []string{"x__y"}})); err != nil {
		t.Fatal(err)
	}
	if _, err := call(g, "mail__send", `{"text":"one"}`); gate.Code(err) != "refused_approve" {
		t.Errorf("under another policy: %v", err)
	}
}

// A proposal with a call that would be refused is refused, with the reason, and no one is asked.
func TestRefusedProposals(t *testing.T) {
	g := proposing(t, approval.Options{Hold: -1})
	for args, want := range map[string]string{
		`{"calls":[{"tool":"mail__send","arguments":{"text":"a"}},{"tool":"mail__hidden"}]}`: "call 2 of the list, mail__hidden: ",
		`{"calls":[{"tool":"mail__nothing"}]}`:                                               "no such tool",
		`{"calls":[{"tool":"gateway__propose","arguments":{"calls":[]}}]}`:                   "not called by another tool",
		`{"calls":[{"tool":"catalog__call","arguments":{"tool":"mail__send"}}]}`:             "not called by another tool",
		`{"calls":[]}`: "calls",
		`{"calls":[` + strings.Join(slices.Repeat([]string{`{"tool":"mail__send"}`}, 21), ",") + `]}`: "calls",
	} {
		if _, err := call(g, "gateway__propose", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if all := g.Approvals().Pending(t.Context()); len(all) > 0 {
		t.Errorf("asked %+v", all[0].Question.Inquiry())
	}
	free := proposing(t, approval.Options{Hold: -1}, policy.Grant{To: []string{"*"}, Always: []string{"mail__send"}})
	if res, err := call(free, "gateway__propose", twoMails); err != nil || !strings.Contains(res.Doc.String(), `"approved":0`) {
		t.Errorf("calls that need no approval: %s, %v", res.Doc, err)
	}
}

// The tool is offered where it is wanted, and at once.
func TestProposeIsOffered(t *testing.T) {
	offered := func(g *gateway.Gateway) bool {
		tools, err := g.NewClient(gateway.ClientConfig{}).Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(tools, func(t *gate.Tool) bool { return t.Name.String() == "gateway__propose" })
	}
	o := &approval.Options{}
	c := gateway.Config{Recorder: new(records), Policy: asking(), Approvals: o, Functions: map[string][]options.LocalTool{"mail": {tool("send", nil)}}}
	g := start(t, c)
	for _, on := range []bool{false, true, false} {
		if c.Propose = on; on != offered(g) {
			if err := g.Reconfigure(t.Context(), c, nil); err != nil {
				t.Fatal(err)
			}
		}
		if offered(g) != on {
			t.Errorf("offered: %v", !on)
		}
	}
	c.Functions["gateway"], c.Propose = c.Functions["mail"], true
	if _, err := gateway.New(t.Context(), c); err == nil {
		t.Error("another server has the id")
	}
}
