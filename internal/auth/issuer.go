package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// An Issuer is an authorization server whose tokens are taken.
type Issuer struct {
	// Name is what the configuration calls it. With several issuers it goes before the ids
	// of their principals, as in corp%2Falice.
	Name string
	// URL is the issuer as tokens name it: iss, byte for byte.
	URL string
	// Keys is a JWK set that is given instead of fetched, KeysURL where it is fetched from
	// instead of what the issuer's metadata says.
	Keys    []byte
	KeysURL string
	// Audience has the accepted values of aud, in addition to the URL of the resource.
	Audience []string
	// Algorithms are those that may sign; nil: RS256, PS256, ES256, EdDSA.
	Algorithms []string
	// Types are the values of typ that are taken; nil: at+jwt and JWT. A token without typ
	// counts as JWT.
	Types []string
	// Skew is by how much clocks may differ; 0: a minute. MaxAge is how old a token may be
	// by its iat; 0: as old as it says.
	Skew, MaxAge time.Duration
	// Scopes are what every token must have.
	Scopes []string
	Claims Claims
	// Roles maps values of the claim of roles to roles of the configuration; a name that
	// ends in * maps all that begin so. What it does not map is no role.
	Roles map[string]string
	// Groups maps values of the claim of groups to groups of tools, in the same way. A caller that has
	// none of them has no access.
	Groups map[string]string
	// Fetch gets the issuer's documents.
	Fetch Fetcher
}

// Claims says which claims of a token say what. Each may be a JSON Pointer.
type Claims struct {
	ID     string // "": sub
	Tenant string // "": there are no tenants
	Roles  string // "": none
	Groups string // "": all that the roles are offered
	Client string // "": client_id, then azp
	// Keep has the claims that policies see.
	Keep []string
}

// DefaultAlgorithms are those of an issuer that lists none. Symmetric algorithms cannot be listed:
// anyone who can verify with them can also sign.
var DefaultAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

var knownAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// An issuer is one that is ready to verify.
type issuer struct {
	Issuer
	keys       *keySet
	algorithms []jose.SignatureAlgorithm
	now        func() time.Time
	verifying  chan struct{} // a slot a signature
}

func newIssuer(c Issuer, verifying chan struct{}, now func() time.Time) (*issuer, error) {
	if err := checkURL(c.URL); err != nil {
		return nil, fmt.Errorf("issuer %s: %w", c.Name, err)
	}
	if c.Algorithms == nil {
		c.Algorithms = DefaultAlgorithms
	}
	if c.Types == nil {
		c.Types = []string{"at+jwt", "JWT"}
	}
	if c.Skew == 0 {
		c.Skew = time.Minute
	}
	if c.Claims.ID == "" {
		c.Claims.ID = "sub"
	}
	i := &issuer{Issuer: c, now: now, verifying: verifying}
	for _, alg := range c.Algorithms {
		if !slices.Contains(knownAlgorithms, alg) {
			return nil, fmt.Errorf("issuer %s: algorithm %s cannot be used: one of %s can", c.Name, alg, strings.Join(knownAlgorithms, ", "))
		}
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(alg))
	}
	if c.Keys != nil {
		keys, err := staticKeys(c.Keys, now)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: jwks: %w", c.Name, err)
		}
		i.keys = keys
		return i, nil
	}
	if c.Fetch == nil {
		return nil, fmt.Errorf("issuer %s: set Keys or Fetch", c.Name)
	}
	locate := func(ctx context.Context) (string, error) {
		keys, _, err := metadata(ctx, c.Fetch, c.URL)
		return keys, err
	}
	if c.KeysURL != "" {
		if err := checkURL(c.KeysURL); err != nil {
			return nil, fmt.Errorf("issuer %s: keys: %w", c.Name, err)
		}
		locate = func(context.Context) (string, error) { return c.KeysURL, nil }
	}
	i.keys = &keySet{locate: locate, fetch: c.Fetch, now: now}
	return i, nil
}

// checkURL takes https, and http on the machine itself.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not a URL of a host without user, query and fragment", raw)
	case u.Scheme == "https", u.Scheme == "http" && loopback.Address(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is not https", raw)
}

// maxTurn is how long a token waits for its signature's turn, which takes less than a
// millisecond each.
const maxTurn = 2 * time.Second

// verify checks a token for a resource: cheap checks come first, the signature last.
func (i *issuer) verify(ctx context.Context, t *token, resources []string) *Refusal {
	if !slices.Contains(i.Algorithms, t.alg) {
		return invalid("algorithm %.20q, which issuer %s is not listed with", t.alg, i.Name)
	}
	if typ := strings.TrimPrefix(strings.ToLower(t.typ), "application/"); typ != "" && !slices.ContainsFunc(i.Types, func(s string) bool { return strings.EqualFold(s, typ) }) {
		return invalid("type %.40q", t.typ)
	}
	if refusal := i.inTime(t); refusal != nil {
		return refusal
	}
	if !i.meantFor(t, resources) {
		return invalid("its audience is not %s", strings.Join(slices.Compact(slices.Clone(resources)), " or "))
	}
	key, refusal := i.keys.key(ctx, t)
	if refusal != nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	defer cancel()
	select { // signatures are work, and the cheapest way to make a gateway work is to send some
	case i.verifying <- struct{}{}:
	case <-ctx.Done():
		return unavailable(time.Second, "too many signatures at once")
	}
	defer func() { <-i.verifying }()
	signed, err := jose.ParseSignedCompact(t.text, i.algorithms)
	if err == nil {
		_, err = signed.Verify(key)
	}
	if err != nil {
		return invalid("the signature does not verify")
	}
	return nil
}

// inTime judges exp, nbf and iat (RFC 7519, 4.1). A token without an end is none.
func (i *issuer) inTime(t *token) *Refusal {
	now := i.now()
	var at [3]time.Time
	for n, name := range []string{"exp", "nbf", "iat"} {
		var err error
		if at[n], err = moment(t.claims.Get(name)); err != nil {
			return invalid("%s: %v", name, err)
		}
	}
	end, begin, made := at[0], at[1], at[2]
	switch {
	case end.IsZero():
		return invalid("it has no exp")
	case now.After(end.Add(i.Skew)):
		return expired("it expired at %s", end.UTC().Format(time.RFC3339))
	case now.Before(begin.Add(-i.Skew)):
		return invalid("it is not valid yet")
	case now.Before(made.Add(-i.Skew)):
		return invalid("its iat is in the future")
	case i.MaxAge > 0 && now.After(made.Add(i.MaxAge+i.Skew)): // without iat: long ago
		return expired("it is older than %s, or has no iat", i.MaxAge)
	}
	return nil
}

// moment reads a NumericDate (RFC 7519, 2); the zero time is that of an absent one.
func moment(d gate.Doc) (time.Time, error) {
	if d.IsZero() {
		return time.Time{}, nil
	}
	n, ok := d.Value().(json.Number)
	if !ok {
		return time.Time{}, errNoTime
	}
	seconds, err := n.Float64()
	if err != nil || seconds < 1 || seconds > 1<<40 {
		return time.Time{}, errNoTime
	}
	return time.Unix(int64(seconds), 0), nil
}

var errNoTime = errors.New("it is not a number of seconds")

// meantFor reports whether aud names one of the resources or the listed audiences.
func (i *issuer) meantFor(t *token, resources []string) bool {
	taken := func(d gate.Doc) bool {
		return d.Kind() == doc.String && (slices.Contains(resources, d.Text()) || slices.Contains(i.Audience, d.Text()))
	}
	aud := t.claims.Get("aud")
	if aud.Kind() != doc.Array {
		return taken(aud)
	}
	for each := range aud.Elements() {
		if taken(each) {
			return true
		}
	}
	return false
}

// scoped judges what every token of the issuer must have.
func (i *issuer) scoped(t *token) *Refusal {
	scopes := words(t.claims.Get("scope"))
	scopes = append(scopes, words(t.claims.Get("scp"))...)
	for _, want := range i.Scopes {
		if !slices.Contains(scopes, want) {
			return insufficient(i.Scopes)
		}
	}
	return nil
}

// words returns the members of a list of strings, or of a string of words.
func words(d gate.Doc) (all []string) {
	if d.Kind() == doc.String {
		return strings.Fields(d.Text())
	}
	if d.Kind() == doc.Array {
		for each := range d.Elements() {
			if each.Kind() == doc.String {
				all = append(all, each.Text())
			}
		}
	}
	return all
}

// claim returns a claim by its name or, with a slash in front, by a JSON Pointer.
func claim(claims gate.Doc, name string) gate.Doc {
	if strings.HasPrefix(name, "/") {
		return claims.At(name)
	}
	return claims.Get(name)
}

// An Identity is what a credential proves, before the configuration is applied.
type Identity struct {
	ID, Tenant, Client, Issuer string
	Roles                      []string // as mapped; no others can be had
	Groups                     gate.Groups
	Bound                      string   // thumbprint of the certificate that the token is bound to; "": none
	Claims                     gate.Doc // those that policies see
	TokenID, Subject           string   // jti and sub, to revoke by
	Made, Ends                 time.Time
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

// maxID is how long an id of a principal may be, in bytes, as it is written.
const maxID = 128

// escape writes an id in the letters that ids of principals have. Two ids never become
// one: what is not plain is written as %XX.
func escape(id string) (string, bool) {
	if id == "" || len(id) > maxID {
		return "", false
	}
	if plainID.MatchString(id) {
		return id, true
	}
	var b strings.Builder
	for at := range len(id) {
		c := id[at]
		switch {
		case c < 0x20 || c == 0x7f:
			return "", false
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', at > 0 && strings.IndexByte("._@+-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String(), b.Len() <= maxID
}

// identify reads who a verified token is about.
func (i *issuer) identify(t *token, several bool) (Identity, *Refusal) {
	id := claim(t.claims, i.Claims.ID)
	if id.Kind() != doc.String {
		return Identity{}, stranger("the token has no claim %s", i.Claims.ID)
	}
	if (i.Claims.ID == "email" || i.Claims.ID == "/email") && !t.claims.Get("email_verified").True() {
		return Identity{}, stranger("the e-mail address is not verified")
	}
	name := id.Text()
	if name == "" { // also where the issuer's name comes before it
		return Identity{}, stranger("the claim %s is empty", i.Claims.ID)
	}
	if several {
		name = i.Name + "/" + name
	}
	who := Identity{Issuer: i.Name, TokenID: t.claims.Get("jti").Text(), Subject: t.claims.Get("sub").Text()}
	var ok bool
	if who.ID, ok = escape(name); !ok {
		return Identity{}, stranger("the id is empty, is too long or has control characters")
	}
	if i.Claims.Tenant != "" {
		if who.Tenant, ok = escape(claim(t.claims, i.Claims.Tenant).Text()); !ok {
			return Identity{}, stranger("the token has no claim %s", i.Claims.Tenant)
		}
	}
	if i.Claims.Roles != "" {
		who.Roles = mapped(i.Roles, words(claim(t.claims, i.Claims.Roles)))
	}
	if i.Claims.Groups != "" {
		names := mapped(i.Groups, words(claim(t.claims, i.Claims.Groups)))
		if len(names) == 0 {
			return Identity{}, stranger("the token names no group that the configuration maps")
		}
		who.Groups = gate.Groups{names}
	}
	var refusal *Refusal
	if who.Bound, refusal = confirmation(t.claims.Get("cnf")); refusal != nil {
		return Identity{}, refusal
	}
	for _, name := range []string{i.Claims.Client, "client_id", "azp"} {
		if c := claim(t.claims, name); name != "" && c.Kind() == doc.String {
			who.Client = c.Text()
			break
		}
	}
	kept := gate.MustDoc(`{}`)
	for _, name := range i.Claims.Keep {
		if c := t.claims.Get(name); !c.IsZero() {
			kept = kept.With(name, c.Raw())
		}
	}
	if len(i.Claims.Keep) > 0 {
		who.Claims = kept
	}
	end, _ := moment(t.claims.Get("exp")) // inTime has judged both
	who.Made, _ = moment(t.claims.Get("iat"))
	who.Ends = end.Add(i.Skew)
	return who, nil
}

func (i Identity) owner() gate.Owner { return gate.Owner{Tenant: i.Tenant, ID: i.ID} }

// confirmation returns what a token is bound to (RFC 7800; RFC 8705, 3.1). One that is bound
// to what the gateway cannot check is not taken.
func confirmation(cnf gate.Doc) (thumbprint string, refusal *Refusal) {
	if cnf.IsZero() {
		return "", nil
	}
	for name := range cnf.Members() {
		if name != "x5t#S256" {
			return "", invalid("it is bound to its sender by %.20q, which this gateway cannot check", name)
		}
	}
	if thumbprint = cnf.Get("x5t#S256").Text(); thumbprint == "" {
		return "", invalid("its claim cnf is empty")
	}
	return thumbprint, nil
}

// mapped returns what values stand for.
func mapped(mapping map[string]string, said []string) (names []string) {
	for from, to := range mapping {
		prefix, all := strings.CutSuffix(from, "*")
		if slices.ContainsFunc(said, func(s string) bool { return s == from || all && strings.HasPrefix(s, prefix) }) {
			names = append(names, to)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
