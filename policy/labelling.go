package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A Label is what the operator says of the tools that a pattern matches: the name
// of a tool, server__tool, or its beginning and *. Of several patterns that match
// the longest holds, and a name holds before a pattern.
type Label struct {
	Pattern string
	provenance.ToolLabels
}

// CheckLabels returns all that is wrong with the labels, in their order. [Load]
// refuses labels for which it returns anything.
func CheckLabels(labels []Label) []*EntryError {
	var problems []*EntryError
	seen := make(map[string]bool)
	for _, l := range labels {
		wrong := func(field string, err error) {
			if err != nil {
				problems = append(problems, &EntryError{"labels." + l.Pattern, field, err})
			}
		}
		wrong("", checkTool(l.Pattern))
		if seen[l.Pattern] {
			wrong("", errors.New("the pattern has labels already"))
		}
		seen[l.Pattern] = true
		switch l.Result {
		case "", provenance.ResultUntrusted, provenance.ResultTrusted, provenance.ResultEcho:
		default:
			wrong("result", fmt.Errorf("%q is not one of trusted, untrusted, echo", l.Result))
		}
		switch l.Kind {
		case "", provenance.KindProse, provenance.KindCode:
		default:
			wrong("kind", fmt.Errorf("%q is not one of code, prose", l.Kind))
		}
		if len(l.Effects) == 0 {
			wrong("effect", errors.New("missing; say what the tool does, such as [read]"))
		}
		for _, effect := range l.Effects {
			if !slices.Contains(provenance.ToolEffects(), effect) {
				wrong("effect", fmt.Errorf("%q is not one of %s", effect, effectNames()))
			}
		}
		wrong("control", checkPointers(l.Control))
		wrong("content", checkPointers(l.Content))
		wrong("to", checkPointers(l.To))
		wrong("commits", checkPointers(l.Commits))
		wrong("makes", checkPointers(l.Makes))
		wrong("identity", checkPointers(l.Identity))
		wrong("names", checkPointers(l.Names))
		wrong("own", checkPointers(l.Own))
		wrong("ids", checkPointers(slices.Sorted(maps.Keys(l.IDs))))
		wrong("to", checkPointers(slices.Sorted(maps.Keys(l.Takes))))
	}
	return problems
}

func effectNames() string {
	var names []string
	for _, e := range provenance.ToolEffects() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}

func checkPointers[P ~string](pointers []P) error {
	for _, p := range pointers {
		if !strings.HasPrefix(string(p), "/") {
			return fmt.Errorf("%q is not a JSON Pointer to an argument, such as /to", p)
		}
	}
	return nil
}

// labelling finds the label of a tool.
type labelling struct {
	names    map[string]provenance.ToolLabels
	prefixes []Label // the longest first; their patterns without the *
}

func newLabelling(labels []Label) labelling {
	l := labelling{names: make(map[string]provenance.ToolLabels)}
	for _, one := range labels {
		if prefix, open := match.Pattern(one.Pattern).Cut(); open {
			l.prefixes = append(l.prefixes, Label{prefix, one.ToolLabels})
		} else {
			l.names[one.Pattern] = one.ToolLabels
		}
	}
	slices.SortFunc(l.prefixes, func(a, b Label) int { return len(b.Pattern) - len(a.Pattern) })
	return l
}

func (l labelling) of(t *gate.Tool) (provenance.ToolLabels, bool) {
	name := t.Name.String()
	if labels, ok := l.names[name]; ok {
		return labels, true
	}
	for _, p := range l.prefixes {
		if t.Relay && !strings.Contains(p.Pattern, "__") {
			continue // what is said of many servers is not meant for this
		}
		if strings.HasPrefix(name, p.Pattern) {
			return p.ToolLabels, true
		}
	}
	if t.Relay {
		return relayLabels, true
	}
	return provenance.ToolLabels{}, false
}

// relayLabels are those of a tool that carries out other calls, unless the operator says
// otherwise of it: what it does, and whose words it returns, is the other calls' matter.
var relayLabels = provenance.ToolLabels{Result: provenance.ResultEcho, Effects: []provenance.ToolEffect{provenance.EffectRead}}
