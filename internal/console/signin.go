package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
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
	maxWrong   = 5
	cookieName = "wasmgate_console"
)

// signins are those who may sign in, and have. Both end with the process.
type signins struct {
	now func() time.Time

	mu     sync.Mutex
	offers []offer
	stays  map[[32]byte]time.Time // until when, by the digest of the cookie
	wrong  int
}

type offer struct {
	token, code [32]byte // digests
	until       time.Time
}

func newSignins(now func() time.Time) signins {
	return signins{now: now, stays: make(map[[32]byte]time.Time)}
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
			return s.stay(now)
		}
	}
	if s.wrong++; s.wrong >= maxWrong {
		for i := range s.offers {
			s.offers[i].code = [32]byte{} // no digest of anything
		}
	}
	return ""
}

func (s *signins) stay(now time.Time) string {
	for k, until := range s.stays {
		if now.After(until) || len(s.stays) >= maxStays {
			delete(s.stays, k)
		}
	}
	cookie := secret()
	s.stays[sum(cookie)] = now.Add(stayTime)
	return cookie
}

// in reports whether a request is of a browser that has signed in. If it asks, and does not
// only wait, it stays signed in for longer.
func (s *signins) in(r *http.Request, asks bool) bool {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := sum(c.Value), s.now()
	until, ok := s.stays[k]
	if !ok || now.After(until) {
		delete(s.stays, k)
		return false
	}
	if asks {
		s.stays[k] = now.Add(stayTime)
	}
	return true
}

// out signs the browser of a request out.
func (s *signins) out(r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stays, sum(c.Value))
	}
}

func secret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func (c *Console) signinPage(w http.ResponseWriter, r *http.Request) {
	page(w, http.StatusOK, "signin", view{Title: "Sign in", Out: true})
}

// signin takes the token of a link, which its page's script reads, or a code.
func (c *Console) signin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	cookie := c.signins.take(r.PostFormValue("code"))
	if cookie == "" {
		page(w, http.StatusForbidden, "signin", view{Title: "Sign in", Out: true, Problem: "The link or the code is not good any more: run wasmgate console again."})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/ui/", http.StatusSeeOther)
}

// signout is no act that a policy decides on: whoever is in may go.
func (c *Console) signout(w http.ResponseWriter, r *http.Request) {
	c.signins.out(r)
	http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
}
