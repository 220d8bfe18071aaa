package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/evict"
)

const (
	offerTime = time.Minute    // that a link or a code is good for
	stayTime  = 12 * time.Hour // that a browser stays signed in without a request
	maxOffers = 16
	// maxStays bounds the browsers of the operator, and those of all others.
	maxStays = 64
	// maxWrong is after how many wrong codes all that are open end: eight digits would be
	// guessed otherwise. Links, which cannot be guessed, stay good.
	maxWrong = 5
	stayName = "wasmgate_console"

	// leaveTime is how long a browser may be at an issuer.
	leaveTime   = 10 * time.Minute
	leavingName = "wasmgate_console_leaves"
)

// signins are those who may sign in, and have. Both end with the process.
type signins struct {
	now  func() time.Time
	node string // of this gateway among several, which cookies begin with; "" without others

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

func newSignins(now func() time.Time) signins {
	return signins{now: now, operator: make(map[[32]byte]stay), persons: make(map[[32]byte]stay)}
}

// offer makes a link's token and a code. Each is good once, and ends the other.
func (s *signins) offer() (token, code string, until time.Time) {
	token = secret()
	n, err := rand.Int(rand.Reader, big.NewInt(100_000_000))
	if err != nil {
		panic(err) // the system has no randomness
	}
	code = fmt.Sprintf("%08d", n)
	s.mu.Lock()
	defer s.mu.Unlock()
	until = s.now().Add(offerTime)
	if s.offers = append(s.offers, offer{sum(token), sum(code), until}); len(s.offers) > maxOffers {
		s.offers = s.offers[1:]
	}
	s.wrong = 0
	return token, code, until
}

// take signs in by a token or a code, and returns the cookie; "" if it is none.
func (s *signins) take(said string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest, now := sum(said), s.now()
	for i, o := range s.offers {
		if (o.token == digest || o.code == digest) && now.Before(o.until) {
			s.offers = append(s.offers[:i:i], s.offers[i+1:]...)
			return s.stay(s.operator, stay{})
		}
	}
	if s.wrong++; s.wrong >= maxWrong {
		for i := range s.offers {
			s.offers[i].code = [32]byte{} // no digest of anything
		}
	}
	return ""
}

// stay signs in a browser, and returns its cookie. In a full table it signs out the one used
// longest ago of the person who has the most. The caller holds mu.
func (s *signins) stay(in map[[32]byte]stay, one stay) string {
	now := s.now()
	maps.DeleteFunc(in, func(_ [32]byte, one stay) bool { return now.After(one.until) })
	if len(in) >= maxStays {
		delete(in, evict.Next(in, func(one stay) (gate.Owner, time.Time) { return one.owner, one.until }))
	}
	cookie := secret()
	if s.node != "" {
		cookie = s.node + "." + cookie
	}
	one.until = now.Add(stayTime)
	in[sum(cookie)] = one
	return cookie
}

// come signs in the person of a token.
func (s *signins) come(who gate.Owner, token string) (cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stay(s.persons, stay{owner: who, token: token})
}

// in reports whether a request is of a browser that has signed in, and with which token; the operator
// has none. If the request asks, and does not only wait, the browser stays signed in for longer.
func (s *signins) in(r *http.Request, asks bool) (token string, ok bool) {
	c, err := r.Cookie(cookieName(stayName, r))
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := sum(c.Value), s.now()
	for _, in := range []map[[32]byte]stay{s.operator, s.persons} {
		one, ok := in[k]
		switch {
		case !ok:
			continue
		case now.After(one.until):
			delete(in, k)
			return "", false
		case asks:
			one.until = now.Add(stayTime)
			in[k] = one
		}
		return one.token, true
	}
	return "", false
}

// home returns the gateway that has signed in the browser of a request; "" if its cookie names none.
func (s *signins) home(r *http.Request) string {
	c, err := r.Cookie(cookieName(stayName, r))
	if err != nil {
		return ""
	}
	node, _, several := strings.Cut(c.Value, ".")
	if !several {
		return ""
	}
	return node
}

// out signs the browser of a request out.
func (s *signins) out(r *http.Request) {
	if c, err := r.Cookie(cookieName(stayName, r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.operator, sum(c.Value))
		delete(s.persons, sum(c.Value))
	}
}

// cookieName is the name of a cookie of the port that a request calls: browsers keep one of a name
// for all ports of a host, so that the consoles of two gateways would sign each other's browser out.
func cookieName(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return name + "_" + port
	}
	return name
}

func secret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func (c *Console) signinPage(w http.ResponseWriter, r *http.Request) {
	c.signinProblem(w, http.StatusOK, "")
}

// signin takes the token of a link, which its page's script reads, or a code.
func (c *Console) signin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	cookie := c.signins.take(r.PostFormValue("code"))
	if cookie == "" {
		c.signinProblem(w, http.StatusForbidden, "The link or the code is no longer valid: run wasmgate console again.")
		return
	}
	c.stay(w, r, cookie)
	http.Redirect(w, r, "/ui/", http.StatusSeeOther)
}

// signout needs no decision of a policy: anyone who is signed in may sign out.
func (c *Console) signout(w http.ResponseWriter, r *http.Request) {
	c.signins.out(r)
	http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
}
