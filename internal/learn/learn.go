package learn

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

const (
	// leastSeen is in how many calls an argument is seen before it is narrowed.
	leastSeen = 5
	// mostValues is how many values an argument has at most that is one of a list, each of
	// which was seen leastEach times.
	mostValues, leastEach = 8, 2
	// mostTests bounds the tests that are made of calls, for each tool.
	mostTests = 3
	// mostText bounds a value that is written down, in bytes.
	mostText = 200
)

// A Proposal is a policy that allows what was seen, for the pack grants.
type Proposal struct {
	Grants []Grant `json:"grants"`
	Bounds []Bound `json:"bounds"`
	// Calls is how many calls it is made of. Refused are those beside that were refused when
	// they were made, or that nothing is known of, from which nothing is learned.
	Calls   int `json:"calls"`
	Refused int `json:"refused"`
	// Unseen is of how many calls nobody has kept the arguments: their tools are granted,
	// and nothing is narrowed by them.
	Unseen int `json:"unseen"`
	// Held is how many of the calls in the last fifth of sessions a proposal of the others
	// would have refused, and Later how many those are: how well it fits what is to come.
	Held  int `json:"held"`
	Later int `json:"later"`

	tests []test
}

// A Grant is what one principal has used.
type Grant struct {
	To    string         `json:"to"`
	Tools map[string]int `json:"tools"` // how often each was called
}

// A Bound narrows an argument of a tool to what was seen.
type Bound struct {
	Tool     string   `json:"tool"`
	Argument string   `json:"argument"`
	Kind     string   `json:"kind"` // folder, hosts or values
	Values   []string `json:"values"`
	Calls    int      `json:"calls"`
	Distinct int      `json:"distinct"` // values that were seen
}

type test struct {
	tool string
	args gate.Doc
}

// key names an argument of a tool.
type key struct{ tool, argument string }

// seen is what one argument was.
type seen struct {
	calls int
	times map[string]int
	other bool // once it was no text
}

// From proposes what recorded sessions have needed.
func From(sessions iter.Seq2[policy.RecordedSession, error]) (*Proposal, error) {
	var all []policy.RecordedSession
	for s, err := range sessions {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	p := propose(all)
	earlier := propose(all[:len(all)-len(all)/5])
	for _, s := range all[len(all)-len(all)/5:] {
		for _, c := range s.Calls {
			if !passed(c) {
				continue
			}
			if p.Later++; !earlier.allows(s.Who, c) {
				p.Held++
			}
		}
	}
	return p, nil
}

// passed reports whether something is learned from a call: whether it was allowed when it was
// made, or is of a recording that only has calls that were made.
func passed(c policy.RecordedCall) bool {
	return c.Effect == gate.Allow || c.Effect == "" && !c.Result.IsZero()
}

func propose(sessions []policy.RecordedSession) *Proposal {
	p := &Proposal{Grants: []Grant{}, Bounds: []Bound{}}
	tools := make(map[string]map[string]int)
	arguments := make(map[key]*seen)
	tests := make(map[string]int)
	for _, s := range sessions {
		for _, c := range s.Calls {
			if !passed(c) {
				p.Refused++
				continue
			}
			p.Calls++
			who := match.Name(s.Who.Tenant, s.Who.ID)
			if tools[who] == nil {
				tools[who] = make(map[string]int)
			}
			tools[who][c.Tool]++
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
	}
	for _, who := range slices.Sorted(maps.Keys(tools)) {
		p.Grants = append(p.Grants, Grant{who, tools[who]})
	}
	for of, s := range arguments {
		if kind, values := s.bound(); kind != "" {
			p.Bounds = append(p.Bounds, Bound{of.tool, of.argument, kind, values, s.calls, len(s.times)})
		}
	}
	slices.SortFunc(p.Bounds, func(a, b Bound) int { return strings.Compare(a.Tool+"\x00"+a.Argument, b.Tool+"\x00"+b.Argument) })
	return p
}

func (s *seen) add(v gate.Doc) {
	s.calls++
	if v.Kind() != gate.String || len(v.Text()) > mostText {
		s.other = true
		return
	}
	s.times[v.Text()]++
}

// bound returns to what an argument can be narrowed: the hosts of URLs, a folder that has all
// paths, or a list of texts that come again and again. The kind is "" if to nothing.
func (s *seen) bound() (kind string, values []string) {
	if s.other || s.calls < leastSeen {
		return "", nil
	}
	texts := slices.Sorted(maps.Keys(s.times))
	if hosts := hostsOf(texts); hosts != nil {
		return "hosts", hosts
	}
	if folder := folderOf(texts); folder != "" {
		return "folder", []string{folder}
	}
	for _, n := range s.times {
		if n < leastEach {
			return "", nil
		}
	}
	if len(texts) > mostValues {
		return "", nil
	}
	return "values", texts
}

// hostsOf returns the hosts of URLs; nil if there are others, or too many.
func hostsOf(texts []string) []string {
	hosts := make(map[string]bool)
	for _, text := range texts {
		host := hostOf(text)
		if host == "" {
			return nil
		}
		hosts[host] = true
	}
	if len(hosts) > mostValues {
		return nil
	}
	return slices.Sorted(maps.Keys(hosts))
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// folderOf returns the deepest folder that has all paths, "" if they are no absolute ones or
// only the root, or a folder right below it, has them all.
func folderOf(texts []string) string {
	folder := ""
	for i, text := range texts {
		if !strings.HasPrefix(text, "/") || path.Clean(text) != text {
			return ""
		}
		if i == 0 {
			folder = path.Dir(text)
		}
		for !within(text, folder) {
			folder = path.Dir(folder)
		}
	}
	if strings.Count(folder, "/") < 2 {
		return ""
	}
	return folder
}

func within(file, folder string) bool { return folder == "/" || strings.HasPrefix(file, folder+"/") }

// allows reports whether the proposal allows a call.
func (p *Proposal) allows(who *gate.Principal, c policy.RecordedCall) bool {
	if !slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.To == match.Name(who.Tenant, who.ID) && g.Tools[c.Tool] > 0 }) {
		return false
	}
	return !slices.ContainsFunc(p.Bounds, func(b Bound) bool {
		v := c.Args.Get(b.Argument)
		return b.Tool == c.Tool && !v.IsZero() && !b.holds(v.Text())
	})
}

func (b Bound) holds(text string) bool {
	switch b.Kind {
	case "hosts":
		return slices.Contains(b.Values, hostOf(text))
	case "folder":
		return within(text, b.Values[0])
	default:
		return slices.Contains(b.Values, text)
	}
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

// reason begins the reasons of all rules that are proposed.
const reason = "learned: "

// Rules are the proposal for a file of rules, which deny what goes beyond the bounds.
func (p *Proposal) Rules() string {
	var b strings.Builder
	b.WriteString("package wasmgate\n")
	for _, bound := range p.Bounds {
		fmt.Fprintf(&b, "\n# %d calls, %d different values.\ndeny contains %s if {\n", bound.Calls, bound.Distinct, quoted(reason+bound.Tool+" takes as "+bound.Argument+" what it was seen to take"))
		fmt.Fprintf(&b, "\tinput.tool.name == %s\n\tvalue := input.arguments[%s]\n", quoted(bound.Tool), quoted(bound.Argument))
		switch bound.Kind {
		case "hosts":
			fmt.Fprintf(&b, "\tnot wasmgate.url(value).host in %s\n", set(bound.Values))
		case "folder":
			fmt.Fprintf(&b, "\tnot wasmgate.path_within(value, %s)\n", quoted(bound.Values[0]))
		default:
			fmt.Fprintf(&b, "\tnot value in %s\n", set(bound.Values))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// Tests are tests of the rules, made of calls that were recorded: they pass.
func (p *Proposal) Tests() string {
	var b strings.Builder
	b.WriteString("package wasmgate_test\n")
	n := 0
	for _, t := range p.tests {
		if !slices.ContainsFunc(p.Bounds, func(b Bound) bool { return b.Tool == t.tool }) {
			continue
		}
		n++
		in, _ := json.Marshal(map[string]any{"action": gate.CallTool, "tool": map[string]string{"name": t.tool}, "arguments": json.RawMessage(t.args.Raw())})
		fmt.Fprintf(&b, "\ntest_learned_%d if {\n\tevery why in data.wasmgate.deny {\n\t\tnot startswith(why, %s)\n\t} with input as %s\n}\n", n, quoted(reason), in)
	}
	return b.String()
}

func set(values []string) string {
	var list []string
	for _, v := range values {
		list = append(list, quoted(v))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// quoted writes a text as Rego and JSON have it.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text marshals
	return string(b)
}
