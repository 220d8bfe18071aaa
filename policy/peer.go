package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// within reports whether an action is done within a call that was allowed, by the tool
// or for its server.
func within(a gate.Action) bool { return actions.IsHostCall(a) || actions.IsPeerRequest(a) }

// asks are what a grant can say that servers may ask of the client.
var asks = []string{"roots", "sampling", "secrets"}

func checkAsk(ask string) error {
	if !slices.Contains(asks, ask) {
		return fmt.Errorf("%q is not a kind of request that a server sends; expected %s", ask, strings.Join(asks, ", "))
	}
	return nil
}

// askLookup is of what a server may ask of the client. Used is the input's tool, prompt,
// resource or method, of the kind tools, prompts, resources or methods.
var askLookup = grantLookup("wasmgate.granted_ask", "(grants, ask, kind, used, id, roles)", grantedAsk, types.S, types.S, anObject)

// anObject is the type of a part of the input.
var anObject = types.NewObject(nil, types.NewDynamicProperty(types.S, types.A))

func grantedAsk(ix index, who []subject, asked []*ast.Term) (*ast.Term, bool) {
	ask, ok1 := asked[0].Value.(ast.String)
	kind, ok2 := asked[1].Value.(ast.String)
	used, ok3 := asked[2].Value.(ast.Object)
	if !ok1 || !ok2 || !ok3 {
		return nil, false
	}
	best := ix.using(who, string(kind), used, func(e *entry) bool { return slices.Contains(e.asks, string(ask)) })
	if best.entry == nil {
		return nil, true
	}
	text, _ := best.reason().Value.(ast.String)
	return ast.StringTerm(string(text) + ", with " + string(ask)), true
}

// using returns the first of the grants to one of the subjects, in the order of the file,
// that grants what is used and suits.
func (ix index) using(who []subject, kind string, used ast.Object, suits func(*entry) bool) (best first) {
	names := namesOf(kind, used)
	consider := func(e *entry) {
		if suits(e) && !slices.ContainsFunc(names, e.except.matches) {
			best.offer(e)
		}
	}
	groups := ast.NewArray()
	if g := member(used, "groups"); g != nil {
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
				m.each(name, func(e *entry) bool { consider(e); return true })
			}
		}
		for _, e := range g.servers[memberText(used, "server")] {
			consider(e)
		}
		g.inGroups(groups, consider)
	}
	return best
}

// namesOf returns the names by which grants grant, and except, what is used: of a method
// also the one without its server, by which it is granted at any.
func namesOf(kind string, used ast.Object) []string {
	name := memberText(used, "name")
	switch kind {
	case "resources":
		return []string{memberText(used, "uri")}
	case "methods":
		_, method, _ := strings.Cut(name, "__")
		return []string{name, method}
	default:
		return []string{name}
	}
}
