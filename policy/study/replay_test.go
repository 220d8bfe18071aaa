package study_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

type testOfReplay struct {
	calls []study.RecordedCall
	want  []gate.Effect
	last  string // reason of the last decision; "" for any
}

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

deny contains "found" if count(input.tool.findings) > 0

deny contains "a number" if {
	input.tool.name == "a__n"
	input.arguments.n > 1
}

obligations contains {"approve": true} if {
	input.tool.name == "a__asks"
	input.arguments.n > 1
}

obligations contains {"approve": true} if input.tool.name in {"a__asked", "a__asked_read"}

labels contains "read" if input.tool.name == "a__asked_read"

labels contains "read" if {
	input.tool.name == "a__maybe"
	input.arguments.n > 1
}`
	itsDefinition := map[string]string{"input.tool.sandboxed": "its definition", "input.tool.annotations": "its definition", "input.tool.findings": "its definition", "input.tool.capabilities": "its definition"}
	with := func(name string, set func(*gate.Tool)) study.RecordedCall {
		tool := newTool(name)
		set(tool)
		return study.RecordedCall{Tool: name, Args: gate.MustDoc(`{}`), Definition: tool, Effect: gate.Allow}
	}
	without := func(name string, then gate.Effect) study.RecordedCall {
		return study.RecordedCall{Tool: name, Args: gate.MustDoc(`{}`), Unknown: itsDefinition, Effect: then}
	}
	after := without("a__other", "")
	after.Unknown = nil
	answered := without("a__read", gate.Ask)
	answered.Result = gate.MustDoc(`{"content":[]}`)
	approved := with("a__asked_read", func(*gate.Tool) {})
	approved.Approved = true
	tests := map[string]testOfReplay{
		"annotations deny": {
			calls: []study.RecordedCall{with("a__x", func(t *gate.Tool) { t.Annotations = gate.MustDoc(`{"destructiveHint":true}`) })},
			want:  []gate.Effect{gate.Deny}, last: "destructive",
		},
		"a sandboxed tool is one": {
			calls: []study.RecordedCall{with("a__sandboxed", func(t *gate.Tool) { t.Sandboxed = true })},
			want:  []gate.Effect{gate.Allow},
		},
		"capabilities deny": {
			calls: []study.RecordedCall{with("a__sandboxed", func(t *gate.Tool) { t.Sandboxed, t.Capabilities = true, gate.MustDoc(`{"kv":true}`) })},
			want:  []gate.Effect{gate.Deny}, last: "uses more",
		},
		"an approved definition is one": {
			calls: []study.RecordedCall{with("a__pinned", func(t *gate.Tool) { t.Pinned = true })},
			want:  []gate.Effect{gate.Allow},
		},
		"findings deny": {
			calls: []study.RecordedCall{with("a__x", func(t *gate.Tool) { t.Findings = []string{"hidden text"} })},
			want:  []gate.Effect{gate.Deny}, last: "found",
		},
		"each call has the definition of its time": {
			calls: []study.RecordedCall{with("a__x", func(*gate.Tool) {}), with("a__x", func(t *gate.Tool) { t.Findings = []string{"hidden text"} })},
			want:  []gate.Effect{gate.Allow, gate.Deny}, last: "found",
		},
		"what is not known is not decided": {
			calls: []study.RecordedCall{without("a__sandboxed", gate.Deny)},
			want:  []gate.Effect{""}, last: "its definition",
		},
		"what passed then was seen": {
			calls: []study.RecordedCall{without("a__read", gate.Allow), after},
			want:  []gate.Effect{"", gate.Deny}, last: "it has read",
		},
		"what a person let pass was seen": {
			calls: []study.RecordedCall{answered, after},
			want:  []gate.Effect{"", gate.Deny}, last: "it has read",
		},
		"what a person approved then was seen, and is asked about": {
			calls: []study.RecordedCall{approved, after},
			want:  []gate.Effect{gate.Ask, gate.Deny}, last: "it has read",
		},
		"what waited then was not seen": {
			calls: []study.RecordedCall{with("a__asked_read", func(*gate.Tool) {}), after},
			want:  []gate.Effect{gate.Ask, gate.Allow},
		},
		"what was refused then was not seen": {
			calls: []study.RecordedCall{without("a__read", gate.Deny), after},
			want:  []gate.Effect{"", gate.Allow},
		},
	}
	bare := func(name string, then gate.Effect) study.RecordedCall {
		return study.RecordedCall{Tool: name, Effect: then, Unknown: map[string]string{"input.arguments": "arguments", "input.provenance": "arguments", "input.carried": "arguments"}}
	}
	tests["arguments do not matter"] = testOfReplay{[]study.RecordedCall{bare("a__x", gate.Deny)}, []gate.Effect{gate.Allow}, "all"}
	tests["arguments matter"] = testOfReplay{[]study.RecordedCall{bare("a__n", gate.Deny)}, []gate.Effect{""}, "arguments"}
	tests["arguments matter to whether a person is asked"] = testOfReplay{[]study.RecordedCall{bare("a__asks", gate.Allow)}, []gate.Effect{""}, "arguments"}
	tests["a person is asked in any case"] = testOfReplay{[]study.RecordedCall{bare("a__asked", gate.Allow)}, []gate.Effect{gate.Ask}, "all"}
	tests["labels do not wait for arguments"] = testOfReplay{[]study.RecordedCall{bare("a__read", gate.Allow), bare("a__x", gate.Allow)}, []gate.Effect{gate.Allow, gate.Deny}, "it has read"}
	tests["a label that may be given is given"] = testOfReplay{[]study.RecordedCall{bare("a__maybe", gate.Allow), bare("a__x", gate.Allow)}, []gate.Effect{gate.Allow, gate.Deny}, "it has read"}
	e := load(t, user(rules), policy.Options{Packs: []string{}})
	o := study.ReplayOptions{Sessions: func() gate.Sessions { return session.New(session.Options{}) }}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			who := &gate.Principal{Owner: gate.Owner{ID: "alice"}}
			r, err := study.Replay(t.Context(), e, o, study.RecordedSession{ID: "1", Who: who, Calls: tt.calls})
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

// TestReplayOfDigests: a policy without rules of its own decides without arguments.
func TestReplayOfDigests(t *testing.T) {
	tool := newTool("local__diff")
	tool.Sandboxed = true
	e := load(t, nil, policy.Options{Packs: []string{"grants", "flow"}})
	r, err := study.Replay(t.Context(), e, study.ReplayOptions{Sessions: func() gate.Sessions { return session.New(session.Options{}) }}, study.RecordedSession{
		ID: "1", Who: alice, Calls: []study.RecordedCall{{Tool: "local__diff", Definition: tool, Unknown: map[string]string{"input.arguments": "arguments"}}},
	})
	if err != nil || r.Decisions[0].Effect != gate.Allow || r.Decisions[0].Reasons[0] != "the tool is sandboxed and holds no capability" {
		t.Errorf("%+v, %v", r, err)
	}
}
