package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// twos makes "2" to 2.
type twos struct{ gate.Schema }

func (twos) Coerce(d gate.Doc) (gate.Doc, []string) {
	if s := d.String(); strings.Contains(s, `"2"`) {
		return gate.MustDoc(strings.ReplaceAll(s, `"2"`, `2`)), []string{"/path"}
	}
	return d, nil
}

func (twos) Takes() string { return "{path: integer}" }

// blind shows no tool.
type blind struct{ gate.Authorizer }

func (blind) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return make([]bool, len(tools)), nil
}

func (blind) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

// Everything after the lookup has to do with the coerced arguments: the decision, what a
// person is asked, the server, the record. Those for a tool that is hidden stay.
func TestCoercedArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		mode gate.InputMode
		see  bool
		want string
	}{
		"coerce":   {"", true, `{"path":2}`},
		"enforce":  {"enforce", true, `{"path":"2"}`},
		"warn":     {"warn", true, `{"path":"2"}`},
		"a hidden": {"", false, `{"path":"2"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Input, r.tool.Output = twos{r.tool.Input}, nil
			decided, asked, sent := "", "", ""
			r.decide = func(q gate.Query) gate.Decision {
				decided = q.Call.Args.String()
				return gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Approve{}}}
			}
			r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
				sent = c.Args.String()
				return answer(`{}`), nil
			}
			parts := r.parts()
			parts.Inputs = func(*gate.Tool) gate.InputMode { return tt.mode }
			parts.Approver = approverFunc(func(_ context.Context, q gate.Question) (gate.Approval, error) {
				asked = q.Call.Args.String()
				return gate.Approval{ID: "a", By: "test"}, nil
			})
			if !tt.see {
				parts.Authorizer = blind{parts.Authorizer}
			}
			c := newCall()
			c.Args = gate.MustDoc(`{"path":"2"}`)
			if _, err := newGate(t, parts).Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			recorded := r.done(t)
			if got := recorded.Call.Args.String(); decided != tt.want || asked != tt.want || sent != tt.want || got != tt.want {
				t.Errorf("decided on %s, asked about %s, sent %s, recorded %s, want %s", decided, asked, sent, got, tt.want)
			}
			if (len(recorded.Findings) == 1) != (tt.want == `{"path":2}`) {
				t.Errorf("found %v", recorded.Findings)
			}
		})
	}
}
