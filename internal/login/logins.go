package login

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// The modes of a server.
const (
	OAuth       = "oauth"              // a person logs in
	ClientCreds = "client_credentials" // the gateway is itself the client
	Exchange    = "token_exchange"     // the caller's own token is exchanged for one of the server
	IDJAG       = "id_jag"             // an identity provider vouches for the person: see [IdentityProvider]
)

// A Server is one whose requests carry a token.
type Server struct {
	ID, URL, Mode string
	Shared        bool // one login is everybody's
	ClientID      string
	ClientSecret  string
	PrivateKey    string // path of a PEM file, in the place of a secret; it is read for each token
	KeyID         string // by which the authorization server knows the key; "": by no name
	Issuer        string // "": as the server says
	Scopes        []string
	Actor         bool         // an exchange also brings a token of the gateway's own, which acts
	IDP           *Server      // of the mode IDJAG: where people log in
	Client        *http.Client // reaches the server and its authorization server; follows no redirects
}

func (s *Server) host() string {
	if u, err := url.Parse(s.URL); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return s.ID
}

// owner is to whom a login of o belongs.
func (s *Server) owner(o gate.Owner) gate.Owner {
	if s.Shared || s.Mode == ClientCreds {
		return gate.Owner{}
	}
	return o
}

// The events that are noted.
const (
	LoggedIn  = "login"
	LoggedOut = "logout"
	Refreshed = "refresh"
)

// An Event is something that happened to a grant.
type Event struct {
	Kind, Server, Issuer string
	Owner                gate.Owner // empty: of everybody
	Credential           string     // the grant's name; never a token
	Scopes               []string
	Err                  error // why it came to nothing
}

// Options are what all logins have in common.
type Options struct {
	Vault  *vault.Vault
	Public func() string // public URL of the gateway; "", and nil: none
	// Turn waits until no other gateway changes the credential of a name, and keeps others from it until end
	// is called, for a minute at most. Nil is for a gateway that shares none.
	Turn func(ctx context.Context, name string) (end func(), err error)
	// Seal is the key of what browsers keep during a sign-in; nil is one of this process.
	Seal []byte
	// Node begins the state of each login, by which others find this gateway; "" begins none.
	Node string
	// Note records an event. A login that cannot be recorded is not kept.
	Note func(Event) error
	// Changed, if not nil, is called with each server for which a token has come or gone.
	Changed func(server string)
	Now     func() time.Time // nil: the machine's
}

// Logins has a token for each request to the servers that want one. It may be used from
// several goroutines.
type Logins struct {
	o Options

	mu      sync.Mutex
	servers map[string]*Server
	flows   map[string]*flow
	rows    map[vault.Key]*row

	seal      cipher.AEAD // of tickets
	providers map[string]*provider

	exchanges atomic.Bool       // a server takes tokens of callers in exchange
	tokens    map[caller]string // of those who were let in since
	actors    map[*Server]*grant
}

// New returns logins for no servers yet.
func New(o Options) *Logins {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Public == nil {
		o.Public = func() string { return "" }
	}
	return &Logins{
		o: o, servers: make(map[string]*Server), flows: make(map[string]*flow), rows: make(map[vault.Key]*row), tokens: make(map[caller]string),
		seal: newSeal(o.Seal), providers: make(map[string]*provider),
	}
}

// newSeal seals by a key of 32 bytes, or by one of this process.
func newSeal(key []byte) cipher.AEAD {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has its size
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has its block size
	}
	return seal
}

// Set has these servers, and no others, from now on.
func (l *Logins) Set(servers []*Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers, l.actors = make(map[string]*Server), make(map[*Server]*grant)
	exchanges := false
	for _, s := range servers {
		l.servers[s.ID] = s
		if s.IDP != nil {
			l.servers[s.IDP.ID] = s.IDP
		}
		exchanges = exchanges || s.Mode == Exchange
	}
	if l.exchanges.Store(exchanges); !exchanges {
		clear(l.tokens)
	}
}

func (l *Logins) server(id string) (*Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.servers[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("server %q takes no login: write auth: oauth to it under servers in the configuration", id)
}

// loginKind is the kind of rows in the vault that hold logins. Tokens by an ID-JAG are of another
// kind, and so is what the gateway gets by itself, which is never kept.
const loginKind = "login"

func key(s *Server, o gate.Owner) vault.Key {
	k := vault.Key{Kind: loginKind, Tenant: o.Tenant, Principal: o.ID, Server: s.ID}
	if s.Mode != OAuth && s.Mode != idpMode {
		k.Kind = s.Mode
	}
	return k
}

// row returns what is known of a principal's grant at a server.
func (l *Logins) row(s *Server, o gate.Owner) *row {
	k := key(s, s.owner(o))
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rows[k]
	if r == nil {
		if len(l.rows) >= maxRows {
			maps.DeleteFunc(l.rows, func(_ vault.Key, r *row) bool { return r.empty() })
		}
		r = &row{all: l, key: k}
		l.rows[k] = r
	}
	return r
}

// maxRows is how many rows there may be before those of principals without a login are forgotten.
const maxRows = 10_000

// empty reports whether nothing would be missed of a row. One that is in use is not.
func (r *row) empty() bool {
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	return r.read && r.grant == nil && r.busy == nil && len(r.lacks) == 0
}

// A row is a principal's grant at a server, as it is in the vault.
type row struct {
	all *Logins
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

const (
	// early is how long before its end a token is refreshed, so that it holds on its way.
	early = time.Minute
	// pause is for how long an authorization server that gave no token is not asked again.
	pause = 10 * time.Second
	// tokenTime bounds a request to it.
	tokenTime = 30 * time.Second
	// youth is for how long a refusal of the server is no reason to refresh once more: the next
	// token would be refused as well.
	youth = 30 * time.Second
)

// access returns a grant whose token holds, and is not the refused one. It refreshes once,
// however many wait.
func (r *row) access(ctx context.Context, s *Server, refused string) (*grant, error) {
	for {
		g, wait, err := r.look(s, refused)
		if wait == nil {
			return g, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errMoved keeps tokens from a server that has the name of another.
var errMoved = errors.New("the server has another URL than when the login was made")

func (r *row) look(s *Server, refused string) (*grant, chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	g, now := r.grant, r.all.o.Now()
	if !r.read {
		return nil, nil, &Needed{r.key.Server, "the login at server " + r.key.Server + " cannot be opened now: `wasmgate logins` on the gateway's machine says why", r.problem, false}
	}
	if s.Mode == IDJAG {
		var err error
		if g, err = r.rebase(s); err != nil {
			return nil, nil, err
		}
	}
	if g == nil {
		return nil, nil, r.needed(r.problem)
	}
	if g.URL != s.URL {
		return nil, nil, r.needed(errMoved)
	}
	bad := refused != "" && same(g.Access, refused)
	lives := g.Expires.IsZero() || now.Before(g.Expires)
	renews := g.Refresh != "" || s.Mode == IDJAG
	switch {
	case !bad && (g.Expires.IsZero() || now.Before(g.Expires.Add(-early)) || s.Mode == IDJAG && g.holds(now)):
		return g, nil, nil
	case !renews && lives && !bad:
		return g, nil, nil
	case !renews && bad:
		return nil, nil, r.needed(errors.New("the server refuses the token"))
	case !renews:
		return nil, nil, r.needed(errors.New("the login is no longer valid"))
	case bad && r.busy == nil && now.Sub(r.forced) < youth && s.Mode == IDJAG:
		return nil, nil, &Needed{s.ID, "server " + s.ID + " refuses the token that its authorization server gave", nil, false}
	case bad && r.busy == nil && now.Sub(r.forced) < youth:
		return nil, nil, r.needed(errors.New("the server refuses a new token"))
	case r.busy == nil && now.Before(r.after) && lives && !bad:
		return g, nil, nil
	case r.busy == nil && now.Before(r.after):
		return nil, nil, r.unavailable(s)
	}
	if r.busy == nil {
		r.busy = make(chan struct{})
		if bad {
			r.forced = now
		}
		go r.refresh(s, g)
	}
	if lives && !bad {
		return g, nil, nil
	}
	return nil, r.busy, nil
}

// refresh gets the next token, for all requests that wait; its time limit is its own. It keeps the
// grant before it uses it, because the authorization server may not accept the previous one any more.
func (r *row) refresh(s *Server, g *grant) {
	end, err := r.turn(s)
	defer end()
	var next *grant
	if err == nil && r.still(g) {
		ctx, cancel := context.WithTimeout(context.Background(), tokenTime)
		defer cancel()
		next, err = r.next(ctx, s, g)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { close(r.busy); r.busy = nil }()
	if !r.grant.is(g) { // logged out meanwhile, in again, or refreshed by another gateway
		return
	}
	switch {
	case err == nil:
		err = r.put(next)
	case s.Mode != IDJAG && ended(err):
		r.grant, r.problem = nil, errors.New("the authorization server no longer accepts the login")
		err = errors.Join(err, r.all.o.Vault.Delete(r.key))
	}
	if err != nil && r.grant != nil {
		r.problem, r.after = err, r.all.o.Now().Add(pause)
	}
	_ = r.all.o.Note(r.event(Refreshed, g, err)) // the token has come, and there is nothing to take back
}

// turnTime is for how long a gateway waits for another that changes a login.
const turnTime = 45 * time.Second

// turn waits until no other gateway changes the login, and reads it again. The caller calls end, whatever
// the error. Tokens by an ID-JAG have no refresh token that could be spent twice.
func (r *row) turn(s *Server) (end func(), err error) {
	if r.all.o.Turn == nil || s.Mode == IDJAG {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnTime)
	defer cancel()
	if end, err = r.all.o.Turn(ctx, r.key.Name()); err != nil {
		return func() {}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = false
	if r.load(); !r.read {
		err = r.problem
	}
	return end, err
}

// still reports whether the login is what it was.
func (r *row) still(g *grant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grant.is(g)
}

// Follow takes over what other gateways have done to logins, as the names of changed documents say.
func (l *Logins) Follow(names []string) {
	servers := make(map[string]bool)
	for _, name := range names {
		k, ok := vault.KeyOf(name)
		if !ok {
			continue
		}
		l.mu.Lock()
		r := l.rows[k]
		l.mu.Unlock()
		if r == nil {
			r = &row{all: l, key: k}
		}
		r.mu.Lock()
		known, before := r.read, r.grant
		r.read = false
		r.load()
		came := r.grant != nil && r.grant.Got.Equal(r.grant.Made) // otherwise it was refreshed
		if r.read && (!known || !r.grant.is(before)) && (came || r.grant == nil) && k.Kind == loginKind {
			servers[k.Server] = true
		}
		r.mu.Unlock()
	}
	for server := range servers {
		l.changed(server)
	}
}

func (r *row) next(ctx context.Context, s *Server, g *grant) (*grant, error) {
	if s.Mode == IDJAG {
		return r.assert(ctx, s, s.Scopes)
	}
	return g.refresh(ctx, s, r.all.o.Now())
}

// Needed says that a request cannot be made without a credential, or a better one.
type Needed struct {
	server, text string
	cause        error // nil: no one has logged in
	login        bool  // is what helps
}

// Login returns the server, and whether a login of the caller there is what helps.
func (n *Needed) Login() (server string, helps bool) { return n.server, n.login }

func (n *Needed) Error() string {
	if n.cause != nil {
		return fmt.Sprintf("%s (%v)", n.text, n.cause)
	}
	return n.text
}

func (n *Needed) Unwrap() error { return n.cause }

// Public returns what the caller may read: what to do, and nothing that another party has said.
func (n *Needed) Public() string { return n.text }

func (r *row) needed(cause error) error {
	return &Needed{r.key.Server, "server " + r.key.Server + " needs a login: " + how(r.key), cause, r.key.Kind == loginKind}
}

func (r *row) unavailable(s *Server) error {
	if n, ok := errors.AsType[*Needed](r.problem); ok {
		return n
	}
	if e, ok := errors.AsType[*statusError](r.problem); ok && e.code == "invalid_client" && s.ClientID == "" {
		return r.needed(errors.New("the authorization server does not know the client any more, so the next login registers a new one"))
	}
	return &Needed{r.key.Server, "the authorization server of server " + r.key.Server + " gives no token; try again later", r.problem, false}
}

// how says how to log in.
func how(k vault.Key) string {
	command := "`wasmgate login " + k.Server
	if k.Principal != "" && k.Principal != gate.Local().ID {
		return "have " + command + " --as " + match.Name(k.Tenant, k.Principal) + "` run on the gateway's machine"
	}
	return "run " + command + "` on the gateway's machine"
}

// Need is what a request is to be able to do at most.
type Need struct {
	Scopes []string      // nil: all that was granted
	TTL    time.Duration // for how long a token for this is used; 0: as long as it holds
}

// Authorize returns the value of the header Authorization for a request to a server on behalf
// of somebody; nil is the gateway itself, which lists what there is. Refused is the server's
// answer to the value before, 401 or 403; "" without an error passes that answer on. The error
// is a [*Needed] or that of ctx.
func (l *Logins) Authorize(ctx context.Context, id string, who *gate.Principal, need Need, refused *http.Response) (value string, used gate.Credential, err error) {
	s, err := l.server(id)
	if err != nil {
		return "", used, &Needed{id, "server " + id + " has no credential", err, false}
	}
	var before string
	if refused != nil {
		before = strings.TrimPrefix(refused.Request.Header.Get("Authorization"), "Bearer ")
	}
	r, err := l.rowFor(s, who)
	if err != nil {
		return "", used, err
	}
	if refused != nil && refused.StatusCode == http.StatusForbidden {
		return "", used, r.forbidden(refused, need)
	}
	g, err := l.token(ctx, s, r, who, need, before)
	n, _ := errors.AsType[*Needed](err)
	if _, other := errors.AsType[denied](err); n != nil && (n.login || other) && who == nil && !s.Shared {
		what := "nobody has logged in to server " + id
		switch {
		case other: // the gateway lists by any login
			what = "server " + id + " needs a login at " + s.IDP.Issuer + " of a person who may use it"
		case n.cause != nil:
			what = "the login at server " + id + " does not hold"
		}
		return "", used, &Needed{n.server, what + ": " + how(key(s, gate.Owner{})) + ", with --as for somebody else than the principal local", n.cause, true}
	}
	if err != nil {
		return "", used, err
	}
	used = gate.Credential{Mode: s.Mode, Issuer: g.Issuer, Name: g.ID, Scopes: g.Scopes, Expires: g.Expires, Narrow: need.Scopes != nil}
	return "Bearer " + g.Access, used, nil
}

// Check finds out whether a server's tokens can be had, as far as that needs no login.
func (l *Logins) Check(ctx context.Context, id string) error {
	s, err := l.server(id)
	if err != nil {
		return err
	}
	if s.PrivateKey != "" {
		if _, _, err := readKey(s.PrivateKey); err != nil {
			return fmt.Errorf("private_key: %w", err)
		}
	}
	if s.IDP != nil {
		if err := l.Check(ctx, s.IDP.ID); err != nil {
			return fmt.Errorf("idp: %w", err)
		}
	}
	if s.Mode == ClientCreds {
		_, _, err := l.Authorize(ctx, id, nil, Need{}, nil)
		return err
	}
	if s.asksPeople() {
		if err := l.o.Vault.Ready(); err != nil {
			return err
		}
	}
	_, err = discover(ctx, s)
	return err
}

// rowFor returns whose grant a request uses. The gateway itself lists with the grant of the
// principal local, or else with the oldest.
func (l *Logins) rowFor(s *Server, who *gate.Principal) (*row, error) {
	if who != nil || s.owner(gate.Local().Owner) == (gate.Owner{}) {
		o := gate.Owner{}
		if who != nil {
			o = who.Owner
		}
		return l.row(s, o), nil
	}
	at := s
	if s.Mode == IDJAG {
		at = s.IDP
	}
	r := l.row(s, gate.Local().Owner)
	if l.row(at, gate.Local().Owner).has() {
		return r, nil
	}
	all, err := l.List()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(g Login) bool { return g.Server != at.ID })
	if good := slices.DeleteFunc(slices.Clone(all), func(g Login) bool { return g.Problem != "" }); len(good) > 0 {
		all = good
	}
	if len(all) == 0 {
		return r, nil
	}
	oldest := slices.MinFunc(all, func(a, b Login) int { return a.Made.Compare(b.Made) })
	return l.row(s, gate.Owner{Tenant: oldest.Tenant, ID: oldest.Principal}), nil
}

func (r *row) has() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	return r.grant != nil
}

// token returns a grant for one request.
func (l *Logins) token(ctx context.Context, s *Server, r *row, who *gate.Principal, need Need, refused string) (*grant, error) {
	if s.Mode == OAuth || s.Mode == IDJAG {
		g, err := r.access(ctx, s, refusedUnless(need.Scopes == nil, refused))
		if err != nil || need.Scopes == nil {
			return g, err
		}
		return r.exchanged(ctx, s, g, g.Access, who, need, refused)
	}
	subject := ""
	if s.Mode == Exchange {
		if who != nil {
			subject = l.subject(who)
		}
		if who == nil {
			return nil, &Needed{s.ID, "server " + s.ID + " wants a token before it says what it offers, and its callers' are for their calls: write one to servers." + s.ID + ".auth.discovery", nil, false}
		}
		if subject == "" {
			return nil, &Needed{s.ID, "server " + s.ID + " takes tokens of its callers alone, and this request came with none", nil, false}
		}
	}
	g, err := r.own(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.exchanged(ctx, s, g, subject, who, need, refused)
}

func refusedUnless(ok bool, refused string) string {
	if ok {
		return refused
	}
	return ""
}

// own returns where the gateway itself gets tokens from, which is discovered once, and anew when
// the server is configured anew: tokens for one URL are not sent to another.
func (r *row) own(ctx context.Context, s *Server) (*grant, error) {
	r.mu.Lock()
	g, of := r.grant, r.server
	r.mu.Unlock()
	if of == s {
		return g, nil
	}
	p, err := discover(ctx, s)
	if err != nil {
		return nil, &Needed{s.ID, "the authorization server of server " + s.ID + " gives no token; try again later", err, false}
	}
	g = &grant{Issuer: p.Issuer, Resource: p.resource, Token: p.TokenEndpoint, Revocation: p.RevocationEndpoint, Client: s.configured(p), Scopes: s.Scopes}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grant, r.server, r.read, r.narrow = g, s, true, nil
	return g, nil
}

// maxLacked bounds the scopes that are remembered.
const maxLacked = 32

// forbidden reads why a server refuses a call. If it lacks scopes, another login is needed.
func (r *row) forbidden(resp *http.Response, need Need) error {
	c := bearer(resp.Header)
	if c["error"] != "insufficient_scope" {
		return nil
	}
	if need.Scopes != nil {
		return &Needed{r.key.Server, "server " + r.key.Server + " wants scopes that the policy does not leave to this call", nil, false}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range strings.Fields(c["scope"]) {
		if !slices.Contains(r.lacks, s) && len(r.lacks) < maxLacked && len(s) <= 128 {
			r.lacks = append(r.lacks, s)
		}
	}
	if r.key.Kind != loginKind {
		return &Needed{r.key.Server, "server " + r.key.Server + " asks for more scopes than the gateway's token for it has", fmt.Errorf("it wants %q: write what is missing to servers.%s.auth.scopes", strings.Join(r.lacks, " "), r.key.Server), false}
	}
	return r.needed(errors.New("the server asks for more scopes than were granted"))
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

// keep takes a grant into the vault, once it is recorded.
func (l *Logins) keep(s *Server, o gate.Owner, g *grant) (*Login, error) {
	r := l.row(s, o)
	end, err := r.turn(s)
	defer end()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.load()
	err = l.o.Note(r.event(LoggedIn, g, nil))
	if err == nil {
		err = r.put(g)
	}
	if err == nil {
		r.lacks = nil
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	l.changed(s.ID)
	return r.shown(g), nil
}

func (l *Logins) changed(server string) {
	if l.o.Changed == nil {
		return
	}
	through := l.through(server)
	if len(through) == 0 {
		l.o.Changed(server)
	}
	for _, s := range through {
		l.o.Changed(s.ID)
	}
}

// ErrNoLogin says that there is no login there.
var ErrNoLogin = errors.New("there is no such login")

// Logout forgets a login, and has the authorization server end it. It returns the login even if that
// fails, which the error then says.
func (l *Logins) Logout(ctx context.Context, server string, o gate.Owner) (*Login, error) {
	s, err := l.server(server)
	if err != nil { // its name may be all that is left of it
		s = &Server{ID: server, Mode: OAuth}
	}
	if s.Mode == IDJAG {
		s = s.IDP
	}
	r := l.row(s, o)
	end, err := r.turn(s)
	defer end()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.load()
	g, problem := r.grant, r.problem
	if g == nil && problem == nil {
		r.mu.Unlock()
		return nil, ErrNoLogin
	}
	if err := l.o.Vault.Delete(r.key); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.grant, r.problem, r.narrow = nil, nil, nil
	r.mu.Unlock()
	if g == nil {
		g = new(grant)
	}
	if err = l.forgetAsserted(ctx, s, o); s.Client != nil {
		err = errors.Join(err, g.revoke(ctx, s, l.o.Now()))
	}
	noted := l.o.Note(r.event(LoggedOut, g, err))
	l.changed(server)
	return r.shown(g), errors.Join(err, noted)
}

// List returns all logins, by server, tenant and principal.
func (l *Logins) List() ([]Login, error) {
	keys, err := l.o.Vault.List(loginKind)
	if err != nil {
		return nil, err
	}
	all := []Login{}
	for _, k := range keys {
		l.mu.Lock()
		s := l.servers[k.Server]
		l.mu.Unlock()
		one := Login{Server: k.Server, Tenant: k.Tenant, Principal: k.Principal}
		if s == nil || s.owner(gate.Owner{Tenant: k.Tenant, ID: k.Principal}) != (gate.Owner{Tenant: k.Tenant, ID: k.Principal}) {
			one.Problem = "the configuration has no such server any more, or with another identity"
			all = append(all, one)
			continue
		}
		r := l.row(s, gate.Owner{Tenant: k.Tenant, ID: k.Principal})
		r.mu.Lock()
		r.load()
		if r.grant != nil {
			one = *r.shown(r.grant)
			if r.grant.URL != s.URL {
				one.Problem = errMoved.Error()
			}
		}
		if r.problem != nil {
			one.Problem = r.problem.Error()
		}
		r.mu.Unlock()
		all = append(all, one)
	}
	return all, nil
}
