package gate

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Owner is the key under which everything that belongs to one principal is kept.
type Owner struct {
	Tenant string // "" is the only tenant of a gateway without tenants
	ID     string
}

// A Principal is the verified identity of a caller. It is immutable, shared by all calls of one
// credential, and holds no secret.
type Principal struct {
	Owner
	Auth   string // how it was verified: local, bearer, apikey, mtls, unix or proxy
	Client string // verified client instance; "" if none
	// Issuer is the issuer that has verified it, by its name here, and Credential names the
	// credential without giving it away; "" if there is none. Policies see neither.
	Issuer, Credential string
	Roles              []string
	Claims             Doc
	// Groups are what the principal is offered.
	Groups Groups
	// Identities are the principal's own addresses, accounts and folders, which count as
	// trusted values.
	Identities provenance.Identities
}

// Local is the principal of every caller that has not been told apart: the
// person at the machine, on a gateway without authentication.
func Local() *Principal { return &Principal{Owner: Owner{ID: "local"}, Auth: authLocal} }

const authLocal = "local"

// offered returns those of the tools that are in the principal's groups, to use instead of tools. A
// nil principal gets all of them: no policy shows it any.
func (p *Principal) offered(tools []*Tool) []*Tool {
	if p == nil || len(p.Groups) == 0 {
		return tools
	}
	return slices.DeleteFunc(tools, func(t *Tool) bool { return !p.Groups.Has(t) })
}

// A SessionKey names a session. The gateway mints it; a client never chooses it.
type SessionKey struct {
	Owner
	ID string
}
