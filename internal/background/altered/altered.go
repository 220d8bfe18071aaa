package altered

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

const (
	// maxTools bounds the tools whose results are counted.
	maxTools = 1000
	// Of the results of a tool that is named at least so many were changed, and at least one
	// in share.
	least, share = 3, 50
	// maxRules is how many rules are named.
	maxRules = 3
)

// A Tool is one whose results are changed often.
type Tool struct {
	Tool    string   `json:"tool"`    // qualified
	Results int      `json:"results"` // since the configuration was read
	Changed int      `json:"changed"` // of these
	Rules   []string `json:"rules"`   // by which, the most frequent first, three at most
	// Closed says that the tool is known not to reach outside, so that an operator can know
	// who writes what it returns.
	Closed bool `json:"closed"`
}

// String says what an operator can do about it.
func (t Tool) String() string {
	said := fmt.Sprintf("%s: %d of %d results were changed, by %s", t.Tool, t.Changed, t.Results, strings.Join(t.Rules, ", "))
	if t.Closed {
		return said + fmt.Sprintf("; if they are source that agents work on, write `sanitize: {tools: {%q: code}}`", t.Tool)
	}
	return said + "; nothing says that it returns no texts of strangers: see docs/how-to/sanitizing.md before you choose `code` for it"
}

// Counts counts results. The zero value is ready, and may be used from several goroutines.
type Counts struct {
	mu     sync.Mutex
	byTool map[gate.ToolName]*count
}

type count struct {
	results, changed int
	rules            map[string]int
}

// Observe counts the result in a record, if a tool of a server on this machine returned it. It keeps
// nothing of r.
func (c *Counts) Observe(r *gate.Record) {
	if r.Event != gate.Done || r.Tool == nil || !r.Tool.OnMachine || r.Tool.Feature != gate.FeatureTool || r.Code != codes.OK && r.Code != codes.ToolError {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.byTool[r.Tool.Name]
	if one == nil {
		if len(c.byTool) == maxTools {
			return
		}
		if c.byTool == nil {
			c.byTool = make(map[gate.ToolName]*count)
		}
		one = &count{rules: make(map[string]int)}
		c.byTool[r.Tool.Name] = one
	}
	one.results++
	before := one.changed
	for _, f := range r.Findings {
		if f.Removed && ofProse(f.Rule) {
			one.changed = before + 1
			one.rules[f.Rule]++
		}
	}
}

// ofProse reports whether a rule is one by which the profile for prose changes what the one for
// source leaves.
func ofProse(rule string) bool {
	return strings.HasPrefix(rule, "html/") || strings.HasPrefix(rule, "link/")
}

// Reset forgets all that was counted, for results are made otherwise from now on.
func (c *Counts) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byTool)
}

// Often returns the tools whose results are changed often, the most changed first. Tools whose labels
// already say what their results are, are left out.
func (c *Counts) Often(tools []*gate.Tool, labels interface {
	Labels(*gate.Tool) (provenance.ToolLabels, bool)
}) (often []Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tools {
		one := c.byTool[t.Name]
		if one == nil || one.changed < least || one.changed*share < one.results {
			continue
		}
		said, labelled := labels.Labels(t)
		if said.Kind != "" {
			continue
		}
		rules := slices.SortedFunc(maps.Keys(one.rules), func(a, b string) int {
			return cmp.Or(one.rules[b]-one.rules[a], strings.Compare(a, b))
		})
		often = append(often, Tool{t.Name.String(), one.results, one.changed, rules[:min(len(rules), maxRules)], closed(t, said, labelled)})
	}
	slices.SortFunc(often, func(a, b Tool) int { return cmp.Or(b.Changed-a.Changed, strings.Compare(a.Tool, b.Tool)) })
	return often
}

// closed reports whether a tool does not reach outside: as its label says, or as it says itself.
func closed(t *gate.Tool, said provenance.ToolLabels, labelled bool) bool {
	if labelled {
		return !slices.ContainsFunc(said.Effects, func(e provenance.ToolEffect) bool {
			return e == provenance.EffectExternal || e == provenance.EffectEgress
		})
	}
	open := t.Annotations.Get("openWorldHint")
	return open.Kind() == doc.Bool && !open.True()
}
