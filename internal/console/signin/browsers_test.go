package signin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Everything that signs browsers in is bounded in number and time: links and codes, and browsers that
// have signed in.
func TestSignInBounds(t *testing.T) {
	now := time.Now()
	s := NewBrowsers("")
	s.Now = func() time.Time { return now }
	_, oldest, _ := s.Offer()
	for range maxOffers {
		s.Offer()
	}
	if len(s.offers) != maxOffers || s.take(oldest) != "" {
		t.Errorf("%d links are good, or the oldest of more is", len(s.offers))
	}
	token, code, _ := s.Offer()
	for range MaxWrong {
		s.take("00000000x")
	}
	if s.take(code) != "" || s.take(token) == "" {
		t.Error("a code outlives guesses, or a link does not")
	}
	in := func(cookie string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: cookieName(stayName, r), Value: cookie})
		_, ok := s.In(r, false)
		return ok
	}
	token, _, _ = s.Offer()
	operator, bob := s.take(token), s.come(gate.Owner{ID: "bob"}, "his")
	for range 3 * maxStays {
		now = now.Add(time.Second)
		s.come(gate.Owner{ID: "alice"}, "hers")
	}
	if !in(operator) || !in(bob) || len(s.persons) > maxStays {
		t.Errorf("a person who signs in often signs out the operator (%t) or another (%t); %d stay", !in(operator), !in(bob), len(s.persons))
	}
	for i := range 3 * maxStays {
		s.come(gate.Owner{ID: fmt.Sprint("p", i)}, "theirs")
	}
	if !in(operator) || len(s.persons) > maxStays {
		t.Errorf("many persons sign out the operator, or %d stay", len(s.persons))
	}
	now = now.Add(StayTime)
	now = now.Add(time.Second)
	if s.come(gate.Owner{ID: "alice"}, "token"); len(s.persons) != 1 {
		t.Errorf("%d browsers stay signed in", len(s.persons))
	}
	asks, waits := s.come(gate.Owner{ID: "alice"}, "a token"), s.come(gate.Owner{ID: "alice"}, "a token")
	for range 3 { // the second one only waits, like a page that reads events
		now = now.Add(StayTime * 2 / 5)
		for cookie, more := range map[string]bool{asks: true, waits: false} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: cookieName(stayName, r), Value: cookie})
			s.In(r, more)
		}
	}
	if _, ok := s.persons[sum(asks)]; !ok {
		t.Error("a browser that asks is signed out")
	}
	if _, ok := s.persons[sum(waits)]; ok {
		t.Error("a browser that only waits stays signed in")
	}
}
