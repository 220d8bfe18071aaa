package callers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
)

// The operations of callers.
var (
	CreateKey = operation.New[KeyRequest, *Key]("key-create")
	Keys      = operation.New[operation.None, []Key]("keys")
	RevokeKey = operation.New[KeyID, *Key]("key-revoke")
	Revoke    = operation.New[RevokeRequest, *Revoked]("auth-revoke")
	WhoAmI    = operation.New[WhoRequest, *Who]("whoami")
	Check     = operation.New[operation.None, []Finding]("auth-check")
)

// Operations adds those of callers to a table.
func (s *Callers) Operations(t operation.Table) {
	CreateKey.Add(t, s.CreateKey)
	operation.AddPlain(t, Keys, s.Keys)
	RevokeKey.Add(t, func(ctx context.Context, r KeyID) (*Key, error) { return s.RevokeKey(ctx, r.ID) })
	Revoke.Add(t, s.Revoke)
	WhoAmI.Add(t, s.WhoAmI)
	operation.AddPlain(t, Check, s.Check)
}

// A KeyRequest asks for an API key.
type KeyRequest struct {
	Name    string        `json:"name"`
	As      string        `json:"as"` // a principal of the configuration
	Roles   []string      `json:"roles,omitempty"`
	Groups  []string      `json:"groups,omitempty"`
	Servers []string      `json:"servers,omitempty"`
	Expires time.Duration `json:"expires,omitempty"` // from now; 0: never
}

// A Key is an API key as commands show it: never the key itself, but once.
type Key struct {
	Secret    string    `json:"key,omitempty"` // shown when it is made
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal"`
	Roles     []string  `json:"roles,omitempty"`
	Groups    []string  `json:"groups,omitempty"`
	Servers   []string  `json:"servers,omitempty"`
	State     string    `json:"state"` // active, expired, revoked, or orphaned: the configuration has no such principal
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

// Cells are what a table shows of a key: its id, name, principal, state, end and limits.
func (k Key) Cells() []string {
	who, ends := match.Name(k.Tenant, k.Principal), "never"
	if !k.Expires.IsZero() {
		ends = k.Expires.UTC().Format(time.RFC3339)
	}
	var only []string
	for i, names := range [][]string{k.Roles, k.Groups, k.Servers} {
		for _, name := range names {
			only = append(only, []string{"role ", "group ", "server "}[i]+name)
		}
	}
	return []string{k.ID, k.Name, who, k.State, ends, strings.Join(only, ", ")}
}

// CreateKey makes an API key, which is not shown again.
func (s *Callers) CreateKey(ctx context.Context, r KeyRequest) (*Key, error) {
	c := s.Config()
	if !c.Auth.Keys {
		return nil, operation.Misuse("API keys are not taken: write auth: {keys: true} into the configuration")
	}
	tenant, id := config.SplitPrincipal(r.As)
	listed := slices.IndexFunc(c.Principals, func(p config.Principal) bool { return p.Tenant == tenant && p.ID == id })
	if listed < 0 || id == gate.Local().ID {
		return nil, operation.Misuse("no principal %q: list it under principals in the configuration, with the roles that its keys may have at most", r.As)
	}
	for _, role := range r.Roles {
		if !slices.Contains(c.Principals[listed].Roles, role) {
			return nil, operation.Misuse("principal %s has no role %q: a key has some of the roles of its principal", r.As, role)
		}
	}
	for _, group := range r.Groups {
		if _, ok := c.AllGroups()[group]; !ok {
			return nil, operation.Misuse("no group %q in the configuration", group)
		}
	}
	for _, server := range r.Servers {
		if !slices.ContainsFunc(c.Servers, func(s config.Server) bool { return s.ID == server }) && server != "local" {
			return nil, operation.Misuse("no server %q in the configuration", server)
		}
	}
	key := auth.Key{Name: r.Name, Tenant: tenant, Principal: id, Roles: r.Roles, Groups: r.Groups, Servers: r.Servers}
	if r.Expires > 0 {
		key.Expires = time.Now().Add(r.Expires).UTC().Truncate(time.Second)
	}
	secret, made, err := s.keys.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := s.noteKey(made, "made"); err != nil { // what is not recorded does not hold
		return nil, fmt.Errorf("%w; the key is revoked: %v", err, s.keys.Revoke(ctx, made.ID))
	}
	shown := s.showKey(made)
	shown.Secret = secret
	return &shown, nil
}

func (s *Callers) noteKey(k auth.Key, what string) error {
	return s.Gateway.Note(audit.Entry{
		Event: audit.Key, Code: codes.OK, Tenant: k.Tenant, Principal: k.Principal, Roles: k.Roles, Credential: k.ID, Reasons: []string{what},
	})
}

func (s *Callers) showKey(k auth.Key) Key {
	to := Key{
		ID: k.ID, Name: k.Name, Tenant: k.Tenant, Principal: k.Principal, Roles: k.Roles, Groups: k.Groups, Servers: k.Servers,
		State: "active", Created: k.Created, Expires: k.Expires, Revoked: k.Revoked,
	}
	known := slices.ContainsFunc(s.Config().Principals, func(p config.Principal) bool { return p.Tenant == k.Tenant && p.ID == k.Principal })
	switch {
	case !k.Revoked.IsZero():
		to.State = "revoked"
	case !k.Expires.IsZero() && time.Now().After(k.Expires):
		to.State = "expired"
	case !known:
		to.State = "orphaned"
	}
	return to
}

// Keys returns all API keys, the oldest first.
func (s *Callers) Keys(context.Context) ([]Key, error) {
	all := []Key{}
	for _, k := range s.keys.List() {
		all = append(all, s.showKey(k))
	}
	return all, nil
}

// RevokeKey ends an API key for good, and what is under way with it.
func (s *Callers) RevokeKey(ctx context.Context, id string) (*Key, error) {
	err := s.keys.Revoke(ctx, id)
	s.endKeys() // also if the file could not be written: the key is refused from now on
	if err != nil {
		return nil, err
	}
	for _, k := range s.keys.List() {
		if k.ID == id {
			shown := s.showKey(k)
			return &shown, s.noteKey(k, "revoked")
		}
	}
	return nil, auth.ErrNoKey
}

// endKeys ends what is under way with keys that do not hold.
func (s *Callers) endKeys() {
	holds := make(map[string]bool)
	for _, k := range s.keys.List() {
		holds[k.ID] = s.showKey(k).State == "active"
	}
	s.revoked(func(who *gate.Principal) bool { return who.Auth == auth.APIKey && !holds[who.Credential] })
}

// WatchKeys returns what reads API keys again if another process has changed them.
func (s *Callers) WatchKeys(ctx context.Context) func() {
	failed := ""
	return func() {
		changed, err := s.keys.Reread(ctx)
		if changed {
			s.endKeys()
		}
		if err != nil && err.Error() != failed {
			s.Log.Error("API keys cannot be read; the keys that were read before are still in use", "error", err)
		}
		if failed = ""; err != nil {
			failed = err.Error()
		}
	}
}

// FollowKeys takes over keys that another gateway has made and revoked.
func (s *Callers) FollowKeys(ctx context.Context) error {
	changed, err := s.keys.Reread(ctx)
	if changed {
		s.endKeys()
	}
	return err
}

// A RevokeRequest says which tokens end before their time.
type RevokeRequest struct {
	Issuer    string `json:"issuer,omitempty"`
	TokenID   string `json:"jti,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Principal string `json:"principal,omitempty"` // TENANT/ID, or ID
}

// Revoked is what came of it.
type Revoked struct {
	Before time.Time `json:"before"` // tokens that were made later hold
	Seen   int       `json:"seen"`   // credentials that were in use a moment ago
	Keys   []string  `json:"keys"`   // ids of the API keys of the principal, which are revoked for good
}

// Revoke ends tokens before their time, and what is under way with them; of a principal, unless
// one issuer's are meant, API keys too. All of it holds from now on; an error says what does not
// outlive the gateway, because a file could not be written.
func (s *Callers) Revoke(ctx context.Context, r RevokeRequest) (*Revoked, error) {
	revocation := auth.Revocation{Issuer: r.Issuer, TokenID: r.TokenID, Subject: r.Subject, Before: time.Now().UTC().Truncate(time.Second)}
	revocation.Tenant, revocation.Principal = config.SplitPrincipal(r.Principal)
	s.revoking.Lock()
	defer s.revoking.Unlock()
	now := s.now.Load()
	ended, err := now.Revoke(revocation)
	if err != nil {
		return nil, err
	}
	owner := gate.Owner{Tenant: revocation.Tenant, ID: revocation.Principal}
	s.endTokens(revocation, ended)
	all := now.Revocations()
	revocation = all[len(all)-1]
	done := &Revoked{revocation.Before, len(ended), []string{}}
	var unwritten []error
	for _, k := range s.keys.List() {
		if r.Principal == "" || r.Issuer != "" || (gate.Owner{Tenant: k.Tenant, ID: k.Principal}) != owner || !k.Revoked.IsZero() {
			continue
		}
		if _, err := s.RevokeKey(ctx, k.ID); err != nil {
			unwritten = append(unwritten, fmt.Errorf("API key %s: %w", k.ID, err))
		}
		done.Keys = append(done.Keys, k.ID)
	}
	if err := auth.KeepRevocation(ctx, s.revocations, revocation); err != nil {
		unwritten = append(unwritten, fmt.Errorf("the revocation holds until the gateway ends, and no longer: %w", err))
	}
	if err := errors.Join(unwritten...); err != nil {
		return nil, err
	}
	return done, s.Gateway.Note(audit.Entry{
		Event: audit.Revoke, Code: codes.OK, Issuer: r.Issuer, Tenant: revocation.Tenant, Principal: revocation.Principal, Reasons: revocation.Words(),
	})
}

// FollowRevocations takes over what another gateway has revoked.
func (s *Callers) FollowRevocations(ctx context.Context) error {
	s.revoking.Lock()
	defer s.revoking.Unlock()
	all, generation, err := auth.LoadRevocations(ctx, s.revocations, s.revokedAt)
	if err != nil {
		return err
	}
	now := s.now.Load()
	known := now.Revocations()
	for _, r := range all {
		if slices.ContainsFunc(known, r.Equal) {
			continue
		}
		ended, err := now.Revoke(r)
		if err != nil {
			return err
		}
		s.endTokens(r, ended)
	}
	s.revokedAt = generation
	return nil
}

// endTokens ends what is under way with tokens that a revocation ends: those that were seen, and
// those that name its principal, which need not be remembered.
func (s *Callers) endTokens(r auth.Revocation, ended []*gate.Principal) {
	owner := gate.Owner{Tenant: r.Tenant, ID: r.Principal}
	s.revoked(func(who *gate.Principal) bool {
		named := who.Auth == auth.Bearer && who.Owner == owner && (r.Issuer == "" || r.Issuer == who.Issuer)
		return named || slices.ContainsFunc(ended, func(e *gate.Principal) bool { return e.Credential == who.Credential && e.Owner == who.Owner })
	})
}

// A KeyID names an API key.
type KeyID struct {
	ID string `json:"id"`
}
