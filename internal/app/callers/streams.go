package callers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth"
)

// lookAgain is after which time who has opened a stream is found out again.
const lookAgain = 15 * time.Second

// Ending ends streams of notifications once their requests would be refused, or be
// somebody else's: the credential has ended, or was revoked. Calls end at their own end, or
// with Revoked of [gateway.Gateway.Operator].
func (s *Callers) Ending(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !streams(r) || !s.Config().Auth.On() {
			next.ServeHTTP(w, r)
			return
		}
		ctx, end := context.WithCancel(r.Context())
		defer end()
		r = r.WithContext(ctx)
		go s.whileHeld(r.Clone(ctx), end) // ends with the request
		next.ServeHTTP(w, r)
	})
}

// streams reports whether a request opens a stream of notifications: a GET of the older
// revisions, or the method that has to be in a header of the newer one.
func streams(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// whileHeld returns with the request, or ends it.
func (s *Callers) whileHeld(r *http.Request, end func()) {
	_, group, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var owner *gate.Owner
	for {
		again := s.looks.next() // before the look: what is revoked meanwhile is seen
		who, err := s.holder(r, group)
		if err != nil || owner != nil && *owner != who.Owner {
			break
		}
		owner = &who.Owner
		select {
		case <-r.Context().Done():
			return
		case <-again:
		case <-time.After(s.LookAgain):
		}
	}
	end()
}

// holder returns whose credential a request at a group brings.
func (s *Callers) holder(r *http.Request, group string) (*gate.Principal, error) {
	find := func() (*gate.Principal, error) {
		return s.now.Load().Principal(r, s.Resource(group), s.Resource(""))
	}
	who, err := find()
	if _, refused := errors.AsType[*auth.Refusal](err); refused && s.Later(r.Context()) {
		return find()
	}
	return who, err
}

// revoked ends what principals have under way whose credentials do not hold any more.
func (s *Callers) revoked(whose func(*gate.Principal) bool) {
	s.Gateway.Revoked(whose)
	s.looks.ring()
}
