package engine

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// persons says by what the policy tells principals apart, besides their tenants and roles: those
// whom it cannot tell apart have one list. What cannot be seen to be unread counts as read.
type persons struct {
	id, auth, claims, client bool            // that a rule reads
	granted                  map[string]bool // ids that grants name, as lists do
}

// personsOf looks through all rules. Those of packs hand the id to lookups in the grants alone,
// or have a name, by which other rules may read it.
func personsOf(rules, packs map[string]*ast.Module, granted []string) *persons {
	p := &persons{granted: map[string]bool{}}
	for _, to := range granted {
		if s := tables.ParseSubject(to); s.Kind == "id" {
			p.granted[s.Name] = true
		}
	}
	naming := map[string]bool{}
	for name := range packs {
		for _, r := range rules[name].Rules {
			var reads persons
			reads.walk(r, nil)
			if reads.id {
				naming[string(r.Head.Name)] = true
			}
			p.auth, p.claims, p.client = p.auth || reads.auth, p.claims || reads.claims, p.client || reads.client
		}
	}
	for name, m := range rules {
		if packs[name] == nil {
			p.walk(m, naming)
		}
	}
	return p
}

// walk finds what something reads. Naming are rules of package wasmgate that read the id. A rule
// that replaces data or input can have read anything.
func (p *persons) walk(x any, naming map[string]bool) {
	var v *ast.GenericVisitor
	v = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Package, *ast.Import: // the compiler has put what they name where it is read
			return true
		case *ast.With:
			p.all()
		case ast.Var:
			if ast.RootDocumentNames.Contains(ast.NewTerm(x)) {
				p.all()
			}
		case ast.Ref:
			p.ref(x, naming)
			for _, t := range x[1:] {
				v.Walk(t)
			}
			return true
		}
		return false
	})
	v.Walk(x)
}

func (p *persons) all() { p.id, p.auth, p.claims, p.client = true, true, true, true }

// ref notes what a reference reads.
func (p *persons) ref(r ast.Ref, naming map[string]bool) {
	at := func(i int) string { // "" is what is not known
		if i >= len(r) {
			return ""
		}
		s, _ := r[i].Value.(ast.String)
		return string(s)
	}
	switch {
	case r.HasPrefix(ast.InputRootRef):
		if at(1) == "principal" {
			p.member(at(2))
		} else if at(1) == "" {
			p.all()
		}
	case !r.HasPrefix(ast.DefaultRootRef):
	case at(1) == "", at(1) == "wasmgate" && at(2) == "":
		p.all()
	case at(1) == "wasmgate" && naming[at(2)]:
		p.id = true
	}
}

func (p *persons) member(name string) {
	switch name {
	case "id":
		p.id = true
	case "auth":
		p.auth = true
	case "claims":
		p.claims = true
	case "client":
		p.client = true
	case "tenant", "roles":
	default:
		p.all()
	}
}

// same returns somebody whom the policy does not tell apart from who, and who is the same for
// all of those: what is not read is left out.
func (p *persons) same(who *gate.Principal) *gate.Principal {
	to := &gate.Principal{Owner: gate.Owner{Tenant: who.Tenant}, Roles: who.Roles}
	if p.id || p.granted[match.Name(who.Tenant, who.ID)] || p.granted[who.ID] {
		to.ID = who.ID
	}
	if p.auth {
		to.Auth = who.Auth
	}
	if p.claims {
		to.Claims = who.Claims
	}
	if p.client {
		to.Client = who.Client
	}
	return to
}
