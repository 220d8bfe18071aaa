package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	offerTime = time.Minute    // that a link or a code is good for
	stayTime  = 12 * time.Hour // that a browser stays signed in without a request
	maxOffers = 16
	maxStays  = 64
	// maxWrong is after how many wrong codes all that are open end: eight digits would be
	// guessed otherwise. Links, which cannot be guessed, stay good.
	maxWrong = 5
	stayName = "wasmgate_console"

	// leaveTime is how long a browser may be at an issuer, and maxLeaving how many are.
	leaveTime   = 10 * time.Minute
	maxLeaving  = 64
	leavingName = "wasmgate_console_leaves"
)

// signins are those who may sign in, and have. Both end with the process.
type signins struct {
	now func() time.Time

	mu      sync.Mutex
	offers  []offer
	stays   map[[32]byte]stay    // by the digest of the cookie
	leaving map[string]departure // by the state that comes back
	wrong   int
}

// A stay is a browser that has signed in.
type stay struct {
	until time.Time
	token string // of a person who has signed in at an issuer; "" for the operator
}

// A departure is a browser on its way to an issuer.
type departure struct {
	cookie [32]byte // its digest
	until  time.Time
}

type offer struct {
	token, code [32]byte // digests
	until       time.Time
}

func newSignins(now func() time.Time) signins {
	return signins{now: now, stays: make(map[[32]byte]stay), leaving: make(map[string]departure)}
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
			return s.stay("")
		}
	}
	if s.wrong++; s.wrong >= maxWrong {
		for i := range s.offers {
			s.offers[i].code = [32]byte{} // no digest of anything
		}
	}
	return ""
}

// stay signs in a browser, and returns its cookie. The caller holds mu.
func (s *signins) stay(token string) string {
	now := s.now()
	for k, one := range s.stays {
		if now.After(one.until) || len(s.stays) >= maxStays {
			delete(s.stays, k)
		}
	}
	cookie := secret()
	s.stays[sum(cookie)] = stay{now.Add(stayTime), token}
	return cookie
}

// come signs in the person of a token.
func (s *signins) come(token string) (cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stay(token)
}

// leave has a browser go to an issuer, from where a state comes back, and returns the cookie by
// which it is known then.
func (s *signins) leave(state string) (cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for k, one := range s.leaving {
		if now.After(one.until) || len(s.leaving) >= maxLeaving {
			delete(s.leaving, k)
		}
	}
	cookie = secret()
	s.leaving[state] = departure{sum(cookie), now.Add(leaveTime)}
	return cookie
}

// back reports whether a request is of the browser that has left with a state, once.
func (s *signins) back(state string, r *http.Request) bool {
	c, err := r.Cookie(cookieName(leavingName, r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.leaving[state]
	if !ok || one.cookie != sum(c.Value) {
		return false
	}
	delete(s.leaving, state)
	return !s.now().After(one.until)
}

// in reports whether a request is of a browser that has signed in, and with which token: none
// is the operator's. If it asks, and does not only wait, it stays signed in for longer.
func (s *signins) in(r *http.Request, asks bool) (token string, ok bool) {
	c, err := r.Cookie(cookieName(stayName, r))
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := sum(c.Value), s.now()
	one, ok := s.stays[k]
	if !ok || now.After(one.until) {
		delete(s.stays, k)
		return "", false
	}
	if asks {
		one.until = now.Add(stayTime)
		s.stays[k] = one
	}
	return one.token, true
}

// out signs the browser of a request out.
func (s *signins) out(r *http.Request) {
	if c, err := r.Cookie(cookieName(stayName, r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stays, sum(c.Value))
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
		c.signinProblem(w, http.StatusForbidden, "The link or the code is not good any more: run wasmgate console again.")
		return
	}
	c.stay(w, r, cookie)
	http.Redirect(w, r, "/ui/", http.StatusSeeOther)
}

// signout is no act that a policy decides on: whoever is in may go.
func (c *Console) signout(w http.ResponseWriter, r *http.Request) {
	c.signins.out(r)
	http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
}
