package login

import (
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A caller is somebody with the credential by which they were let in.
type caller struct {
	gate.Owner
	credential string
}

// maxTokens bounds the tokens of callers that are held, in memory alone.
const maxTokens = 10_000

// Saw keeps the token by which somebody was let in, if a server takes such in exchange. It
// goes to the authorization server of that server and nowhere else. A nil who is nobody.
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
