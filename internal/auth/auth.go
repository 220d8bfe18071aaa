package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apikey"
)

// The ways in which a principal can have been verified: gate.Principal.Auth.
const (
	Local   = "local"
	Bearer  = "bearer"
	APIKey  = "apikey"
	MTLS    = "mtls"
	Unix    = "unix"
	ByProxy = "proxy"
)

// Options says whose credentials are taken. The zero Options take none.
type Options struct {
	Issuers []Issuer
	// Keys are the gateway's own; nil: none.
	Keys *Keys
	// MTLS is which part of a client certificate names its holder; "": none does.
	MTLS string
	// Unix has the users of a Unix socket, by their number; nil: they are not distinguished.
	Unix map[int]gate.Owner
	// Proxy may name the sender of a request; nil: no proxy may.
	Proxy *Proxy
	// Local is who sends requests without a credential; nil: they are refused.
	Local *gate.Principal
	// Principals are those of the configuration, by tenant and id. A sender that is one of them has its
	// roles and groups, and no more, whatever a credential says.
	Principals map[gate.Owner]*gate.Principal
	// Revoked are revocations of before.
	Revoked []Revocation
	// Before is the authenticator that the new one replaces: credentials that it has let in can still
	// be revoked, and keep their handles. nil: there was none.
	Before *Authenticator
	// Now is the clock; nil: the machine's.
	Now func() time.Time
}

// An Authenticator finds out who sends a request. Its methods may be called at the same
// time. Two requests with one credential have the same *gate.Principal, for as long as
// nothing about it changes.
type Authenticator struct {
	o       Options
	issuers map[string]*issuer // by iss
	scopes  []string           // that all issuers need
	salt    []byte             // of credential handles

	mu      sync.Mutex
	seen    map[sight]verified         // that were let in
	bad     map[sight]verified         // that were not: strangers take no room from the others
	passed  []verified                 // that those before have let in, as of letIn
	people  map[string]*gate.Principal // by all that is said of one
	holders map[*Key]*gate.Principal   // of keys as they are now
	revoked []Revocation
}

// claimed is what a credential says about its holder, before the configuration is applied.
type claimed struct {
	how                        string
	owner                      gate.Owner
	client, issuer, credential string
	roles                      []string
	narrows                    bool // the credential says which roles
	groups                     gate.Groups
	claims                     gate.Doc
}

// verified is what a credential was found to be, until when.
type verified struct {
	who      *gate.Principal
	identity Identity
	until    time.Time
	refusal  *Refusal
	revoked  int // how many revocations it was checked against
}

// Bounds of what is remembered. A token is verified again after [remember], even if it ends later, and
// a bad one after [rememberBad].
const (
	maxSeen     = 10_000
	maxBad      = 4_096
	maxPeople   = 20_000
	remember    = 5 * time.Minute
	rememberBad = 30 * time.Second
)

// New checks the options and returns an authenticator.
func New(o Options) (*Authenticator, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authenticator{o: o, revoked: slices.Clone(o.Revoked), issuers: map[string]*issuer{}, salt: make([]byte, 32), seen: map[sight]verified{}, bad: map[sight]verified{}, people: map[string]*gate.Principal{}, holders: map[*Key]*gate.Principal{}}
	if _, err := rand.Read(a.salt); err != nil {
		return nil, err
	}
	if o.Before != nil {
		a.salt, a.passed = o.Before.salt, o.Before.open()
		a.o.Before = nil
	}
	verifying := make(chan struct{}, max(1, runtime.NumCPU()/2))
	names := map[string]bool{}
	for _, c := range o.Issuers {
		if _, twice := a.issuers[c.URL]; twice || names[c.Name] {
			return nil, fmt.Errorf("issuer %s: its name or its URL is also that of another", c.Name)
		}
		i, err := newIssuer(c, verifying, o.Now)
		if err != nil {
			return nil, err
		}
		a.issuers[c.URL], names[c.Name] = i, true
		a.scopes = append(a.scopes, c.Scopes...)
	}
	slices.Sort(a.scopes)
	a.scopes = slices.Compact(a.scopes)
	return a, nil
}

// Issuers returns the URLs of the issuers, for metadata (RFC 9728, authorization_servers).
func (a *Authenticator) Issuers() (urls []string) {
	for _, c := range a.o.Issuers {
		urls = append(urls, c.URL)
	}
	return urls
}

// Scopes returns what a token needs, for challenges and metadata.
func (a *Authenticator) Scopes() []string { return a.scopes }

// Principal returns who sends a request for a resource, by its URL; a token for one of the
// further URLs, the parents of the first, is taken as well. The error is a [*Refusal].
func (a *Authenticator) Principal(r *http.Request, resources ...string) (*gate.Principal, error) {
	who, refusal := a.sender(r, resources)
	if refusal != nil {
		return nil, refusal
	}
	return who, nil
}

// local has the id of callers that are not distinguished from each other; no credential gives it.
var local = gate.Local()

func (a *Authenticator) sender(r *http.Request, resources []string) (*gate.Principal, *Refusal) {
	proxied := a.o.Proxy != nil && a.o.Proxy.proves(r, a.o.Now())
	if a.o.Proxy != nil && !proxied {
		a.o.Proxy.forget(r)
	}
	text, refusal := credential(r)
	switch {
	case refusal != nil:
		return nil, refusal
	case text != "" && proxied && r.Header.Get(a.o.Proxy.User) != "":
		return nil, malformed("the proxy names a user, and the request also has a credential: configure the proxy to remove the header Authorization")
	case text != "":
		who, identity, refusal := a.verify(r.Context(), text, resources)
		if refusal == nil && identity.Bound != "" && !bound(r, identity.Bound) {
			return nil, invalid("it is bound to a client certificate, and the request has no such certificate")
		}
		return who, refusal
	case proxied:
		return a.proxied(r.Header)
	case a.o.MTLS != "" && certificate(r) != nil:
		return a.certified(certificate(r))
	}
	if p := PeerOf(r.Context()); p.Unix && !p.Proxy && a.o.Unix != nil {
		return a.local(p.UID)
	}
	if a.o.Local != nil {
		return a.o.Local, nil
	}
	return nil, missing(a.scopes, "no credential")
}

// Identify also returns what the credential proves, for people who want to know what a token of theirs
// means here. The error is a [*Refusal].
func (a *Authenticator) Identify(ctx context.Context, text string, resources ...string) (*gate.Principal, Identity, error) {
	who, identity, refusal := a.verify(ctx, text, resources)
	if refusal != nil {
		return nil, identity, refusal
	}
	return who, identity, nil
}

// credential returns the one credential of a request, "" for none. It refuses two: a proxy in front of
// the gateway may have checked the other one.
func credential(r *http.Request) (string, *Refusal) {
	if r.URL.RawQuery != "" {
		for name := range r.URL.Query() {
			if name == "access_token" || strings.EqualFold(name, "api_key") {
				return "", malformed("the request has a credential in its URL, where logs would keep it; send it in the header Authorization")
			}
		}
	}
	authorization, keys := r.Header.Values("Authorization"), r.Header.Values("X-Api-Key")
	switch {
	case len(authorization)+len(keys) == 0:
		return "", nil
	case len(authorization)+len(keys) > 1:
		return "", malformed("the request has more than one credential")
	case len(keys) == 1:
		if _, ok := apikey.ID(keys[0]); !ok {
			return "", invalid("it does not have the form of an API key")
		}
		return keys[0], nil
	}
	scheme, text, ok := strings.Cut(authorization[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || text == "" || strings.ContainsAny(text, " \t,") {
		return "", malformed("the header Authorization holds no bearer token")
	}
	return text, nil
}

// verify looks at a credential, unless that was done a moment ago.
func (a *Authenticator) verify(ctx context.Context, text string, resources []string) (*gate.Principal, Identity, *Refusal) {
	if strings.HasPrefix(text, apikey.Prefix) {
		return a.key(text)
	}
	sum := sightOf(text, resources)
	now := a.o.Now()
	a.mu.Lock()
	known, ok := a.seen[sum]
	if ok {
		known = a.heldAgainst(known)
		a.seen[sum] = known
	}
	if !ok || !now.Before(known.until) {
		if bad, is := a.bad[sum]; is {
			known, ok = bad, true
		}
	}
	a.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.who, known.identity, known.refusal
	}
	found := a.look(ctx, text, resources)
	a.mu.Lock()
	defer a.mu.Unlock()
	found = a.heldAgainst(found) // what was revoked while it was looked at did not end it
	switch {
	case found.refusal == nil:
		forget(a.seen, maxSeen, now)
		a.seen[sum] = found
	case found.refusal.Status == http.StatusUnauthorized:
		forget(a.bad, maxBad, now)
		a.bad[sum] = found
	}
	return found.who, found.identity, found.refusal
}

// A sight is of a token and of what it is for: the same token may hold for one resource
// and not for another. The further resources follow from the first.
type sight struct {
	token    [sha256.Size]byte
	resource string
}

func sightOf(text string, resources []string) (s sight) {
	if len(resources) > 0 {
		s.resource = resources[0]
	}
	s.token = sha256.Sum256(bytesOf(text))
	return s
}

// bytesOf returns the bytes of a text without a copy, which would take most of the time. The caller
// must not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// forget makes room for one more of at most so many: what has ended goes, then half of the rest,
// whichever. The lock is held.
func forget(known map[sight]verified, most int, now time.Time) {
	if len(known) < most {
		return
	}
	for sum, v := range known {
		if !now.Before(v.until) {
			delete(known, sum)
		}
	}
	for sum := range known {
		if len(known) <= most/2 {
			return
		}
		delete(known, sum)
	}
}

// look verifies a token.
func (a *Authenticator) look(ctx context.Context, text string, resources []string) verified {
	now := a.o.Now()
	no := func(r *Refusal) verified { return verified{refusal: r, until: now.Add(rememberBad)} }
	t, refusal := parseToken(text)
	if refusal != nil {
		return no(refusal)
	}
	iss := t.claims.Get("iss")
	i, ok := a.issuers[iss.Text()]
	if !ok || iss.Kind() != doc.String {
		return no(invalid("the token's issuer is not configured here"))
	}
	if refusal := i.verify(ctx, t, resources); refusal != nil {
		return no(refusal)
	}
	if refusal := i.scoped(t); refusal != nil {
		return no(refusal)
	}
	identity, refusal := i.identify(t, len(a.issuers) > 1)
	if refusal != nil {
		return no(refusal)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone(identity) {
		return no(invalid("it is revoked"))
	}
	who, refusal := a.principal(claimed{
		how: Bearer, owner: identity.owner(), client: identity.Client, issuer: identity.Issuer, credential: a.Handle(identity),
		roles: identity.Roles, narrows: i.Claims.Roles != "", groups: identity.Groups, claims: identity.Claims,
	})
	if refusal != nil {
		return no(refusal)
	}
	until := now.Add(remember)
	if identity.Ends.Before(until) {
		until = identity.Ends
	}
	return verified{who: who, identity: identity, until: until, revoked: len(a.revoked)}
}

// key verifies an API key.
func (a *Authenticator) key(text string) (*gate.Principal, Identity, *Refusal) {
	if a.o.Keys == nil {
		return nil, Identity{}, invalid("this endpoint does not accept API keys")
	}
	key, refusal := a.o.Keys.find(text)
	if refusal != nil {
		return nil, Identity{}, refusal
	}
	identity := Identity{ID: key.Principal, Tenant: key.Tenant, Client: key.ID, Ends: key.Expires}
	a.mu.Lock()
	defer a.mu.Unlock()
	if who := a.holders[key]; who != nil {
		return who, identity, nil
	}
	owner := gate.Owner{Tenant: key.Tenant, ID: key.Principal}
	if a.o.Principals[owner] == nil {
		return nil, identity, stranger("API key %s is of principal %s, which the configuration no longer has", key.ID, key.Principal)
	}
	c := claimed{how: APIKey, owner: owner, client: key.ID, credential: key.ID, roles: key.Roles, narrows: key.Roles != nil, groups: gate.Groups(nil).Within(key.Groups)}
	c.groups = c.groups.Within(ofServers(key.Servers))
	who, refusal := a.principal(c)
	if refusal == nil {
		a.holders[key] = who
	}
	return who, identity, refusal
}

// ofServers are the names of groups that stand for servers.
func ofServers(servers []string) (names []string) {
	for _, s := range servers {
		names = append(names, gate.ServerGroup+s)
	}
	return names
}

// principal returns who somebody is in the configuration, the same pointer for the same
// words. Roles that the credential names are cut down to those of the configuration,
// where it knows the principal, and so are groups. The lock is held.
func (a *Authenticator) principal(c claimed) (*gate.Principal, *Refusal) {
	if strings.EqualFold(c.owner.ID, local.ID) {
		return nil, stranger("the id %s is reserved for callers without authentication", c.owner.ID)
	}
	who := gate.Principal{
		Owner: c.owner, Auth: c.how, Client: c.client, Issuer: c.issuer, Credential: c.credential,
		Roles: c.roles, Groups: c.groups, Claims: c.claims,
	}
	if known := a.o.Principals[c.owner]; known != nil {
		who.Groups, who.Identities = append(slices.Clip(known.Groups), c.groups...), known.Identities
		if !c.narrows {
			who.Roles = known.Roles
		} else {
			who.Roles = slices.DeleteFunc(slices.Clone(c.roles), func(r string) bool { return !slices.Contains(known.Roles, r) })
		}
	}
	words := fmt.Sprintf("%q %q %q %q %q %q %q %q %s", who.Tenant, who.ID, c.how, c.client, c.issuer, c.credential, who.Roles, who.Groups, c.claims.Canonical())
	if same := a.people[words]; same != nil {
		return same, nil
	}
	if len(a.people) >= maxPeople {
		clear(a.people)
		clear(a.holders)
	}
	a.people[words] = &who
	return &who, nil
}

// A Revocation ends tokens before their time: of an issuer, or of any if that is "", the
// one of a token id, or those of a subject or a principal that were made before a time.
type Revocation struct {
	Issuer    string    `json:"issuer,omitempty"` // its name
	TokenID   string    `json:"jti,omitempty"`
	Subject   string    `json:"sub,omitempty"`
	Tenant    string    `json:"tenant,omitempty"` // with
	Principal string    `json:"principal,omitempty"`
	Before    time.Time `json:"before"` // zero: the time of the revocation
}

// ErrNothing is the error for a revocation that names nothing.
var ErrNothing = errors.New("a revocation names a token id, a subject or a principal")

// heldAgainst returns what a token is after the revocations since it was looked at. The lock is held.
func (a *Authenticator) heldAgainst(v verified) verified {
	if v.refusal == nil && v.revoked != len(a.revoked) && a.gone(v.identity) {
		v = verified{refusal: invalid("it is revoked"), until: a.o.Now().Add(rememberBad)}
	}
	v.revoked = len(a.revoked)
	return v
}

// Revoke takes effect with the next request. It returns the principals of the credentials
// that it ends, as far as they were seen: their streams, parked calls and jobs have to end.
func (a *Authenticator) Revoke(r Revocation) (ended []*gate.Principal, err error) {
	if r.TokenID == "" && r.Subject == "" && r.Principal == "" {
		return nil, ErrNothing
	}
	now := a.o.Now()
	if r.Before.IsZero() {
		r.Before = now
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	in := a.letIn()
	for _, v := range in { // what was let in was made before now, whatever the clock of its issuer says
		if made := v.identity.Made; made.After(now) && r.names(v.identity) && !r.Before.Before(now.Truncate(time.Second)) && made.After(r.Before) {
			r.Before = made
		}
	}
	a.revoked = append(a.revoked, r)
	for _, v := range in {
		if r.matches(v.identity) && !slices.Contains(ended, v.who) {
			ended = append(ended, v.who)
		}
	}
	return ended, nil
}

// outlives is for how long after the end of a token something that was begun with it is looked
// for: jobs go on.
const outlives = 24 * time.Hour

// letIn returns what was let in, as far as it is known, and may have something under way. The lock
// is held.
func (a *Authenticator) letIn() (all []verified) {
	now := a.o.Now()
	add := func(v verified) {
		if v.who != nil && now.Before(v.identity.Ends.Add(outlives)) {
			all = append(all, v)
		}
	}
	for _, v := range a.seen {
		add(v)
	}
	for _, v := range a.passed {
		add(v)
	}
	return all
}

// open returns what letIn returns, at most maxSeen of them. It takes the lock.
func (a *Authenticator) open() []verified {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.letIn()
	return all[:min(len(all), maxSeen)]
}

func (r Revocation) matches(i Identity) bool {
	return r.names(i) && (!i.Made.After(r.Before) || r.TokenID != "" && r.TokenID == i.TokenID)
}

// names reports whether the revocation is of a token, whenever that was made.
func (r Revocation) names(i Identity) bool {
	return (r.Issuer == "" || r.Issuer == i.Issuer) &&
		(r.TokenID != "" && r.TokenID == i.TokenID || r.Subject != "" && r.Subject == i.Subject ||
			r.Principal != "" && r.Principal == i.ID && r.Tenant == i.Tenant)
}

// Revocations returns all of them, the oldest first.
func (a *Authenticator) Revocations() []Revocation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.revoked)
}

// gone reports whether a credential was revoked. The lock is held.
func (a *Authenticator) gone(i Identity) bool {
	return slices.ContainsFunc(a.revoked, func(r Revocation) bool { return r.matches(i) })
}

// Handle names a credential in records. The handle does not reveal the credential, and two records of
// one credential have the same handle, while the gateway lives. Tokens without an id are distinguished
// by their times.
func (a *Authenticator) Handle(i Identity) string {
	mac := hmac.New(sha256.New, a.salt)
	fmt.Fprintf(mac, "%q %q %q", i.Issuer, i.TokenID, i.Client)
	if i.TokenID == "" {
		fmt.Fprintf(mac, " %q %d %d", i.Subject, i.Made.Unix(), i.Ends.Unix())
	}
	return hex.EncodeToString(mac.Sum(nil))[:16]
}
