package app_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestWhoAmI: of a credential it is said whose it is and for how long, or which check it fails and what to do about that.
func TestWhoAmI(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	ask := func(s *site, token string) *callers.Who {
		t.Helper()
		who, err := s.Callers.WhoAmI(t.Context(), callers.WhoRequest{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	token := func(changes map[string]any) string { return strings.TrimPrefix(s.token(p, changes), "Bearer ") }
	if who := ask(s, ""); who.Principal != "local" || !who.Operator || who.Refused != 0 || !who.Ends.IsZero() {
		t.Errorf("the operator: %+v", who)
	}
	if who := ask(s, token(nil)+"\n"); who.Principal != "alice" || who.Operator || who.Auth != "bearer" || who.Issuer != "corp" || strings.Join(who.Roles, " ") != "dev everybody" || who.Ends.IsZero() || who.Tools == nil || *who.Tools < 3 {
		t.Errorf("a token: %+v", who)
	}
	if who, err := s.Callers.WhoAmI(t.Context(), callers.WhoRequest{Token: token(map[string]any{"aud": s.url + "/docs"}), Group: "docs"}); err != nil || who.Principal != "alice" {
		t.Errorf("a token of a group, there: %+v, %v", who, err)
	}
	key := func(r callers.KeyRequest) *callers.Key {
		t.Helper()
		k, err := s.Callers.CreateKey(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	good, revoked := key(callers.KeyRequest{Name: "good", As: "builder", Expires: time.Hour}), key(callers.KeyRequest{Name: "revoked", As: "builder"})
	if who := ask(s, good.Secret); who.Principal != "builder" || who.Auth != "apikey" || who.Credential != good.ID || !who.Ends.Equal(good.Expires) {
		t.Errorf("a key: %+v", who)
	}
	if _, err := s.Callers.RevokeKey(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	other, err := auth.OpenKeys(t.Context(), state.File(filepath.Join(s.cfg.State, "keys.json"))) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	ended, _, err := other.Create(t.Context(), auth.Key{Name: "ended", Principal: "builder", Expires: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	orphaned, _, err := other.Create(t.Context(), auth.Key{Name: "orphaned", Principal: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "the other keys", func() bool { all, err := s.Callers.Keys(t.Context()); return err == nil && len(all) == 4 })
	if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{TokenID: "gone"}); err != nil {
		t.Fatal(err)
	}
	forged := token(map[string]any{"jti": "forged"})
	forged = forged[:len(forged)-20] + strings.Repeat("A", 18) + forged[len(forged)-2:]
	away := authtest.New(t)
	away.Down.Store(true)
	strict := newSite(t, strings.NewReplacer("ISSUER", p.URL, "claims: {roles: groups, keep: [sub]}, roles: {\"eng-*\": dev, all: everybody}", "claims: {groups: groups}, groups: {none: docs}").Replace(teamConfig))
	closed := newSite(t, strings.NewReplacer("ISSUER", away.URL, "  keys: true\n", "").Replace(teamConfig))
	for name, tt := range map[string]struct {
		at     *site
		token  string
		status int
		reason string
		fix    string
	}{
		"a key where none is taken": {closed, good.Secret, 401, "does not accept API keys", "auth: {keys: true}"},
		"half a key":                {s, good.Secret[:20], 401, "does not have the form", "copy the key whole"},
		"a revoked key":             {s, revoked.Secret, 401, "is revoked", "wasmgate key create"},
		"a key that has ended":      {s, ended, 401, "ended at", "wasmgate key create"},
		"a key of no principal":     {s, orphaned, 403, "no longer has", "list its principal"},
		"another gateway's key":     {strict, good.Secret, 401, "this gateway did not make this API key, or it was deleted", "wasmgate key list"},
		"an opaque token":           {s, "opaque", 401, "has 1 parts", "opaque tokens"},
		"a cut token":               {s, token(nil) + "=", 401, "base64url", "copy the token whole"},
		"an ID token":               {s, token(map[string]any{"nonce": "n"}), 401, "ID token", "send the access token"},
		"a slash more":              {s, token(map[string]any{"iss": p.URL + "/"}), 401, "the token's issuer is not configured here", "byte for byte"},
		"another audience":          {s, token(map[string]any{"aud": "https://other.example.com"}), 401, "its audience is not", s.url},
		"a group's, at the parent":  {s, token(map[string]any{"aud": s.url + "/docs"}), 401, "its audience is not", s.url},
		"another type":              {s, p.Sign(t, p.Claims(map[string]any{"aud": s.url}), map[string]any{"typ": "secevent+jwt"}), 401, "type ", "auth.issuers.NAME.typ"},
		"another algorithm":         {s, authtest.SignWith(t, jose.SigningKey{Algorithm: jose.PS512, Key: p.RSA}, p.Claims(map[string]any{"aud": s.url}), nil), 401, "algorithm ", "auth.issuers.NAME.algs"},
		"made tomorrow":             {s, token(map[string]any{"iat": time.Now().Add(time.Hour).Unix()}), 401, "in the future", "NTP"},
		"not valid yet":             {s, token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), 401, "not valid yet", "NTP"},
		"one that has ended":        {s, token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401, "it expired at", "get another token"},
		"without the scope":         {s, token(map[string]any{"scope": "other"}), 403, "lacks one of the scopes", "ask for the scopes mcp"},
		"without a name":            {s, token(map[string]any{"sub": nil}), 403, "has no claim sub", "auth.issuers.NAME.claims"},
		"of no group":               {strict, p.Sign(t, p.Claims(map[string]any{"aud": strict.url}), nil), 403, "names no group", "auth.issuers.NAME.groups"},
		"the reserved id":           {s, token(map[string]any{"sub": "local"}), 403, "reserved for callers", "rename the account"},
		"another key's signature":   {s, forged, 401, "signature", "does not publish"},
		"an issuer that is away":    {closed, away.Sign(t, away.Claims(map[string]any{"aud": closed.url}), nil), 503, "the keys of the issuer", "wasmgate auth check"},
		"a revoked token":           {s, token(map[string]any{"jti": "gone"}), 401, "revoked", "sign in again"},
	} {
		if who := ask(tt.at, tt.token); who.Refused != tt.status || !strings.Contains(who.Reason, tt.reason) || !strings.Contains(who.Fix, tt.fix) || who.Principal != "" || who.Tools != nil {
			t.Errorf("%s: %d %q, %q; want %d %q, %q", name, who.Refused, who.Reason, who.Fix, tt.status, tt.reason, tt.fix)
		}
	}
}
