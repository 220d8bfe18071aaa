package gate

import (
	"fmt"
	"slices"
	"strings"
)

// Approve has a person approve what is allowed: see [Decision.Asked]. By, if it is not
// empty, names who may, in the words of grants: an id, role:NAME or *, with TENANT/ before the
// name of one of a tenant. NotSelf lets nobody approve what is their own call.
type Approve struct {
	By      []string
	NotSelf bool
}

// Lets returns why an answer of somebody to a question about a caller's call does not count;
// nil if it does. The error is a [*NotApproved].
func (a Approve) Lets(who, caller *Principal) error {
	switch {
	case a.NotSelf && who.Owner == caller.Owner:
		return &NotApproved{Reason: fmt.Sprintf("%s has made the call, and nobody approves their own", Visible(who.Name()))}
	case len(a.By) > 0 && !who.in(a.By):
		return &NotApproved{Reason: fmt.Sprintf("%s is none of those who may approve it: %s", Visible(who.Name()), strings.Join(a.By, ", "))}
	}
	return nil
}

// in reports whether a list names a principal, in the words of grants.
func (p *Principal) in(list []string) bool {
	return slices.ContainsFunc(list, func(to string) bool {
		name, role := strings.CutPrefix(to, "role:")
		tenant := ""
		if before, after, of := strings.Cut(name, "/"); of {
			tenant, name = before, after
		}
		every := tenant == "*" && p.Tenant != ""
		switch {
		case tenant != p.Tenant && !every:
			return false
		case role:
			return slices.Contains(p.Roles, name)
		default:
			return name == "*" || name == p.ID && !every
		}
	})
}

// approvers are what a decision demands of who approves it.
func (d Decision) approvers() (all []Approve) {
	for _, o := range d.Obligations {
		if a, ok := o.(Approve); ok && (len(a.By) > 0 || a.NotSelf) {
			all = append(all, a)
		}
	}
	return all
}
