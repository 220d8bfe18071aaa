package match

import (
	"slices"
	"strings"
)

// Name is how lists name somebody: TENANT/ID, or ID without a tenant.
func Name(tenant, id string) string {
	if tenant != "" {
		return tenant + "/" + id
	}
	return id
}

// Listed reports whether a list names somebody, in the words of grants: by an id, by role:NAME,
// or by *, with TENANT/ before the name of one of a tenant, and */ for any tenant.
func Listed(list []string, tenant, id string, roles []string) bool {
	return slices.ContainsFunc(list, func(to string) bool {
		name, role := strings.CutPrefix(to, "role:")
		of := ""
		if before, after, ok := strings.Cut(name, "/"); ok {
			of, name = before, after
		}
		every := of == "*" && tenant != ""
		switch {
		case of != tenant && !every:
			return false
		case role:
			return slices.Contains(roles, name)
		default:
			return name == "*" || name == id && !every
		}
	})
}
