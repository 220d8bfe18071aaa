package signin

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/evict"
	"github.com/wasmgate/wasmgate/internal/login"
)

const (
	// OfferTime is how long a link or a code is good.
	OfferTime = time.Minute
	// StayTime is how long a browser stays signed in without a request.
	StayTime  = 12 * time.Hour
	maxOffers = 16
	// maxStays bounds the browsers of the operator, and those of all others.
	maxStays = 64
	// MaxWrong is after how many wrong codes all that are open end: eight digits would be
	// guessed otherwise. Links, which cannot be guessed, stay good.
	MaxWrong = 5
	stayName = "wasmgate_console"

	path = "/ui/signin"
)

// Browsers are those that may sign in, and those that have. Both end with the process.
type Browsers struct {
	Now  func() time.Time // the time; the machine's, but in tests
	node string           // of this gateway among several, which links, codes and cookies begin with; "" without others

	mu     sync.Mutex
	offers []offer
	// The browsers that have signed in, by the digests of their cookies. Persons may have no right
	// here: they never sign out the operator.
	operator, persons map[[32]byte]stay
	wrong             int
}

// A stay is a browser that has signed in.
type stay struct {
	owner gate.Owner
	until time.Time
	token string // of a person who has signed in at an issuer; "" for the operator
}

type offer struct {
	token, code [32]byte // digests
	until       time.Time
}

// NewBrowsers returns none yet. Node is the gateway's name among several, "" without others.
func NewBrowsers(node string) *Browsers {
	return &Browsers{Now: time.Now, node: node, operator: make(map[[32]byte]stay), persons: make(map[[32]byte]stay)}
}

// Offer makes a link's token and a code. Each is good once, and ends the other.
func (b *Browsers) Offer() (token, code string, until time.Time) {
	n, err := rand.Int(rand.Reader, big.NewInt(100_000_000))
	if err != nil {
		panic(err) // the system has no randomness
	}
	token, code = login.Named(b.node, Secret()), login.Named(b.node, fmt.Sprintf("%08d", n))
	b.mu.Lock()
	defer b.mu.Unlock()
	until = b.Now().Add(OfferTime)
	if b.offers = append(b.offers, offer{sum(token), sum(code), until}); len(b.offers) > maxOffers {
		b.offers = b.offers[1:]
	}
	b.wrong = 0
	return token, code, until
}

// take signs in by a token or a code, and returns the cookie; "" if it is none.
func (b *Browsers) take(said string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	digest, now := sum(said), b.Now()
	for i, o := range b.offers {
		if (o.token == digest || o.code == digest) && now.Before(o.until) {
			b.offers = append(b.offers[:i:i], b.offers[i+1:]...)
			return b.stay(b.operator, stay{})
		}
	}
	if b.wrong++; b.wrong >= MaxWrong {
		for i := range b.offers {
			b.offers[i].code = [32]byte{} // no digest of anything
		}
	}
	return ""
}

// stay signs in a browser, and returns its cookie. In a full table it signs out the one used
// longest ago of the person who has the most. The caller holds mu.
func (b *Browsers) stay(in map[[32]byte]stay, one stay) string {
	now := b.Now()
	maps.DeleteFunc(in, func(_ [32]byte, one stay) bool { return now.After(one.until) })
	if len(in) >= maxStays {
		delete(in, evict.Next(in, func(one stay) (gate.Owner, time.Time) { return one.owner, one.until }))
	}
	cookie := login.Named(b.node, Secret())
	one.until = now.Add(StayTime)
	in[sum(cookie)] = one
	return cookie
}

// come signs in the person of a token.
func (b *Browsers) come(who gate.Owner, token string) (cookie string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stay(b.persons, stay{owner: who, token: token})
}

// In reports whether a request is of a browser that has signed in, and with which token; the operator
// has none. If the request asks, and does not only wait, the browser stays signed in for longer.
func (b *Browsers) In(r *http.Request, asks bool) (token string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := sum(Cookie(r)), b.Now()
	for _, in := range []map[[32]byte]stay{b.operator, b.persons} {
		one, ok := in[k]
		switch {
		case !ok:
			continue
		case now.After(one.until):
			delete(in, k)
			return "", false
		case asks:
			one.until = now.Add(StayTime)
			in[k] = one
		}
		return one.token, true
	}
	return "", false
}

// Home returns the gateway that a request is for: that of the link or code with which a browser signs in, or the one that has
// signed it in; "" if none is named. It reads the form of a sign-in, and leaves the body as it was.
func (b *Browsers) Home(r *http.Request) string {
	switch {
	case r.URL.Path == path && r.Method == http.MethodPost:
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxForm)) // an error comes again when signIn reads
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		form, _ := url.ParseQuery(string(body))
		return login.NodeOf(form.Get("code"))
	case strings.HasPrefix(r.URL.Path, path):
		return ""
	}
	return login.NodeOf(Cookie(r))
}

// out signs the browser of a request out.
func (b *Browsers) out(r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.operator, sum(Cookie(r)))
	delete(b.persons, sum(Cookie(r)))
}

// Cookie is what the browser of a request keeps while it is signed in; "" if it keeps nothing.
func Cookie(r *http.Request) string {
	c, err := r.Cookie(cookieName(stayName, r))
	if err != nil {
		return ""
	}
	return c.Value
}

// cookieName is the name of a cookie of the port that a request calls: browsers keep one of a name
// for all ports of a host, so that the consoles of two gateways would sign each other's browser out.
func cookieName(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return name + "_" + port
	}
	return name
}

// Secret returns 64 hexadecimal digits that no one can guess.
func Secret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }
