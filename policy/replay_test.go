package policy_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/policy"
)

// What a tool is decides as it does in a gateway; a call that cannot be decided counts
// for nothing, but the session has seen what it had seen then.
func TestReplayOfTools(t *testing.T) {
	const rules = `allow contains "all" if true

labels contains "read" if input.tool.name == "a__read"

deny contains "it has read" if "read" in input.session.labels

deny contains "destructive" if input.tool.annotations.destructiveHint

deny contains "native" if {
	input.tool.name == "a__sandboxed"
	not input.tool.sandboxed
}

deny contains "uses more" if input.tool.capabilities.kv

deny contains "not approved" if {
	input.tool.name == "a__pinned"
	not input.tool.pinned
}

deny contains "found" if count(input.tool.findings) > 0`
	with := func(name string, set func(*gate.Tool)) policy.RecordedCall {
		tool := newTool(name)
		set(tool)
		return policy.RecordedCall{Tool: name, Args: gate.MustDoc(`{}`), Definition: tool, Effect: gate.Allow}
	}
	without := func(name string, then gate.Effect) policy.RecordedCall {
		return policy.RecordedCall{Tool: name, Args: gate.MustDoc(`{}`), Missing: "its definition", Effect: then}
	}
	after := without("a__other", "")
	after.Missing = ""
	answered := without("a__read", gate.Ask)
	answered.Result = gate.MustDoc(`{"content":[]}`)
	tests := map[string]struct {
		calls []policy.RecordedCall
		want  []gate.Effect
		last  string // reason of the last decision; "" for any
	}{
		"annotations deny": {
			calls: []policy.RecordedCall{with("a__x", func(t *gate.Tool) { t.Annotations = gate.MustDoc(`{"destructiveHint":true}`) })},
			want:  []gate.Effect{gate.Deny}, last: "destructive",
		},
		"a sandboxed tool is one": {
			calls: []policy.RecordedCall{with("a__sandboxed", func(t *gate.Tool) { t.Sandboxed = true })},
			want:  []gate.Effect{gate.Allow},
		},
		"capabilities deny": {
			calls: []policy.RecordedCall{with("a__sandboxed", func(t *gate.Tool) { t.Sandboxed, t.Capabilities = true, gate.MustDoc(`{"kv":true}`) })},
			want:  []gate.Effect{gate.Deny}, last: "uses more",
		},
		"an approved definition is one": {
			calls: []policy.RecordedCall{with("a__pinned", func(t *gate.Tool) { t.Pinned = true })},
			want:  []gate.Effect{gate.Allow},
		},
		"findings deny": {
			calls: []policy.RecordedCall{with("a__x", func(t *gate.Tool) { t.Findings = []string{"hidden text"} })},
			want:  []gate.Effect{gate.Deny}, last: "found",
		},
		"each call has the definition of its time": {
			calls: []policy.RecordedCall{with("a__x", func(*gate.Tool) {}), with("a__x", func(t *gate.Tool) { t.Findings = []string{"hidden text"} })},
			want:  []gate.Effect{gate.Allow, gate.Deny}, last: "found",
		},
		"what is not known is not decided": {
			calls: []policy.RecordedCall{without("a__sandboxed", gate.Deny)},
			want:  []gate.Effect{""}, last: "its definition",
		},
		"what passed then was seen": {
			calls: []policy.RecordedCall{without("a__read", gate.Allow), after},
			want:  []gate.Effect{"", gate.Deny}, last: "it has read",
		},
		"what a person let pass was seen": {
			calls: []policy.RecordedCall{answered, after},
			want:  []gate.Effect{"", gate.Deny}, last: "it has read",
		},
		"what was refused then was not seen": {
			calls: []policy.RecordedCall{without("a__read", gate.Deny), after},
			want:  []gate.Effect{"", gate.Allow},
		},
	}
	e := load(t, user(rules), policy.Options{Packs: []string{}})
	o := policy.ReplayOptions{Sessions: func() gate.Sessions { return session.New(session.Options{}) }}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			who := &gate.Principal{Owner: gate.Owner{ID: "alice"}}
			r, err := e.Replay(t.Context(), o, policy.RecordedSession{ID: "1", Who: who, Calls: tt.calls})
			if err != nil {
				t.Fatal(err)
			}
			var got []gate.Effect
			for _, d := range r.Decisions {
				got = append(got, d.Effect)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("decided %q, want %q: %+v", got, tt.want, r.Decisions)
			}
			if last := r.Decisions[len(r.Decisions)-1].Reasons; tt.last != "" && !slices.Equal(last, []string{tt.last}) {
				t.Errorf("for %q, want %q", last, tt.last)
			}
		})
	}
}
