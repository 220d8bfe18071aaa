package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/gate"
)

// within reports whether an action is done within a call that was allowed, by the tool
// or for its server.
func within(a gate.Action) bool { return a.IsHostCall() || a.IsPeerRequest() }

// peerInput returns what the input has of a request of a server to the client: what was
// used when it asks, the server, and the request, with what the gate says of it.
func (t *terms) peerInput(q gate.Query) [][2]*ast.Term {
	subject := [2]*ast.Term{keyTool, nil}
	switch q.Tool.Feature {
	case gate.FeatureTool:
		subject[1] = t.tool(q.Tool)
	case gate.FeaturePrompt:
		subject = promptTerm(q.Tool)
	default:
		subject = resourceTerm(q.Tool, &q.Call.Name)
	}
	secret := []byte("false")
	if gate.AsksSecret(q.Call.Action, q.Call.Args) {
		secret = []byte("true")
	}
	request := q.Call.Args
	if request.Kind() != gate.Object {
		request = gate.Doc{}
	}
	return [][2]*ast.Term{subject, pair("server", ast.StringTerm(q.Tool.Name.Server)), {keyRequest, docTerm(request.With("secret", secret))}}
}

// asks are what a grant can say that servers may ask of the client.
var asks = []string{"roots", "sampling", "secrets"}

func checkAsk(ask string) error {
	if !slices.Contains(asks, ask) {
		return fmt.Errorf("%q is nothing that a server asks for; expected %s", ask, strings.Join(asks, ", "))
	}
	return nil
}

// askDecl declares the built-in function by which the pack grants asks what a server may
// ask of the client:
//
//	wasmgate.granted_ask(grants, ask, kind, used, id, roles) reason
//
// Used is the input's tool, prompt or resource, of the kind tools, prompts or resources.
var askDecl = &rego.Function{
	Name: "wasmgate.granted_ask",
	Decl: types.NewFunction(types.Args(
		types.NewArray(nil, types.A), types.S, types.S, types.NewObject(nil, types.NewDynamicProperty(types.S, types.A)),
		types.S, types.NewArray(nil, types.S),
	), types.S),
}

// askBuiltin is as [grantedBuiltin].
func askBuiltin(list ast.Value, ix index) func(*rego.Rego) {
	return rego.FunctionDyn(askDecl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		ix, err := indexOf(args[0].Value, list, ix)
		if err != nil {
			return nil, err
		}
		ask, ok1 := args[1].Value.(ast.String)
		kind, ok2 := args[2].Value.(ast.String)
		used, ok3 := args[3].Value.(ast.Object)
		if !ok1 || !ok2 || !ok3 {
			return nil, errors.New(askDecl.Name + ": expected (grants, ask, kind, used, id, roles)")
		}
		who, err := subjectsOf(args[4], args[5])
		if err != nil {
			return nil, err
		}
		if e := ix.ask(who, string(ask), string(kind), used); e != nil {
			text, _ := e.reason.Value.(ast.String)
			return ast.StringTerm(string(text) + ", with " + string(ask)), nil
		}
		return nil, nil // undefined
	})
}

// ask returns the first of the grants to one of the subjects, in the order of the file,
// that grants what is used and lets its server ask; nil if there is none.
func (ix index) ask(who []subject, ask, kind string, used ast.Object) (best *entry) {
	name := memberText(used, "name")
	if kind == "resources" {
		name = memberText(used, "uri")
	}
	consider := func(e *entry) bool {
		if (best == nil || e.order < best.order) && slices.Contains(e.asks, ask) && !e.except.matches(name) {
			best = e
		}
		return true
	}
	groups, ok := ast.NewArray(), false
	if g := used.Get(ast.InternedTerm("groups")); g != nil {
		if groups, ok = g.Value.(*ast.Array); !ok {
			return nil
		}
	}
	for _, s := range who {
		g := ix[s]
		if g == nil {
			continue
		}
		if m := g.kinds[kind]; m != nil {
			m.each(name, consider)
		}
		for _, e := range g.servers[memberText(used, "server")] {
			consider(e)
		}
		for i := range groups.Len() {
			group, _ := groups.Elem(i).Value.(ast.String)
			for _, e := range g.groups[string(group)] {
				consider(e)
			}
		}
	}
	return best
}

// memberText returns the text of an object's member, or "".
func memberText(o ast.Object, name string) string {
	t := o.Get(ast.InternedTerm(name))
	if t == nil {
		return ""
	}
	s, _ := t.Value.(ast.String)
	return string(s)
}
