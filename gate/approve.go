package gate

// Approve has a person approve what is allowed: see [Decision.Asked]. By, if it is not
// empty, names who may, in the words of grants: an id, role:NAME or *, with TENANT/ before the
// name of one of a tenant. NotSelf lets nobody approve what is their own call.
type Approve struct {
	By      []string
	NotSelf bool
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
