package policy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
)

// An Engine is one compiled policy. It is immutable: policies that change are
// another engine. It is used from several goroutines.
type Engine struct {
	engine *engine.Engine
	labels labelling

	idle     []Problem // rules without effect
	idleAsks []Problem
	doubts   []Problem // names that may be misspelt
	compared []fields.Comparison
}

var _ gate.Authorizer = (*Engine)(nil)

func init() { engine.Of = func(e any) *engine.Engine { return e.(*Engine).engine } }

// Revision identifies the policy: a hash of the packs', files' and grants'
// content, the same wherever that content is the same.
func (e *Engine) Revision() string { return e.engine.Revision }

// Authorize decides on one call, on one host call of a sandboxed tool, or on what a
// server asks of the client. Whatever is not a decision that it understands is an error, which denies.
func (e *Engine) Authorize(ctx context.Context, q gate.Query) (gate.Decision, error) {
	return e.engine.Authorize(ctx, q)
}

// Visible returns, for each tool, whether any call of it by who could pass:
// false if nothing allows it, or something denies, whatever the arguments,
// the session and the client's name are. A tool is visible if that cannot be
// told. Verdicts are kept, so listing again costs little.
func (e *Engine) Visible(ctx context.Context, who *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return e.engine.Visible(ctx, who, tools)
}

// Offer returns the definition of a tool as who should see it: its input schema is
// narrowed to the values of an argument, or to their beginnings, without which no
// rule lets a call pass. It is the tool's own where the rules say nothing so
// exact. What it leaves out would be refused all the same. It knows what
// [Engine.Visible] has found out, and finds out nothing itself.
func (e *Engine) Offer(ctx context.Context, who *gate.Principal, tool *gate.Tool) gate.Doc {
	return e.engine.Offer(ctx, who, tool)
}

// Tracks reports whether a rule may look at where values came from, so that sessions have to
// keep that, and at input.values, so that they have to keep by which calls values came.
func (e *Engine) Tracks() (values, origins bool) {
	return e.engine.Inputs.Provenance, e.engine.Inputs.Values
}

// Labels returns what Options.Labels say of a tool, and false if they say nothing. A tool
// that carries out others, see [gate.Tool], reads and says what it was told.
func (e *Engine) Labels(t *gate.Tool) (provenance.ToolLabels, bool) { return e.labels.of(t) }

// UnusedLabels returns the patterns in Options.Labels that match none of the tools,
// sorted: what they say, they say of nothing.
func UnusedLabels(e *Engine, tools []*gate.Tool) []string {
	l := e.labels
	unused := make(map[string]bool)
	for name := range l.names {
		unused[name] = true
	}
	for _, p := range l.prefixes {
		unused[p.Pattern+"*"] = true
	}
	for _, t := range tools {
		name := t.Name.String()
		delete(unused, name)
		for _, p := range l.prefixes {
			if strings.HasPrefix(name, p.Pattern) {
				delete(unused, p.Pattern+"*")
			}
		}
	}
	return slices.Sorted(maps.Keys(unused))
}

// IdleAsks returns warnings of rules and packs that ask about what nothing allows. Such
// calls are denied, and no one is asked.
func IdleAsks(e *Engine) []Problem { return e.idleAsks }

// Idle returns warnings of rules from which no decision follows, such as those of another
// package than wasmgate to which no rule of it refers, and of misspelt ones.
func (e *Engine) Idle() []Problem { return e.idle }
