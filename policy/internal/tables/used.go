package tables

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// askLookup is of what a server may ask of the client. Used is the input's tool, prompt,
// resource or method, of the kind tools, prompts, resources or methods.
var askLookup = grantLookup("wasmgate.granted_ask", "(grants, ask, kind, used, id, roles)", grantedAsk, types.S, types.S, anObject)

// anObject is the type of a part of the input.
var anObject = types.NewObject(nil, types.NewDynamicProperty(types.S, types.A))

func grantedAsk(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
	ask, ok1 := asked[0].Value.(ast.String)
	kind, ok2 := asked[1].Value.(ast.String)
	used, ok3 := asked[2].Value.(ast.Object)
	if !ok1 || !ok2 || !ok3 {
		return nil, false
	}
	best := ix.using(who, string(kind), used, func(e *Entry) bool { return slices.Contains(e.Asks, string(ask)) })
	if best.entry == nil {
		return nil, true
	}
	text, _ := best.reason().Value.(ast.String)
	return ast.StringTerm(string(text) + ", with " + string(ask)), true
}

// methodLookup is of methods that MCP does not have. Method is the input's, {name, server,
// groups}.
var methodLookup = grantLookup("wasmgate.granted_method", "(grants, method, id, roles)", grantedMethod, anObject)

func grantedMethod(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
	method, ok := asked[0].Value.(ast.Object)
	if !ok {
		return nil, false
	}
	best := ix.using(who, "methods", method, func(*Entry) bool { return true })
	return best.reason(), true
}

// using returns the first of the grants to one of the subjects, in the order of the file,
// that grants what is used and suits.
func (ix Index) using(who []Subject, kind string, used ast.Object, suits func(*Entry) bool) (best first) {
	names := namesOf(kind, used)
	consider := func(e *Entry) {
		if suits(e) && !slices.ContainsFunc(names, e.Except.matches) {
			best.offer(e)
		}
	}
	groups := ast.NewArray()
	if g := input.Member(used, "groups"); g != nil {
		var ok bool
		if groups, ok = g.(*ast.Array); !ok {
			return first{}
		}
	}
	for _, s := range who {
		g := ix[s]
		if g == nil {
			continue
		}
		if m := g.kinds[kind]; m != nil {
			for _, name := range names {
				m.each(name, func(e *Entry) bool { consider(e); return true })
			}
		}
		for _, e := range g.servers[input.MemberText(used, "server")] {
			consider(e)
		}
		g.inGroups(groups, consider)
	}
	return best
}

// namesOf returns the names by which grants grant, and except, what is used: of a method
// also the one without its server, by which it is granted at any.
func namesOf(kind string, used ast.Object) []string {
	name := input.MemberText(used, "name")
	switch kind {
	case "resources":
		return []string{input.MemberText(used, "uri")}
	case "methods":
		_, method, _ := strings.Cut(name, "__")
		return []string{name, method}
	default:
		return []string{name}
	}
}
