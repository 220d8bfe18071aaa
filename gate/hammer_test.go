package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// instant are collaborators that answer at once, from several goroutines. What
// they answer names the snapshot that they belong to.
type instant struct {
	tool     *gate.Tool
	decision gate.Decision
	result   gate.Result
	name     string
	mixed    *atomic.Int64 // counts what reached a collaborator of another snapshot
}

func newInstant(name string, mixed *atomic.Int64) *instant {
	ok := schemaFunc(func(gate.Doc) error { return nil })
	return &instant{
		tool:     &gate.Tool{Name: gate.ToolName{Server: "files", Tool: "read"}, Input: ok, Output: ok, Local: name},
		decision: gate.Decision{Effect: gate.Allow, Revision: name},
		result:   answer(`{"content":[{"type":"text","text":"{\"from\":\"` + name + `\"}"}],"structuredContent":{"from":"` + name + `"}}`),
		name:     name,
		mixed:    mixed,
	}
}

func (x *instant) parts() gate.Parts {
	return gate.Parts{Upstream: x, Authorizer: x, Sessions: x, Limiter: x, Sanitizer: x, Recorder: x, Snapshot: x.name}
}

func (x *instant) same(ok bool) {
	if !ok {
		x.mixed.Add(1)
	}
}

func (x *instant) Lookup(context.Context, gate.Action, string) (*gate.Tool, error) {
	return x.tool, nil
}

func (x *instant) Invoke(_ context.Context, p gate.Permit) (gate.Result, error) {
	_, tool, ok := p.Open()
	x.same(ok && tool == x.tool)
	return x.result, nil
}

func (x *instant) Features(context.Context, gate.Feature) []*gate.Tool { return []*gate.Tool{x.tool} }

func (x *instant) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	x.same(q.Tool == x.tool)
	return x.decision, nil
}

func (x *instant) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	x.same(tools[0] == x.tool)
	return []bool{true}, nil
}

func (x *instant) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

func (x *instant) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	return gate.Session{Key: k}, nil
}

func (x *instant) Admit(_ context.Context, s gate.Session, _ *gate.Call, _ gate.Labels) (gate.Session, error) {
	return s, nil
}

func (x *instant) Learn(context.Context, gate.SessionKey, gate.Lesson) error {
	return nil
}

func (x *instant) Enter(context.Context, gate.Entry) (gate.Slot, error) { return noLimits, nil }

var noLimits = new(slot)

func (x *instant) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

func (x *instant) Record(_ context.Context, r *gate.Record) error {
	x.same(r.Snapshot == x.name && r.Tool == x.tool && r.Decision.Revision == x.name)
	return nil
}

// TestSwapDuringCalls swaps the parts under calls and listings: each of them
// ends with the parts it began with.
func TestSwapDuringCalls(t *testing.T) {
	const callers, rounds = 8, 300
	var mixed atomic.Int64
	var all []*instant
	for i := range 4 {
		all = append(all, newInstant(fmt.Sprint("v", i), &mixed))
	}
	g := newGate(t, all[0].parts())
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range rounds {
				res, err := g.Do(t.Context(), newCall())
				if err != nil {
					t.Error(err)
					return
				}
				if text := res.Doc.At("/content/0/text").Text(); text != res.Doc.Get("structuredContent").String() {
					t.Errorf("result = %s", res.Doc)
				}
				if tools, err := g.Tools(t.Context(), gate.Local()); err != nil || len(tools) != 1 {
					t.Errorf("tools = %v, %v", tools, err)
				}
			}
		})
	}
	for i := range rounds {
		if err := g.Swap(all[i%len(all)].parts()); err != nil {
			t.Error(err)
		}
		if err := g.Swap(gate.Parts{}); err == nil {
			t.Error("parts without collaborators were taken")
		}
	}
	wg.Wait()
	if n := mixed.Load(); n > 0 {
		t.Errorf("%d times a call met parts of two snapshots", n)
	}
}

// TestPanicsUnderLoad: a panic in one call is the end of that call alone.
func TestPanicsUnderLoad(t *testing.T) {
	var mixed, calls atomic.Int64
	x := newInstant("v", &mixed)
	x.tool.Input = schemaFunc(func(gate.Doc) error {
		if calls.Add(1)%2 == 0 {
			panic(errors.New(internal))
		}
		return nil
	})
	g := newGate(t, x.parts())
	var wg sync.WaitGroup
	var ok, failed atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := g.Do(t.Context(), newCall()); err == nil {
					ok.Add(1)
				} else if gate.Code(err) == "refused_validate_input" {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if ok.Load() != 400 || failed.Load() != 400 {
		t.Errorf("%d calls passed and %d were refused, want 400 of each", ok.Load(), failed.Load())
	}
}
