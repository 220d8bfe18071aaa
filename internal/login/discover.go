package login

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A place is where tokens for a server come from.
type place struct {
	resource string // as tokens are asked for (RFC 8707)
	scopes   []string
	oauthex.AuthServerMeta
}

// probes ask a server for nothing but whether it wants a credential, as clients of either
// revision begin. One that knows the other alone may answer 400 before it looks for one.
var probes = []struct{ revision, method, body string }{
	{"2026-07-28", "tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"wasmgate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{"", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wasmgate","version":"0"}}}`},
}

// discover finds out who gives tokens for a server (MCP 2026-07-28, basic/authorization,
// "Authorization Server Discovery"). There is no guessing where the server says nothing, or
// says it of another server: a server that is asked for tokens of others could collect them.
func discover(ctx context.Context, s *Server) (*place, error) {
	if s.Mode == idpMode { // which is for no server
		meta, err := serverMetadata(ctx, s, s.Issuer)
		if err != nil {
			return nil, err
		}
		return &place{AuthServerMeta: *meta}, nil
	}
	challenge, err := challenged(ctx, s)
	if err != nil {
		return nil, err
	}
	prm, err := resourceMetadata(ctx, s, challenge["resource_metadata"])
	if err != nil {
		return nil, err
	}
	issuer := s.Issuer
	if issuer == "" && len(prm.AuthorizationServers) > 0 {
		issuer = prm.AuthorizationServers[0]
	}
	if issuer == "" {
		return nil, fmt.Errorf("%s does not say who gives tokens for it; name the authorization server in servers.%s.auth.issuer", s.host(), s.ID)
	}
	if s.Issuer != "" && len(prm.AuthorizationServers) > 0 && !slices.Contains(prm.AuthorizationServers, s.Issuer) {
		return nil, fmt.Errorf("%s says that its tokens come from %q, and not from servers.%s.auth.issuer", s.host(), prm.AuthorizationServers, s.ID)
	}
	p := &place{resource: prm.Resource, scopes: strings.Fields(challenge["scope"])}
	if len(p.scopes) == 0 {
		p.scopes = prm.ScopesSupported
	}
	meta, err := serverMetadata(ctx, s, issuer)
	if err != nil {
		return nil, err
	}
	p.AuthServerMeta = *meta
	return p, nil
}

// challenged returns the parameters with which a server answers a request without a
// credential (RFC 6750, 3); none if it answers otherwise.
func challenged(ctx context.Context, s *Server) (map[string]string, error) {
	for _, p := range probes {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(p.body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if p.revision != "" {
			r.Header.Set("MCP-Protocol-Version", p.revision)
			r.Header.Set("Mcp-Method", p.method)
		}
		resp, err := s.Client.Do(r)
		if err != nil {
			return nil, plain(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized {
			return bearer(resp.Header), nil
		}
	}
	return nil, nil
}

// bearer returns the parameters of the challenge for bearer tokens; nil if there is none.
func bearer(h http.Header) map[string]string {
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" {
			return c.Params
		}
	}
	return nil
}

// resourceMetadata reads what a server says of itself (RFC 9728), where its challenge says, or
// else where it has to be.
func resourceMetadata(ctx context.Context, s *Server, at string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := u.Scheme + "://" + u.Host
	places := []string{at}
	if at == "" {
		places = []string{root + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), root + wellKnown}
	}
	for _, at := range slices.Compact(places) {
		prm := new(oauthex.ProtectedResourceMetadata)
		err := s.get(ctx, at, prm)
		if missing(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the server's OAuth metadata (RFC 9728) cannot be read: %w", err)
		}
		if !covers(prm.Resource, u) {
			return nil, fmt.Errorf("the metadata at %s describes %q, not this server, so its tokens are not used", at, prm.Resource)
		}
		return prm, nil
	}
	if s.Issuer == "" {
		return nil, fmt.Errorf("%s has no protected resource metadata (RFC 9728), so its authorization server is unknown; name the authorization server in servers.%s.auth.issuer", s.host(), s.ID)
	}
	return &oauthex.ProtectedResourceMetadata{Resource: canonical(u)}, nil
}

// canonical is the URL of a server as resource (MCP, basic/authorization, "Canonical Server URI").
func canonical(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
}

// covers reports whether a resource is the server at u, or a part of its origin above it.
func covers(resource string, u *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || r.Fragment != "" || r.User != nil || r.RawQuery != "" || !strings.EqualFold(r.Scheme, u.Scheme) || !strings.EqualFold(r.Host, u.Host) {
		return false
	}
	above, path := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(u.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// serverMetadata reads the metadata of an authorization server. Its issuer is the one that was
// asked for, byte for byte, and it has PKCE with S256.
func serverMetadata(ctx context.Context, s *Server, issuer string) (*oauthex.AuthServerMeta, error) {
	if err := checkEndpoint(issuer); err != nil {
		return nil, err
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	for _, at := range places {
		m := new(oauthex.AuthServerMeta)
		err := s.get(ctx, at, m)
		switch {
		case missing(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("the authorization server's metadata (RFC 8414) cannot be read: %w", err)
		case m.Issuer != issuer:
			return nil, fmt.Errorf("the metadata at %s is of the issuer %q, not of %q", at, m.Issuer, issuer)
		case m.TokenEndpoint == "" || m.AuthorizationEndpoint == "" && s.asksPeople():
			return nil, fmt.Errorf("the authorization server %s does not name its endpoints", issuer)
		case !slices.Contains(m.CodeChallengeMethodsSupported, "S256") && s.asksPeople():
			return nil, fmt.Errorf("the authorization server %s does not say that it has PKCE with S256, without which codes can be stolen", issuer)
		}
		for _, endpoint := range []string{m.TokenEndpoint, m.AuthorizationEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint} {
			if endpoint == "" {
				continue
			}
			if err := checkEndpoint(endpoint); err != nil {
				return nil, fmt.Errorf("an endpoint of the authorization server %s: %w", issuer, err)
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("the authorization server %s has no metadata (RFC 8414)", issuer)
}
