package login

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	// providerTime is how long an issuer's answer is used, and failedTime how long an error is.
	providerTime, failedTime = time.Minute, 5 * time.Second
	// registeredTime is how long a client begins sign-ins that was registered for them: an issuer may
	// forget it.
	registeredTime = flowTime
	maxRegistered  = 64
)

// providers are the issuers at which people sign in, by their names.
type providers struct {
	mu  sync.Mutex
	all map[string]*provider
}

// A provider is what is known of an issuer at which people sign in, so that many sign-ins cost it
// few requests.
type provider struct {
	mu         sync.Mutex // held while the issuer is asked
	meta       *oauthex.AuthServerMeta
	err        error
	until      time.Time
	registered map[string]registration // by redirect
}

type registration struct {
	client client
	until  time.Time
}

// known returns what is known of the issuer of a server.
func (t *providers) known(s *Server) *provider {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.all[s.Issuer]
	if k == nil {
		k = &provider{registered: make(map[string]registration)}
		t.all[s.Issuer] = k
	}
	return k
}
