package login

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A caller is a principal with the credential by which they were let in.
type caller struct {
	gate.Owner
	credential string
}

// maxTokens bounds the tokens of callers that are kept, only in memory.
const maxTokens = 10_000

// subjects are the tokens of callers that were let in.
type subjects struct {
	wanted atomic.Bool // a server takes them in exchange

	mu     sync.Mutex
	tokens map[caller]string
}

// set says whether a server takes the tokens in exchange. Without one they are forgotten.
func (t *subjects) set(wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted.Store(wanted); !wanted {
		clear(t.tokens)
	}
}

// keep keeps the token of a caller, if a server takes such tokens.
func (t *subjects) keep(who *gate.Principal, r *http.Request) {
	if !t.wanted.Load() || who == nil || who.Auth != "bearer" {
		return
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for old := range t.tokens {
		if len(t.tokens) < maxTokens {
			break
		}
		delete(t.tokens, old)
	}
	t.tokens[caller{who.Owner, who.Credential}] = token
}

// token is that of a caller; "" if there is none.
func (t *subjects) token(who *gate.Principal) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens[caller{who.Owner, who.Credential}]
}

// actors are tokens of the gateway's own, by which an authorization server knows who acts
// for a caller (RFC 8693, 1.1 and 2.1). They are for no server: only the authorization server gets them.
type actors struct {
	mu  sync.Mutex
	all map[*Server]*grant // of the servers as they are configured; nil is none yet
}

// set has tokens for these servers, and no others, from now on.
func (a *actors) set(servers []*Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = make(map[*Server]*grant)
	for _, s := range servers {
		a.all[s] = nil
	}
}

// token returns one for a server whose own grant is g.
func (a *actors) token(ctx context.Context, s *Server, g *grant, now time.Time) (string, error) {
	a.mu.Lock()
	kept := a.all[s]
	a.mu.Unlock()
	if kept != nil && kept.holds(now) {
		return kept.Access, nil
	}
	own := *g
	own.Resource = ""
	asking, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	got, err := own.ask(asking, s, now, url.Values{"grant_type": {"client_credentials"}})
	if err != nil {
		return "", err
	}
	a.put(s, got)
	return got.Access, nil
}

// forget has the next exchange get another token: the one that is kept may be what was refused.
func (a *actors) forget(s *Server) { a.put(s, nil) }

func (a *actors) put(s *Server, g *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, configured := a.all[s]; configured {
		a.all[s] = g
	}
}
