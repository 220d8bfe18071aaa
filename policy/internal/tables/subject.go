package tables

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A Subject names principals in a list. It has a kind of its own
// for ids and roles, so that a principal whose id reads like a role is none. The name
// begins with TENANT/ for principals of a tenant, and with */ for those of any tenant.
type Subject struct{ Kind, Name string }

var (
	everybody = Subject{Kind: "*"}             // of no tenant
	anybody   = Subject{Kind: "*", Name: "*/"} // of any tenant, but not of none
)

// ParseSubject reads the name of principals in a list, which [CheckSubject] accepts.
func ParseSubject(to string) Subject {
	if tenant, all := strings.CutSuffix(to, "*"); all && (tenant == "" || strings.HasSuffix(tenant, "/")) {
		return Subject{"*", tenant}
	}
	if role, ok := strings.CutPrefix(to, "role:"); ok {
		return Subject{"role", role}
	}
	return Subject{"id", to}
}

// ErrNobody says that an entry names no principals.
var ErrNobody = errors.New("missing; name principals, role:NAME, or \"*\"")

// CheckSubject returns what is wrong with the name of principals in a list.
func CheckSubject(to string) error {
	tenant, name, of := strings.Cut(strings.TrimPrefix(to, "role:"), "/")
	if tenant == "" || of && (name == "" || strings.Contains(name, "/")) {
		return fmt.Errorf("%q names no principal; expected the id of a principal, role:NAME, or *, with TENANT/ before the name of one of a tenant", to)
	}
	return nil
}

// subjectsOf returns all names that a principal has in a list; false if the arguments
// are no id and no roles. An id is one as of [match.Name].
func subjectsOf(id, roles *ast.Term) ([]Subject, bool) {
	name, ok1 := id.Value.(ast.String)
	list, ok2 := roles.Value.(*ast.Array)
	if !ok1 || !ok2 {
		return nil, false
	}
	tenant, _, of := strings.Cut(string(name), "/")
	who := []Subject{everybody, {"id", string(name)}}
	if of {
		tenant += "/"
		who = []Subject{{"*", tenant}, anybody, {"id", string(name)}}
	} else {
		tenant = ""
	}
	for i := range list.Len() {
		role, ok := list.Elem(i).Value.(ast.String)
		if !ok {
			continue
		}
		if who = append(who, Subject{"role", tenant + string(role)}); of {
			who = append(who, Subject{"role", "*/" + string(role)})
		}
	}
	return who, true
}
