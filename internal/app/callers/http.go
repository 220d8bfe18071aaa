package callers

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/web"
)

// Same reports whether two configurations let in the same.
func Same(a, b *config.Config) bool {
	return reflect.DeepEqual(a.Auth, b.Auth) && reflect.DeepEqual(a.Principals, b.Principals) &&
		a.PublicURL == b.PublicURL && slices.Equal(a.TLS.TerminatedBy, b.TLS.TerminatedBy)
}

// Take lets in the callers of another configuration from now on.
func (s *Callers) Take(next *config.Config) error {
	s.revoking.Lock()
	defer s.revoking.Unlock()
	if err := s.put(next, s.now.Load().Revocations()); err != nil {
		return err
	}
	s.looks.ring()
	return nil
}

// Caller returns who sends a request to the MCP endpoint. The error answers it.
func (s *Callers) Caller(r *http.Request) (*gate.Principal, error) {
	if !s.ThroughProxy(r) {
		return nil, &challenge{&auth.Refusal{Status: http.StatusForbidden, Description: "this address serves the proxy that speaks TLS", Reason: "a request past tls.terminated_by"}, ""}
	}
	who, err := s.holder(r, r.PathValue(GroupParam))
	refusal, refused := errors.AsType[*auth.Refusal](err)
	if !refused {
		s.Logins.Saw(who, r)
		return who, err
	}
	if s.denied.Add(refusal, r) {
		s.Log.Warn("authentication refused", "reason", refusal.Reason, "from", r.RemoteAddr)
	}
	return nil, &challenge{refusal, s.metadataURL(r.PathValue(GroupParam))}
}

// KeyHolder returns whose API key a request brings. The error is an [*auth.Refusal].
func (s *Callers) KeyHolder(r *http.Request) (*gate.Principal, error) {
	said := r.Header.Values("Authorization")
	key, bearer := strings.CutPrefix(strings.Join(said, ""), "Bearer ")
	if len(said) != 1 || !bearer || !strings.HasPrefix(key, apikey.Prefix) {
		return nil, &auth.Refusal{Status: http.StatusUnauthorized, Description: "programs bring one API key: Authorization: Bearer " + apikey.Prefix + "...", Reason: "no API key"}
	}
	who, _, err := s.now.Load().Identify(r.Context(), key)
	if refusal, refused := errors.AsType[*auth.Refusal](err); refused {
		s.denied.Add(refusal, r)
	}
	return who, err
}

// A challenge answers a request that lets no one in.
type challenge struct {
	*auth.Refusal
	metadata string
}

// ServeHTTP implements [http.Handler].
func (c *challenge) ServeHTTP(w http.ResponseWriter, _ *http.Request) { c.Write(w, c.metadata) }

// Unwrap gives the refusal itself.
func (c *challenge) Unwrap() error { return c.Refusal }

// ServeMetadata tells clients who gives tokens for the endpoint: the same for a group that is
// there and for one that is not.
func (s *Callers) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	now := s.now.Load()
	if len(now.Issuers()) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // it is for everybody, also in a browser
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource": s.Resource(r.PathValue(GroupParam)), "authorization_servers": now.Issuers(),
		"scopes_supported": append([]string{}, now.Scopes()...), "bearer_methods_supported": []string{"header"},
		"resource_name": "wasmgate",
	})
}

// Challenge answers a request whose token lacks scopes for what it asks: it names them with those
// that every token needs: a client asks for all of them at once.
func (s *Callers) Challenge(r *http.Request, scopes []string) string {
	all := append(slices.Clone(s.now.Load().Scopes()), scopes...)
	slices.Sort(all)
	return auth.Challenge(slices.Compact(all), s.metadataURL(r.PathValue(GroupParam)))
}

// ConnContext says of each request what its connection proves.
func (s *Callers) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if c.LocalAddr().Network() != "unix" {
		return ctx
	}
	p := auth.Peer{Unix: true, UID: -1}
	if uid, ok := web.PeerUID(c); ok {
		p.UID = uid
	}
	if proxy := s.Config().Auth.Proxy; proxy != nil {
		p.Proxy = proxy.Unix != "" && c.LocalAddr().String() == proxy.Unix
	}
	return auth.WithPeer(ctx, p)
}

// foldEvery is how often refused authentication is put into the audit log: strangers
// cause no write each.
const foldEvery = time.Minute

// FoldDenials records refused authentication until ctx ends.
func (s *Callers) FoldDenials(ctx context.Context) {
	tick := time.NewTicker(foldEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.RecordDenials()
		case <-ctx.Done():
			s.RecordDenials()
			return
		}
	}
}

// RecordDenials records refused authentication since the last time.
func (s *Callers) RecordDenials() {
	for k, n := range s.denied.Take() {
		if err := s.Gateway.Note(audit.Entry{Event: audit.Denied, Reasons: []string{k.Reason}, Network: k.Network, Count: n}); err != nil {
			s.Log.Error("refused authentication is not in the audit log", "error", err)
			return
		}
	}
}
