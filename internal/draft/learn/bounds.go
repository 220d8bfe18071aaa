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
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Bound narrows an argument of a tool to what was seen.
type Bound struct {
	Tool     string   `json:"tool"`
	Argument string   `json:"argument"`
	Kind     string   `json:"kind"`           // folder, hosts or values
	List     bool     `json:"list,omitempty"` // the argument is a list: the bound holds for each of its values
	Values   []string `json:"values"`
	Calls    int      `json:"calls"`
	Distinct int      `json:"distinct"` // values that were seen
}

// An Open is an argument that nothing narrows.
type Open struct {
	Tool     string `json:"tool"`
	Argument string `json:"argument"`
	Calls    int    `json:"calls"`
	Distinct int    `json:"distinct"` // texts that were seen
	Why      string `json:"why"`
}

// seen is what one argument was.
type seen struct {
	calls, lists int
	times        map[string]int
	other        bool // once it was neither a text nor a list of texts
}

func (s *seen) add(v gate.Doc) {
	s.calls++
	if v.Kind() == doc.Array {
		s.lists++
	}
	for one := range each(v) {
		if one.Kind() != doc.String || len(one.Text()) > mostText {
			s.other = true
			return
		}
		s.times[one.Text()]++
	}
}

// each are the elements of a list, or what is none.
func each(v gate.Doc) iter.Seq[gate.Doc] {
	if v.Kind() == doc.Array {
		return v.Elements()
	}
	return func(yield func(gate.Doc) bool) { yield(v) }
}

// bound returns to what an argument can be narrowed: the hosts of URLs, a folder that has all
// paths, or a list of texts that come again and again. The kind is "" if to nothing, and why
// says the reason.
func (s *seen) bound() (kind string, values []string, why string) {
	switch {
	case s.other || s.lists > 0 && s.lists < s.calls:
		return "", nil, "not always a text of at most 200 bytes, or always a list of such"
	case s.calls < leastSeen:
		return "", nil, "seen too rarely"
	}
	texts := slices.Sorted(maps.Keys(s.times))
	if hosts := hostsOf(texts); hosts != nil {
		return "hosts", hosts, ""
	}
	if folder := folderOf(texts); folder != "" {
		return "folder", []string{folder}, ""
	}
	if len(texts) == 0 || len(texts) > mostValues {
		return "", nil, "no folder, few hosts or short list has them all"
	}
	for _, n := range s.times {
		if n < leastEach {
			return "", nil, "a text came only once"
		}
	}
	return "values", texts, ""
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

// holds reports whether a value lies within the bound.
func (b Bound) holds(v gate.Doc) bool {
	if b.List != (v.Kind() == doc.Array) {
		return false
	}
	for one := range each(v) {
		if one.Kind() != doc.String || !b.has(one.Text()) {
			return false
		}
	}
	return true
}

func (b Bound) has(text string) bool {
	switch b.Kind {
	case "hosts":
		return slices.Contains(b.Values, hostOf(text))
	case "folder":
		return within(text, b.Values[0])
	default:
		return slices.Contains(b.Values, text)
	}
}

// breadth says what the bound lets pass, in one line: its values are what callers have written.
func (b Bound) breadth() string {
	switch b.Kind {
	case "hosts":
		return "every URL of " + quoted(strings.Join(b.Values, ", "))
	case "folder":
		return "every path below " + quoted(b.Values[0])
	default:
		return fmt.Sprintf("the %d texts that were seen", len(b.Values))
	}
}

// reason begins the reasons of all rules that are proposed.
const reason = "learned: "

// Rules returns the proposal as a file of rules, which deny what goes beyond the bounds. Each rule says
// what it lets pass, and from how many calls it was made; arguments that nothing narrows are at the
// end.
func (p *Proposal) Rules() string {
	var b strings.Builder
	b.WriteString("package wasmgate\n")
	for _, bound := range p.Bounds {
		fmt.Fprintf(&b, "\n# Lets pass %s; seen: %d different, in %d calls.\n", bound.breadth(), bound.Distinct, bound.Calls)
		denies := fmt.Sprintf("deny contains %s if {\n\tinput.tool.name == %s\n", quoted(reason+bound.Tool+" takes as "+bound.Argument+" what it was seen to take"), quoted(bound.Tool))
		argument := "input.arguments[" + quoted(bound.Argument) + "]"
		if bound.List {
			fmt.Fprintf(&b, "%s\tvalues := %s\n\tnot is_array(values)\n}\n\n%s\tsome value in %s\n", denies, argument, denies, argument)
		} else {
			fmt.Fprintf(&b, "%s\tvalue := %s\n", denies, argument)
		}
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
	for _, o := range p.Open {
		fmt.Fprintf(&b, "\n# Lets pass everything as %s of %s (%s); seen: %d different texts, in %d calls.", quoted(o.Argument), quoted(o.Tool), o.Why, o.Distinct, o.Calls)
	}
	if len(p.Open) > 0 {
		b.WriteString("\n")
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
