package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/gate"
)

// Bounds of a key set (RFC 7517).
const (
	maxKeySet = 512 << 10 // bytes
	maxKeys   = 64
	// refetch is how often an unknown key can make the gateway ask for the keys again.
	refetch = 30 * time.Second
	// fresh is how long keys hold before they are asked for again, stale for how long
	// they do while their issuer does not answer.
	fresh = time.Hour
	stale = 24 * time.Hour
)

// A Fetcher gets a document of an issuer. It looks to it that nothing answers that the
// operator did not mean: no private address unless allowed, no redirect.
type Fetcher func(ctx context.Context, url string) (io.ReadCloser, error)

// A keySet holds the public keys of an issuer, by their ids. It fetches them when one is
// asked for that it has not, at most once in [refetch].
type keySet struct {
	locate func(ctx context.Context) (url string, err error)
	fetch  Fetcher
	now    func() time.Time

	mu      sync.Mutex
	keys    map[string]jose.JSONWebKey // those without an id have ""
	got     time.Time                  // when the keys came
	tried   time.Time                  // when they were asked for last
	problem error                      // of the last try
	busy    chan struct{}              // closed when the fetch that is under way ends; nil: none is
}

// A static key set is never fetched.
func staticKeys(raw []byte, now func() time.Time) (*keySet, error) {
	keys, err := parseKeys(raw)
	if err != nil {
		return nil, err
	}
	return &keySet{keys: keys, now: now, got: now()}, nil
}

// key returns the key that a token names, for its algorithm. A token without a name has
// the only key of the set that fits.
func (s *keySet) key(ctx context.Context, t *token) (*jose.JSONWebKey, *Refusal) {
	for {
		key, wait, refusal := s.find(t)
		if wait == nil {
			return key, refusal
		}
		select {
		case <-wait: // at once again: a fetch that has ended is not begun anew for a while
		case <-ctx.Done():
			return nil, unavailable(refetch, "the keys of the issuer: %v", ctx.Err())
		}
	}
}

// find looks for the key, and begins a fetch where that can help. A caller that has to wait for a fetch
// gets a channel that is closed when the fetch ends.
func (s *keySet) find(t *token) (*jose.JSONWebKey, chan struct{}, *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, age := s.fitting(t), s.now().Sub(s.got)
	if key != nil && (s.locate == nil || age <= fresh) {
		return key, nil, nil
	}
	if _, named := s.keys[t.kid]; key == nil && (s.locate == nil || named && t.kid != "") {
		return nil, nil, invalid("no key of the issuer matches")
	}
	if s.busy == nil && s.now().Sub(s.tried) >= refetch {
		s.tried, s.busy = s.now(), make(chan struct{})
		go s.refresh(s.busy)
	}
	switch {
	case key != nil && age <= stale: // the fetch goes on behind the request
		return key, nil, nil
	case s.busy != nil:
		return nil, s.busy, nil
	case s.problem != nil:
		return nil, nil, unavailable(refetch, "the keys of the issuer: %v", s.problem)
	}
	return nil, nil, unavailable(refetch, "no key of the issuer matches, and the keys were fetched a moment ago")
}

func (s *keySet) fitting(t *token) *jose.JSONWebKey {
	if t.kid != "" {
		if key, ok := s.keys[t.kid]; ok && fits(key, t.alg) {
			return &key
		}
		return nil
	}
	var only *jose.JSONWebKey
	for _, key := range s.keys {
		if fits(key, t.alg) {
			if only != nil {
				return nil // a token must say which
			}
			only = &key
		}
	}
	return only
}

// refresh fetches the keys for all requests that wait. It has a time limit of its own, because the
// request that asked first may end.
func (s *keySet) refresh(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	keys, err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem = err; err == nil {
		s.keys, s.got = keys, s.now()
	}
	s.busy = nil
	close(done)
}

func (s *keySet) load(ctx context.Context) (map[string]jose.JSONWebKey, error) {
	url, err := s.locate(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := fetchDocument(ctx, s.fetch, url)
	if err != nil {
		return nil, err
	}
	return parseKeys(raw)
}

// fetchDocument reads a document of an issuer, of a bounded size.
func fetchDocument(ctx context.Context, fetch Fetcher, url string) ([]byte, error) {
	body, err := fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxKeySet+1))
	if err == nil && len(raw) > maxKeySet {
		err = fmt.Errorf("%s: more than %d bytes", url, maxKeySet)
	}
	return raw, err
}

var errNoKeys = errors.New("no key that signatures can be verified with")

// parseKeys returns the keys that verify signatures. It passes over other keys, and secret ones: sets
// may hold keys for other purposes.
func parseKeys(raw []byte) (map[string]jose.JSONWebKey, error) {
	doc, err := gate.ParseDoc(raw)
	if err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	keys := map[string]jose.JSONWebKey{}
	n := 0
	for each := range doc.Get("keys").Elements() {
		if n++; n > maxKeys {
			return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
		}
		var key jose.JSONWebKey
		if key.UnmarshalJSON(each.Raw()) != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" || !verifies(each) {
			continue
		}
		if _, taken := keys[key.KeyID]; taken {
			return nil, fmt.Errorf("the key set has two keys of the id %q", key.KeyID)
		}
		if strong(key) {
			keys[key.KeyID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	return keys, nil
}

// verifies reports whether a key says nothing of its operations, or that it verifies.
func verifies(key gate.Doc) bool {
	ops := key.Get("key_ops")
	if ops.IsZero() {
		return true
	}
	for op := range ops.Elements() {
		if op.Text() == "verify" {
			return true
		}
	}
	return false
}

// strong refuses keys that are too small to hold, or so large that each signature is work.
func strong(key jose.JSONWebKey) bool {
	k, ok := key.Key.(*rsa.PublicKey)
	return !ok || k.N.BitLen() >= 2048 && k.N.BitLen() <= 8192
}

// fits reports whether a key is made for an algorithm (RFC 7518, 3.1; RFC 8037).
func fits(key jose.JSONWebKey, alg string) bool {
	if key.Algorithm != "" && key.Algorithm != alg {
		return false
	}
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, alg)
	case *ecdsa.PublicKey:
		return k.Curve == map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}[alg]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// metadata finds where the keys of an issuer are: in its metadata (RFC 8414, 3.1; OpenID
// Connect Discovery, 4), whose issuer must be the one that was asked for, byte for byte. It also
// returns which issuer the metadata names.
func metadata(ctx context.Context, fetch Fetcher, issuer string) (keys, names string, err error) {
	for _, url := range wellKnown(issuer) {
		raw, ferr := fetchDocument(ctx, fetch, url)
		if err = ferr; err != nil {
			continue
		}
		doc, perr := gate.ParseDoc(raw)
		if err = perr; err != nil {
			continue
		}
		names, keys = doc.Get("issuer").Text(), doc.Get("jwks_uri").Text()
		if names != issuer {
			return "", names, fmt.Errorf("%s is the metadata of another issuer, %q", url, names)
		}
		if keys == "" {
			return "", names, fmt.Errorf("%s names no jwks_uri", url)
		}
		return keys, names, nil
	}
	return "", "", err
}

// wellKnown returns where metadata of an issuer can be, in the order in which it is
// looked for (MCP 2026-07-28, basic/authorization, "Authorization Server Metadata Discovery").
func wellKnown(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	all := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		all = append(all, root+path+"/.well-known/openid-configuration")
	}
	return all
}

// HTTPFetcher fetches with a client that must follow no redirect, and judge addresses.
func HTTPFetcher(client *http.Client) Fetcher {
	return func(ctx context.Context, url string) (io.ReadCloser, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Accept", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		noteClock(ctx, resp)
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return resp.Body, nil
	}
}

// clockKey is the context key by which a fetcher reports the clock of the server that answers.
type clockKey struct{}

// noteClock records by how much the clock of an answer is ahead, if the context asks for that.
func noteClock(ctx context.Context, resp *http.Response) {
	to, _ := ctx.Value(clockKey{}).(*time.Duration)
	if at, err := http.ParseTime(resp.Header.Get("Date")); to != nil && err == nil {
		*to = time.Until(at).Round(time.Second)
	}
}
