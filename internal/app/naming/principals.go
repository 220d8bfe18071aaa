package naming

import (
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A PrincipalError says that a command or a client named a principal that the
// configuration does not.
type PrincipalError struct {
	ID    string   `json:"id"`
	Known []string `json:"known"`
}

func (e *PrincipalError) Error() string {
	return fmt.Sprintf("no principal %q; list it under principals in the configuration (there: %s)", e.ID, strings.Join(e.Known, ", "))
}

// Principal returns the principal that a command or a stdio client names; ""
// is the local one, which need not be listed.
func Principal(c *config.Config, id string) (*gate.Principal, error) {
	p := gate.Local()
	if id == "" {
		id = p.ID
	}
	known := []string{p.ID}
	for _, listed := range c.Principals {
		owner := gate.Owner{Tenant: listed.Tenant, ID: listed.ID}
		if match.Name(listed.Tenant, listed.ID) == id {
			p.Owner, p.Roles, p.Groups, p.Identities = owner, listed.Roles, gate.Groups(nil).Within(listed.Groups), listed.Identities
			return p, nil
		}
		if owner != p.Owner {
			known = append(known, match.Name(listed.Tenant, listed.ID))
		}
	}
	if id == p.ID {
		return p, nil
	}
	return nil, &PrincipalError{id, known}
}

// CanCome reports whether a principal can have an id: it is listed, or what issuers, proxies and
// certificates say decides.
func CanCome(c *config.Config, id string) bool {
	_, err := Principal(c, id)
	return err == nil || len(c.Auth.Issuers) > 0 || c.Auth.MTLS != nil || c.Auth.Proxy != nil
}

// MappedRoles are the roles that credentials give, with the key that says so.
func MappedRoles(c *config.Config) map[string]string {
	roles := make(map[string]string)
	for _, i := range c.Auth.Issuers {
		for _, role := range i.Roles {
			roles[role] = "auth.issuers." + i.Name + ".roles"
		}
	}
	if c.Auth.Proxy != nil {
		for _, role := range c.Auth.Proxy.Roles {
			roles[role] = "auth.proxy.roles"
		}
	}
	return roles
}

// Offered is [Principal], which is offered what is in one of the groups, too, unless
// there are none.
func Offered(c *config.Config, id string, groups []string) (*gate.Principal, error) {
	p, err := Principal(c, id)
	if err != nil {
		return nil, err
	}
	p.Groups = p.Groups.Within(groups)
	return p, nil
}
