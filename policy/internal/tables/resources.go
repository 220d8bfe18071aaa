package tables

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// Resources have an owner as well as a URI: these are asked with both. A template of
// URIs (RFC 6570) is granted if some URI of it could be.
var (
	resourceLookup = grantLookup("wasmgate.granted_resource", "(grants, server, uri, id, roles)", ownedBy((*Row).resource), types.S, types.S)
	skillLookup    = grantLookup("wasmgate.granted_skill", "(grants, server, name, id, roles)", ownedBy((*Row).skill), types.S, types.S)
	templateLookup = grantLookup("wasmgate.granted_template", "(grants, server, template, id, roles)", ownedBy((*Row).template), types.S, types.S)
)

func ownedBy(each func(g *Row, server, uri string, f func(*Entry))) answer {
	return func(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
		server, ok1 := asked[0].Value.(ast.String)
		uri, ok2 := asked[1].Value.(ast.String)
		var best first
		for _, s := range who {
			if g := ix[s]; g != nil {
				each(g, string(server), string(uri), best.offer)
			}
		}
		return best.reason(), ok1 && ok2
	}
}

// resource calls f with the entries that grant a URI of a server, and do not except
// it.
func (g *Row) resource(server, uri string, f func(*Entry)) { g.owned("resources", server, uri, f) }

// skill calls f with the entries that grant a skill of a server, and do not except it.
func (g *Row) skill(server, name string, f func(*Entry)) { g.owned("skills", server, name, f) }

func (g *Row) owned(kind, server, name string, f func(*Entry)) {
	consider := func(e *Entry) bool {
		if !e.Except.matches(name) {
			f(e)
		}
		return true
	}
	g.kinds[kind].each(name, consider)
	for _, e := range g.servers[server] {
		consider(e)
	}
}

// template calls f with the entries that could grant a URI of a template of a
// server: one that begins as the template does.
func (g *Row) template(server, template string, f func(*Entry)) {
	begin, _, _ := strings.Cut(template, "{")
	consider := func(e *Entry) {
		if !e.Except.covers(begin) {
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
