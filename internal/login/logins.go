package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Logins has a token for each request to the servers that want one. It may be used from
// several goroutines.
type Logins struct {
	o Options

	mu      sync.Mutex
	servers map[string]*Server
	flows   map[string]*flow
	rows    *rows

	seal      cipher.AEAD // of tickets
	providers providers
	subjects  subjects
}

// New returns logins for no servers yet.
func New(o Options) *Logins {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Public == nil {
		o.Public = func() string { return "" }
	}
	return &Logins{
		o: o, servers: make(map[string]*Server), flows: make(map[string]*flow), rows: &rows{o: o, byKey: make(map[vault.Key]*row)},
		seal: newSeal(o.Seal), providers: providers{all: make(map[string]*provider)}, subjects: subjects{tokens: make(map[caller]string)},
	}
}

// newSeal seals by a key of 32 bytes, or by one of this process.
func newSeal(key []byte) cipher.AEAD {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has its size
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has its block size
	}
	return seal
}

// Set has these servers, and no others, from now on.
func (l *Logins) Set(servers []*Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = make(map[string]*Server)
	exchanges := false
	for _, s := range servers {
		l.servers[s.ID] = s
		if s.IDP != nil {
			l.servers[s.IDP.ID] = s.IDP
		}
		exchanges = exchanges || s.Mode == Exchange
	}
	l.rows.actors.set(servers)
	l.subjects.set(exchanges)
}

func (l *Logins) server(id string) (*Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.servers[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("server %q takes no login: write auth: oauth to it under servers in the configuration", id)
}

// through returns the servers whose tokens come from logins at an identity provider.
func (l *Logins) through(idp string) (all []*Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		if s.IDP != nil && s.IDP.ID == idp {
			all = append(all, s)
		}
	}
	return all
}

func (l *Logins) changed(server string) {
	if l.o.Changed == nil {
		return
	}
	through := l.through(server)
	if len(through) == 0 {
		l.o.Changed(server)
	}
	for _, s := range through {
		l.o.Changed(s.ID)
	}
}

// Follow takes over what other gateways have done to logins, as the names of changed documents say.
func (l *Logins) Follow(names []string) {
	servers := make(map[string]bool)
	for _, name := range names {
		k, ok := vault.KeyOf(name)
		if !ok {
			continue
		}
		l.rows.mu.Lock()
		r := l.rows.byKey[k]
		l.rows.mu.Unlock()
		if r == nil {
			r = &row{all: l.rows, key: k}
		}
		r.mu.Lock()
		known, before := r.read, r.grant
		r.read = false
		r.load()
		came := r.grant != nil && r.grant.Got.Equal(r.grant.Made) // otherwise it was refreshed
		if r.read && (!known || !r.grant.is(before)) && (came || r.grant == nil) && k.Kind == loginKind {
			servers[k.Server] = true
		}
		r.mu.Unlock()
	}
	for server := range servers {
		l.changed(server)
	}
}

// List returns all logins, by server, tenant and principal.
func (l *Logins) List() ([]Login, error) {
	keys, err := l.o.Vault.List(loginKind)
	if err != nil {
		return nil, err
	}
	all := []Login{}
	for _, k := range keys {
		l.mu.Lock()
		s := l.servers[k.Server]
		l.mu.Unlock()
		one := Login{Server: k.Server, Tenant: k.Tenant, Principal: k.Principal}
		if s == nil || s.owner(gate.Owner{Tenant: k.Tenant, ID: k.Principal}) != (gate.Owner{Tenant: k.Tenant, ID: k.Principal}) {
			one.Problem = "the configuration has no such server any more, or with another identity"
			all = append(all, one)
			continue
		}
		r := l.rows.row(s, gate.Owner{Tenant: k.Tenant, ID: k.Principal})
		r.mu.Lock()
		r.load()
		if r.grant != nil {
			one = *r.shown(r.grant)
			if r.grant.URL != s.URL {
				one.Problem = errMoved.Error()
			}
		}
		if r.problem != nil {
			one.Problem = r.problem.Error()
		}
		r.mu.Unlock()
		all = append(all, one)
	}
	return all, nil
}
