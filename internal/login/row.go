package login

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// rows are the grants of principals at servers that were asked for.
type rows struct {
	o      Options
	actors actors

	mu    sync.Mutex
	byKey map[vault.Key]*row
}

// maxRows is how many rows there may be before those of principals without a login are forgotten.
const maxRows = 10_000

// row returns what is known of a principal's grant at a server.
func (t *rows) row(s *Server, o gate.Owner) *row {
	k := key(s, s.owner(o))
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byKey[k]
	if r == nil {
		if len(t.byKey) >= maxRows {
			maps.DeleteFunc(t.byKey, func(_ vault.Key, r *row) bool { return r.empty() })
		}
		r = &row{all: t, key: k}
		t.byKey[k] = r
	}
	return r
}

// A row is a principal's grant at a server, as it is in the vault.
type row struct {
	all *rows
	key vault.Key

	mu      sync.Mutex
	read    bool              // from the vault
	grant   *grant            // nil: none
	problem error             // of the last refresh, or of reading
	after   time.Time         // before which it is not refreshed again
	forced  time.Time         // when it was refreshed last because the server refused
	busy    chan struct{}     // closed when the refresh that is under way ends; nil: none is
	lacks   []string          // scopes that the server has asked for, and the grant has not
	server  *Server           // as it was configured when the gateway's own grant was discovered
	narrow  map[string]*grant // tokens of grant, by what they are for
	plain   bool              // narrowed by the refresh token: the authorization server knows no exchange
}

func (r *row) owner() gate.Owner { return gate.Owner{Tenant: r.key.Tenant, ID: r.key.Principal} }

// empty reports whether nothing would be missed of a row. One that is in use is not.
func (r *row) empty() bool {
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	return r.read && r.grant == nil && r.busy == nil && len(r.lacks) == 0
}

// lacked returns the scopes that the server has asked for, with those that the grant has, so that a
// login for more scopes loses none.
func (r *row) lacked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lacks) == 0 || r.grant == nil {
		return slices.Clone(r.lacks)
	}
	return slices.Concat(r.lacks, r.grant.Scopes)
}

// load reads the grant once the vault opens. The caller holds mu.
func (r *row) load() {
	if r.read {
		return
	}
	raw, err := r.all.o.Vault.Get(r.key)
	r.read, r.problem = !errors.Is(err, vault.ErrKey) && !errors.Is(err, vault.ErrAway), nil
	var g *grant
	if err == nil {
		if err = json.Unmarshal(raw, &g); err != nil {
			g = nil
		}
	}
	if r.read && !r.grant.is(g) {
		r.grant, r.after, r.narrow = g, time.Time{}, nil
	}
	if err != nil && !errors.Is(err, vault.ErrNone) {
		r.problem = err
	}
}

func (r *row) has() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	return r.grant != nil
}

// put commits a grant before anything uses it. The caller holds mu.
func (r *row) put(g *grant) error {
	raw, err := json.Marshal(g)
	if err == nil {
		err = r.all.o.Vault.Put(r.key, raw)
	}
	if err == nil {
		r.grant, r.read, r.problem, r.after, r.narrow = g, true, nil, time.Time{}, nil
	}
	return err
}

func (r *row) event(kind string, g *grant, err error) Event {
	return Event{Kind: kind, Server: r.key.Server, Owner: gate.Owner{Tenant: r.key.Tenant, ID: r.key.Principal}, Issuer: g.Issuer, Credential: g.ID, Scopes: g.Scopes, Err: err}
}

func (r *row) needed(cause error) error {
	return &Needed{r.key.Server, "server " + r.key.Server + " needs a login: " + how(r.key), cause, r.key.Kind == loginKind}
}

// A Login is a grant as people see it.
type Login struct {
	Server     string    `json:"server"`
	Tenant     string    `json:"tenant,omitempty"`
	Principal  string    `json:"principal,omitempty"` // "": one of everybody
	Issuer     string    `json:"issuer,omitempty"`    // "": the token was given
	Scopes     []string  `json:"scopes,omitempty"`
	Credential string    `json:"credential,omitempty"` // as the audit log names it
	Made       time.Time `json:"made,omitzero"`
	Expires    time.Time `json:"expires,omitzero"` // of one that is not refreshed
	Problem    string    `json:"problem,omitempty"`
}

// Whose is the principal of a login, as configurations and --as write it.
func (l Login) Whose() string {
	if l.Principal == "" {
		return "everybody"
	}
	return match.Name(l.Tenant, l.Principal)
}

func (r *row) shown(g *grant) *Login {
	to := &Login{Server: r.key.Server, Tenant: r.key.Tenant, Principal: r.key.Principal, Issuer: g.Issuer, Scopes: g.Scopes, Credential: g.ID, Made: g.Made}
	if g.Refresh == "" {
		to.Expires = g.Expires
	}
	return to
}
