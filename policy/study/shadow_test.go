package study_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// endless does not end by itself.
const endless = `deny contains "never" if {
	some i in numbers.range(1, 1000000)
	some j in numbers.range(1, 1000000)
	i * j == -1
}`

// A call of files__read that was decided on, as it is recorded.
func done(d gate.Decision, args string) *gate.Record {
	code := "ok"
	if d.Effect == gate.Deny || d.Effect == "" {
		code = "refused_authorize"
	}
	return &gate.Record{
		Event: gate.Done, Code: code, Decision: d, Tool: newTool("files__read"),
		Call: &gate.Call{ID: "c1", Action: gate.CallTool, Name: "files__read", Who: gate.Local(), Args: gate.MustDoc(args)},
	}
}

// compared has a shadow with the given rules decide on records.
func compared(t *testing.T, rules string, o policy.Options, records ...*gate.Record) ([]study.Difference, study.ShadowCounts) {
	t.Helper()
	var found []study.Difference
	s := study.NewShadow(func(d study.Difference) { found = append(found, d) })
	o.Packs = []string{}
	s.Set(load(t, user(rules), o))
	for _, r := range records {
		if err := s.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	end() // what waits is decided on at the end
	s.Run(ctx)
	return found, s.Counts()
}

func TestShadow(t *testing.T) {
	allowed := gate.Decision{Effect: gate.Allow, Reasons: []string{"granted"}, Revision: "first"}
	denied := gate.Decision{Effect: gate.Deny, Reasons: []string{"no"}}
	tests := map[string]struct {
		rules    string
		timeout  time.Duration
		record   *gate.Record
		differs  []string // nil: nothing is reported
		effect   gate.Effect
		reason   string
		err      string
		compared uint64
	}{
		"it agrees, in its own words":     {rules: `allow contains "other words"`, record: done(allowed, "{}"), compared: 1},
		"it would deny":                   {rules: `deny contains "not now"`, record: done(allowed, "{}"), differs: []string{"effect"}, effect: gate.Deny, reason: "not now", compared: 1},
		"it would allow":                  {rules: `allow contains "now"`, record: done(denied, "{}"), differs: []string{"effect"}, effect: gate.Allow, reason: "now", compared: 1},
		"it would ask":                    {rules: "allow contains \"all\" if true\n\nask contains \"a person\"", record: done(allowed, "{}"), differs: []string{"effect"}, effect: gate.Ask, reason: "a person", compared: 1},
		"it would deny by the arguments":  {rules: `deny contains "etc" if startswith(input.arguments.path, "/etc/")`, record: done(allowed, `{"path":"/etc/passwd"}`), differs: []string{"effect"}, effect: gate.Deny, reason: "etc", compared: 1},
		"it would oblige":                 {rules: "allow contains \"x\"\n\nobligations contains {\"type\": \"max_result\", \"bytes\": 9}", record: done(allowed, "{}"), differs: []string{"obligations"}, effect: gate.Allow, reason: "x", compared: 1},
		"it would label the session":      {rules: "allow contains \"x\"\n\nlabels contains \"secret\"", record: done(allowed, "{}"), differs: []string{"labels"}, effect: gate.Allow, reason: "x", compared: 1},
		"it fails":                        {rules: `allow contains "x" if to_number(input.tool.name) == 1`, record: done(allowed, "{}"), differs: []string{"effect"}, effect: gate.Deny, err: "to_number", compared: 1},
		"it has no end":                   {rules: endless, timeout: 20 * time.Millisecond, record: done(allowed, "{}"), differs: []string{"effect"}, effect: gate.Deny, err: "no decision within the 20000 steps", compared: 1},
		"the policy in use failed":        {rules: `allow contains "x"`, record: done(gate.Decision{}, "{}"), differs: []string{"effect"}, effect: gate.Allow, reason: "x", compared: 1},
		"a call that was not decided on":  {rules: `deny contains "x"`, record: &gate.Record{Event: gate.Done, Code: "refused_lookup", Call: &gate.Call{}}},
		"a call refused before":           {rules: `deny contains "x"`, record: &gate.Record{Event: gate.Done, Code: "cancelled", Call: &gate.Call{}, Tool: newTool("files__read")}},
		"a call that is only granted yet": {rules: `deny contains "x"`, record: &gate.Record{Event: gate.Granted, Decision: allowed, Call: &gate.Call{}, Tool: newTool("files__read")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, counts := compared(t, tt.rules, policy.Options{Timeout: tt.timeout}, tt.record)
			want := study.ShadowCounts{Compared: tt.compared, Differed: uint64(min(1, len(tt.differs)))}
			if counts != want {
				t.Errorf("counts %+v, want %+v", counts, want)
			}
			if tt.differs == nil {
				if len(found) > 0 {
					t.Errorf("reported %+v, want nothing", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("reported %+v, want one difference", found)
			}
			d := found[0]
			if diff := cmp.Diff(tt.differs, d.Differs); diff != "" || d.Shadow.Effect != tt.effect || strings.Join(d.Shadow.Reasons, "") != tt.reason {
				t.Errorf("reported %+v, want %s for %q by %v", d, tt.effect, tt.reason, tt.differs)
			}
			if tt.err == "" && d.Err != nil || tt.err != "" && (d.Err == nil || !strings.Contains(d.Err.Error(), tt.err)) {
				t.Errorf("error %v, want one with %q", d.Err, tt.err)
			}
			if d.Query.Call.ID != "c1" || d.Shadow.Revision == "" {
				t.Errorf("the difference does not name the call or the policy: %+v", d)
			}
		})
	}
}

// The way of a call waits for no shadow: what does not fit into the queue is
// dropped, and counted.
func TestAShadowIsNotWaitedFor(t *testing.T) {
	const slow = `deny contains "x" if count(numbers.range(1, 1000000)) == 0`
	tests := map[string]struct {
		calls int
		args  string
		room  uint64
	}{
		"too many calls":    {5000, "{}", 4096},
		"too large a queue": {100, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<20-11)), 64},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := study.NewShadow(func(study.Difference) {})
			s.Set(load(t, user(slow), policy.Options{}))
			r := done(gate.Decision{Effect: gate.Allow}, tt.args)
			for range tt.calls { // the queue is not emptied: Record would wait for ever
				if err := s.Record(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := s.Counts().Dropped, uint64(tt.calls)-tt.room; got != want {
				t.Errorf("%d dropped, want %d", got, want)
			}
		})
	}
}

func TestAShadowWithoutAPolicyComparesNothing(t *testing.T) {
	s := study.NewShadow(func(d study.Difference) { t.Errorf("reported %+v", d) })
	for range 5000 {
		if err := s.Record(t.Context(), done(gate.Decision{Effect: gate.Allow}, "{}")); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.Counts(); c != (study.ShadowCounts{}) {
		t.Errorf("counts %+v, want none", c)
	}
}

// A call that was decided on makes room again.
func TestAShadowHasRoomAgain(t *testing.T) {
	s := study.NewShadow(func(study.Difference) {})
	s.Set(load(t, user(`allow contains "x"`), policy.Options{Packs: []string{}}))
	r := done(gate.Decision{Effect: gate.Allow}, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<20-11)))
	ended, end := context.WithCancel(t.Context())
	end()
	for range 3 {
		for range 40 { // of 64 MiB
			if err := s.Record(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		s.Run(ended)
	}
	if c := s.Counts(); c != (study.ShadowCounts{Compared: 120}) {
		t.Errorf("counts %+v, want 120 compared and none dropped", c)
	}
}
