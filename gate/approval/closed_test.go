package approval_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

// TestClosedByTheClient: an answer that no person can have given leaves the question to the other
// channels for the whole hold, in both ways in which clients are asked.
func TestClosedByTheClient(t *testing.T) {
	const hold = 55 * time.Second
	const soon, late = 499 * time.Millisecond, 500 * time.Millisecond
	for name, tt := range map[string]struct {
		client, version string
		answer          gate.Answer
		after           time.Duration
		closed          string // "" if a person has answered
		want            string
	}{
		"declined at once":           {"x", "1", gate.Answer{Verdict: gate.Denied, Unfilled: true}, 0, "declined", ""},
		"declined soon":              {"x", "1", gate.Answer{Verdict: gate.Denied, Unfilled: true}, soon, "declined", ""},
		"dismissed soon":             {"x", "1", gate.Answer{Verdict: gate.Dismissed, Unfilled: true}, soon, "dismissed", ""},
		"accepted soon":              {"x", "1", gate.Answer{Verdict: gate.Approved, Unfilled: true}, soon, "accepted", ""},
		"declined by a person":       {"x", "1", gate.Answer{Verdict: gate.Denied, Unfilled: true}, late, "", "the client declined this call"},
		"dismissed by a person":      {"x", "1", gate.Answer{Verdict: gate.Dismissed, Unfilled: true}, late, "", "waits for approval"},
		"accepted by a person":       {"x", "1", gate.Answer{Verdict: gate.Approved, Unfilled: true}, late, "", "approved"},
		"a form filled in at once":   {"x", "1", gate.Answer{Verdict: gate.Denied}, 0, "", "a person has denied this call"},
		"Codex declines late":        {"codex-mcp-client", "0.171.0", gate.Answer{Verdict: gate.Denied, Unfilled: true}, time.Second, "declined", ""},
		"Codex, another version":     {"codex-mcp-client", "7.0.0", gate.Answer{Verdict: gate.Denied, Unfilled: true}, time.Second, "", "the client declined this call"},
		"Codex dismisses late":       {"codex-mcp-client", "0.171.0", gate.Answer{Verdict: gate.Dismissed, Unfilled: true}, time.Second, "", "waits for approval"},
		"Claude Code dismisses late": {"claude-code", "2.1.332", gate.Answer{Verdict: gate.Dismissed, Unfilled: true}, time.Second, "dismissed", ""},
		"Claude Code declines late":  {"claude-code", "2.1.332", gate.Answer{Verdict: gate.Denied, Unfilled: true}, time.Second, "", "the client declined this call"},
	} {
		for _, way := range []string{"asked meanwhile", "asked by the answer", "no other channel"} {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					channels := []approval.Channel{approval.Client, approval.CLI}
					if way == "no other channel" {
						channels = channels[:1]
					}
					q, _ := newQueue(t, approval.Options{Channels: channels})
					named := func(q *gate.Question) { q.Call.ClientName, q.Call.ClientVersion = tt.client, tt.version }
					var took time.Duration
					call := func() error {
						start := time.Now()
						_, err := q.Approve(t.Context(), ask("c1", named, func(q *gate.Question) {
							q.Call.Client = &gatetest.Client{OnApprove: func(context.Context, gate.Pending) (gate.Answer, error) {
								time.Sleep(tt.after)
								return tt.answer, nil
							}}
						}))
						took = time.Since(start) - tt.after
						return err
					}
					if way == "asked by the answer" {
						call = func() error {
							id := waits(t, q, ask("c1", named))
							time.Sleep(tt.after)
							start := time.Now()
							_, err := q.Approve(t.Context(), ask("c1", named, func(q *gate.Question) {
								q.Call.Brought.Approval = &gate.Answered{ID: id, Answer: tt.answer}
							}))
							took = time.Since(start)
							return err
						}
					}
					err := call()
					text := "approved"
					if err != nil {
						text = err.Error()
					}
					if tt.closed == "" {
						if !strings.HasPrefix(text, tt.want) || took != 0 {
							t.Errorf("%s after %s, want %s", text, took, tt.want)
						}
						return
					}
					held := hold
					if way == "no other channel" {
						held = 0
					} else if way == "asked meanwhile" {
						held -= tt.after
					}
					if want := "the client " + tt.closed + " the question without asking a person; the call waits for approval"; !strings.HasPrefix(text, want) || took != held {
						t.Errorf("%s after %s, want %s after %s", text, took, want, held)
					}
					if all := q.Pending(t.Context()); len(all) != 1 || all[0].Closed != tt.closed {
						t.Errorf("the list is %+v", all)
					}
					if way == "no other channel" {
						return
					}
					go func() {
						time.Sleep(10 * time.Second)
						decide(t, q, q.Pending(context.Background())[0].ID, gate.Approved)
					}()
					if err := call(); err != nil {
						t.Errorf("approved by an operator meanwhile: %v", err)
					}
				})
			})
		}
	}
}
