package login

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A caller is a principal with the credential by which they were let in.
type caller struct {
	gate.Owner
	credential string
}

// maxTokens bounds the tokens of callers that are kept, only in memory.
const maxTokens = 10_000

// Saw keeps the token of a caller that was let in, if a server takes such tokens in exchange. The token
// goes to the authorization server of that server and nowhere else. A nil who keeps nothing.
func (l *Logins) Saw(who *gate.Principal, r *http.Request) {
	if !l.exchanges.Load() || who == nil || who.Auth != "bearer" {
		return
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for old := range l.tokens {
		if len(l.tokens) < maxTokens {
			break
		}
		delete(l.tokens, old)
	}
	l.tokens[caller{who.Owner, who.Credential}] = token
}

func (l *Logins) subject(who *gate.Principal) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tokens[caller{who.Owner, who.Credential}]
}

// actor returns a token of the gateway's own, by which an authorization server knows who acts
// for a caller (RFC 8693, 1.1 and 2.1). It is for no server: only the authorization server gets it.
func (l *Logins) actor(ctx context.Context, s *Server, g *grant) (string, error) {
	now := l.o.Now()
	l.mu.Lock()
	kept := l.actors[s]
	l.mu.Unlock()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.servers[s.ID] == s {
		l.actors[s] = got
	}
	return got.Access, nil
}

// forgetActor has the next exchange get another token: the one that is kept may be what was refused.
func (l *Logins) forgetActor(s *Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.actors, s)
}
