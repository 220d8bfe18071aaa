package learn

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

const (
	// leastSeen is in how many calls an argument is seen before it is narrowed.
	leastSeen = 5
	// mostValues is the largest number of different values that an argument may have to be narrowed to
	// a list of them. Each has to be seen leastEach times.
	mostValues, leastEach = 8, 2
	// mostTests bounds the tests that are made from calls, for each tool.
	mostTests = 3
	// mostRefusals bounds the calls that are shown as those a proposal would have refused.
	mostRefusals = 20
	// mostText bounds a value that is written down, in bytes.
	mostText = 200
)

// A Proposal is a policy that allows what was seen, for the pack grants.
type Proposal struct {
	Grants []Grant `json:"grants"`
	Bounds []Bound `json:"bounds"`
	// Open are the arguments that were seen and that nothing narrows.
	Open  []Open `json:"open"`
	Rates []Rate `json:"rates"`
	// Calls is how many calls it is made of. Refused are those from which nothing is learned: they
	// were refused when they were made, nothing is known of them, or a name in them reads as a pattern.
	Calls   int `json:"calls"`
	Refused int `json:"refused"`
	// Unseen is the number of calls whose arguments were not kept: their tools are granted, and nothing
	// is narrowed by them.
	Unseen int `json:"unseen"`
	// Held is how many of the calls in the last fifth of sessions a proposal of the others
	// would have refused, and Later how many those are: how well it fits what is to come.
	Held  int `json:"held"`
	Later int `json:"later"`
	// Refusals are the first of those that it would have refused.
	Refusals []Refusal `json:"refusals"`

	tests []test
}

// A Grant is what one principal has used.
type Grant struct {
	To    string         `json:"to"`
	Tools map[string]int `json:"tools"` // how often each was called
}

// A Refusal is a recorded call that a proposal made of earlier ones would have refused.
type Refusal struct {
	Session string `json:"session"`
	Tool    string `json:"tool"`
	Why     string `json:"why"`
}

type test struct {
	tool string
	args gate.Doc
}

// key names an argument of a tool.
type key struct{ tool, argument string }

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.tool, b.tool), strings.Compare(a.argument, b.argument))
}

// From proposes what recorded sessions have needed.
func From(sessions iter.Seq2[study.RecordedSession, error]) (*Proposal, error) {
	var all []study.RecordedSession
	for s, err := range sessions {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	p := propose(all)
	earlier, later := propose(all[:len(all)-len(all)/5]), inTime(all[len(all)-len(all)/5:])
	p.Later = len(later)
	paces := make(map[use]*pace)
	for _, c := range later {
		why := earlier.refuses(c, paces)
		if why == "" {
			continue
		}
		if p.Held++; p.Held <= mostRefusals {
			p.Refusals = append(p.Refusals, Refusal{c.session, c.Tool, why})
		}
	}
	return p, nil
}

// A made is a recorded call from which something is learned, and who made it.
type made struct {
	study.RecordedCall
	session, who string
}

// inTime returns the calls of sessions from which something is learned, in the order in which
// they were made as far as that is known.
func inTime(sessions []study.RecordedSession) (all []made) {
	for _, s := range sessions {
		for _, c := range s.Calls {
			if who := match.Name(s.Who.Tenant, s.Who.ID); passed(c) && literal(who) && literal(c.Tool) {
				all = append(all, made{c, s.ID, who})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b made) int { return a.Time.Compare(b.Time) })
	return all
}

// literal reports whether a name means itself in a grant: another's log, or an issuer, can have ids
// and tools that read as patterns and roles there.
func literal(name string) bool {
	return !strings.Contains(name, "*") && !strings.HasPrefix(name, "role:")
}

// passed reports whether something is learned from a call: whether it was allowed when it was
// made, or is of a recording that only has calls that were made.
func passed(c study.RecordedCall) bool {
	return c.Effect == gate.Allow || c.Effect == "" && !c.Result.IsZero()
}

func propose(sessions []study.RecordedSession) *Proposal {
	p := &Proposal{Grants: []Grant{}, Bounds: []Bound{}, Open: []Open{}, Rates: []Rate{}, Refusals: []Refusal{}}
	tools := make(map[string]map[string]int)
	arguments := make(map[key]*seen)
	tests := make(map[string]int)
	calls := inTime(sessions)
	for _, s := range sessions {
		p.Refused += len(s.Calls)
	}
	p.Calls, p.Refused = len(calls), p.Refused-len(calls)
	for _, c := range calls {
		if tools[c.who] == nil {
			tools[c.who] = make(map[string]int)
		}
		tools[c.who][c.Tool]++
		if c.Args.IsZero() {
			p.Unseen++
			continue
		}
		for argument, v := range c.Args.Members() {
			of := arguments[key{c.Tool, argument}]
			if of == nil {
				of = &seen{times: make(map[string]int)}
				arguments[key{c.Tool, argument}] = of
			}
			of.add(v)
		}
		if tests[c.Tool]++; tests[c.Tool] <= mostTests && len(c.Args.Raw()) <= 10*mostText {
			p.tests = append(p.tests, test{c.Tool, c.Args})
		}
	}
	for _, who := range slices.Sorted(maps.Keys(tools)) {
		p.Grants = append(p.Grants, Grant{who, tools[who]})
	}
	for _, of := range slices.SortedFunc(maps.Keys(arguments), compareKeys) {
		s := arguments[of]
		if kind, values, why := s.bound(); kind != "" {
			p.Bounds = append(p.Bounds, Bound{of.tool, of.argument, kind, s.lists > 0, values, s.calls, len(s.times)})
		} else {
			p.Open = append(p.Open, Open{of.tool, of.argument, s.calls, len(s.times), why})
		}
	}
	p.Rates = ratesOf(calls)
	return p
}

// refuses says why the proposal refuses a call, or "". Paces are of the calls that it was asked
// about before.
func (p *Proposal) refuses(c made, paces map[use]*pace) string {
	if !slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.To == c.who && g.Tools[c.Tool] > 0 }) {
		return "no earlier call of " + c.who + " had this tool"
	}
	for _, b := range p.Bounds {
		if v := c.Args.Get(b.Argument); b.Tool == c.Tool && !v.IsZero() && !b.holds(v) {
			return b.Argument + " goes beyond " + b.breadth()
		}
	}
	for _, r := range p.Rates {
		if r.To == c.who && r.Tool == c.Tool && !c.Time.IsZero() && !r.holds(c.Time, paces) {
			return fmt.Sprintf("more than %d calls in an hour, or %d at once", r.Calls, r.Burst)
		}
	}
	return ""
}

// GrantsFile is the proposal for the grants file. Now are the grants of now: it says which of
// them nothing that was read has used.
func (p *Proposal) GrantsFile(now []policy.Grant) string {
	var b strings.Builder
	for _, g := range p.Grants {
		fmt.Fprintf(&b, "- to: %s\n  tools:\n", yamlList([]string{g.To}))
		for _, tool := range slices.Sorted(maps.Keys(g.Tools)) {
			fmt.Fprintf(&b, "    - %s # %d calls\n", yamlWord(tool), g.Tools[tool])
		}
	}
	for _, unused := range p.unused(now) {
		fmt.Fprintf(&b, "# not used, and left out: %s\n", unused)
	}
	return b.String()
}

// unused returns which patterns of tools in grants no call has used.
func (p *Proposal) unused(now []policy.Grant) (all []string) {
	for _, g := range now {
		for _, pattern := range g.Tools {
			used := slices.ContainsFunc(p.Grants, func(seen Grant) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(seen.Tools)), match.Pattern(pattern).Matches)
			})
			if !used {
				all = append(all, pattern+" to "+strings.Join(g.To, ", "))
			}
		}
	}
	return all
}
