package policy

import (
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// The built-in functions by which the pack grants asks about resources, which have
// an owner beside their URI:
//
//	wasmgate.granted_resource(grants, server, uri, id, roles) reason
//	wasmgate.granted_template(grants, server, template, id, roles) reason
//
// The second is of a template of URIs (RFC 6570): whether some URI of it could be
// granted.
var (
	resourceDecl = ownedDecl("wasmgate.granted_resource")
	templateDecl = ownedDecl("wasmgate.granted_template")
)

func ownedDecl(name string) *rego.Function {
	return &rego.Function{Name: name, Decl: types.NewFunction(types.Args(
		types.NewArray(nil, types.A), types.S, types.S, types.S, types.NewArray(nil, types.S),
	), types.S)}
}

// ownedBuiltins are as [grantedBuiltin].
func ownedBuiltins(list ast.Value, ix index) func(*rego.Rego) {
	of := func(decl *rego.Function, each func(g *granted, server, uri string, f func(*entry))) func(*rego.Rego) {
		return rego.FunctionDyn(decl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
			ix, err := indexOf(args[0].Value, list, ix)
			if err != nil {
				return nil, err
			}
			server, ok1 := args[1].Value.(ast.String)
			uri, ok2 := args[2].Value.(ast.String)
			if !ok1 || !ok2 {
				return nil, errors.New(decl.Name + ": expected (grants, server, uri, id, roles)")
			}
			who, err := subjectsOf(args[3], args[4])
			if err != nil {
				return nil, err
			}
			var best *entry
			for _, s := range who {
				if g := ix[s]; g != nil {
					each(g, string(server), string(uri), func(e *entry) {
						if best == nil || e.order < best.order {
							best = e
						}
					})
				}
			}
			if best == nil {
				return nil, nil // undefined
			}
			return best.reason, nil
		})
	}
	resource, template := of(resourceDecl, (*granted).resource), of(templateDecl, (*granted).template)
	return func(r *rego.Rego) { resource(r); template(r) }
}

// subjectsOf returns all as whom a principal is granted something.
func subjectsOf(id, roles *ast.Term) ([]subject, error) {
	name, ok1 := id.Value.(ast.String)
	list, ok2 := roles.Value.(*ast.Array)
	if !ok1 || !ok2 {
		return nil, errors.New("expected the id of a principal and its roles")
	}
	who := []subject{everybody, {"id", string(name)}}
	for i := range list.Len() {
		if role, ok := list.Elem(i).Value.(ast.String); ok {
			who = append(who, subject{"role", string(role)})
		}
	}
	return who, nil
}

// resource calls f with the entries that grant a URI of a server, and do not except
// it.
func (g *granted) resource(server, uri string, f func(*entry)) {
	consider := func(e *entry) bool {
		if !e.except.matches(uri) {
			f(e)
		}
		return true
	}
	g.kinds["resources"].each(uri, consider)
	for _, e := range g.servers[server] {
		consider(e)
	}
}

// template calls f with the entries that could grant a URI of a template of a
// server: one that begins as the template does.
func (g *granted) template(server, template string, f func(*entry)) {
	begin, _, _ := strings.Cut(template, "{")
	consider := func(e *entry) {
		if !e.except.covers(begin) {
			f(e)
		}
	}
	m := g.kinds["resources"]
	for literal, entries := range m.exact {
		if strings.HasPrefix(literal, begin) {
			for _, e := range entries {
				consider(e)
			}
		}
	}
	for prefix, entries := range m.prefix {
		if strings.HasPrefix(prefix, begin) || strings.HasPrefix(begin, prefix) {
			for _, e := range entries {
				consider(e)
			}
		}
	}
	for _, e := range g.servers[server] {
		consider(e)
	}
}

// covers reports whether a pattern matches all that begins with text.
func (m *matcher) covers(text string) bool {
	for prefix := range m.prefix {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
