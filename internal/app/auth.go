package app

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
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// sameSenders reports whether two configurations let in the same.
func sameSenders(a, b *config.Config) bool {
	return reflect.DeepEqual(a.Auth, b.Auth) && reflect.DeepEqual(a.Principals, b.Principals) &&
		a.PublicURL == b.PublicURL && slices.Equal(a.TLS.TerminatedBy, b.TLS.TerminatedBy)
}

// putSenders puts in place what differs of who is let in.
func (a *App) putSenders(before, next *config.Config, again bool) error {
	if !again && sameSenders(before, next) {
		return nil
	}
	for _, addr := range a.listens {
		if err := next.CheckListen(addr); err != nil { // it was given as a flag
			return err
		}
	}
	a.senders.revoking.Lock()
	defer a.senders.revoking.Unlock()
	if err := a.senders.put(next, a.senders.now.Load().Revocations()); err != nil {
		return err
	}
	a.senders.looks.ring()
	return nil
}

// sender returns who sends a request to the MCP endpoint. The error answers it.
func (a *App) sender(r *http.Request) (*gate.Principal, error) {
	s := a.senders
	if !s.throughProxy(r) {
		return nil, &challenge{&auth.Refusal{Status: http.StatusForbidden, Description: "this address serves the proxy that speaks TLS", Reason: "a request past tls.terminated_by"}, ""}
	}
	who, err := a.holder(r, r.PathValue(groupParam))
	refusal, refused := errors.AsType[*auth.Refusal](err)
	if !refused {
		a.logins.Saw(who, r)
		return who, err
	}
	if s.denied.Add(refusal, r) {
		a.log.Warn("authentication refused", "reason", refusal.Reason, "from", r.RemoteAddr)
	}
	return nil, &challenge{refusal, s.metadataURL(r.PathValue(groupParam))}
}

// KeyHolder returns whose API key a request brings. The error is an [*auth.Refusal].
func (a *App) KeyHolder(r *http.Request) (*gate.Principal, error) {
	said := r.Header.Values("Authorization")
	key, bearer := strings.CutPrefix(strings.Join(said, ""), "Bearer ")
	if len(said) != 1 || !bearer || !strings.HasPrefix(key, apikey.Prefix) {
		return nil, &auth.Refusal{Status: http.StatusUnauthorized, Description: "programs bring one API key: Authorization: Bearer " + apikey.Prefix + "...", Reason: "no API key"}
	}
	who, _, err := a.senders.now.Load().Identify(r.Context(), key)
	if refusal, refused := errors.AsType[*auth.Refusal](err); refused {
		a.senders.denied.Add(refusal, r)
	}
	return who, err
}

// A challenge answers a request that nobody is let in with.
type challenge struct {
	*auth.Refusal
	metadata string
}

// ServeHTTP implements [http.Handler].
func (c *challenge) ServeHTTP(w http.ResponseWriter, _ *http.Request) { c.Write(w, c.metadata) }

// Unwrap gives the refusal itself.
func (c *challenge) Unwrap() error { return c.Refusal }

// metadata tells clients who gives tokens for the endpoint: the same for a group that is
// there and for one that is not.
func (a *App) metadata(w http.ResponseWriter, r *http.Request) {
	s, now := a.senders, a.senders.now.Load()
	if len(now.Issuers()) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // it is for everybody, also in a browser
	_ = json.NewEncoder(w).Encode(map[string]any{
		"resource": s.resource(r.PathValue(groupParam)), "authorization_servers": now.Issuers(),
		"scopes_supported": append([]string{}, now.Scopes()...), "bearer_methods_supported": []string{"header"},
		"resource_name": "wasmgate",
	})
}

// lacking is the challenge to a request whose token lacks scopes for what it asks, with those
// that every token needs: a client asks for all of them at once.
func (a *App) lacking(r *http.Request, scopes []string) string {
	all := append(slices.Clone(a.senders.now.Load().Scopes()), scopes...)
	slices.Sort(all)
	return auth.Challenge(slices.Compact(all), a.senders.metadataURL(r.PathValue(groupParam)))
}

// handler serves MCP and what clients have to know beforehand.
func (a *App) handler() http.Handler {
	pages := http.NewServeMux()
	for _, path := range []string{wellKnown, wellKnown + "/mcp", wellKnown + "/mcp/{" + groupParam + "}"} {
		pages.HandleFunc("GET "+path, a.metadata)
	}
	a.logins.Handle(pages)
	pages.HandleFunc("/connect/", func(w http.ResponseWriter, r *http.Request) {
		if !a.senders.throughProxy(r) {
			http.Error(w, "this address serves the proxy that speaks TLS", http.StatusForbidden)
			return
		}
		if !a.shared.peers.Page(w, r, connect.Node(r)) {
			a.connect.ServeHTTP(w, r)
		}
	})
	bounded, calls := web.Bounded(a.bodyTime, pages), a.ending(a.gateway) // which bounds bodies itself
	// All that is no page has a pattern, too: a mux that finds none looks for other methods of the path.
	const noPage = "/"
	pages.Handle(noPage, calls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, page := pages.Handler(r); page != noPage {
			if !loopback.Host(r.Host) && !slices.Contains(translation.Hosts(a.Config()), r.Host) {
				http.Error(w, "this Host is not allowed; add it to http.hosts in the configuration if it is meant", http.StatusForbidden)
				return
			}
			bounded.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
}

// connContext says of each request what its connection proves.
func (a *App) connContext(ctx context.Context, c net.Conn) context.Context {
	if c.LocalAddr().Network() != "unix" {
		return ctx
	}
	p := auth.Peer{Unix: true, UID: -1}
	if uid, ok := web.PeerUID(c); ok {
		p.UID = uid
	}
	if proxy := a.Config().Auth.Proxy; proxy != nil {
		p.Proxy = proxy.Unix != "" && c.LocalAddr().String() == proxy.Unix
	}
	return auth.WithPeer(ctx, p)
}

// foldEvery is how often refused authentication is put into the audit log: strangers
// cause no write each.
const foldEvery = time.Minute

// foldDenials records refused authentication until ctx ends.
func (a *App) foldDenials(ctx context.Context) {
	tick := time.NewTicker(foldEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.recordDenials()
		case <-ctx.Done():
			a.recordDenials()
			return
		}
	}
}

func (a *App) recordDenials() {
	for k, n := range a.senders.denied.Take() {
		if err := a.gateway.Operator().Note(audit.Entry{Event: audit.Denied, Reasons: []string{k.Reason}, Network: k.Network, Count: n}); err != nil {
			a.log.Error("refused authentication is not in the audit log", "error", err)
			return
		}
	}
}
