package app

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth"
)

// A WhoRequest asks who a credential stands for.
type WhoRequest struct {
	Token string `json:"token,omitempty"` // a bearer token or an API key; "": who asks
	Group string `json:"group,omitempty"` // at whose endpoint it is used
}

// Who is somebody, as the gateway sees them.
type Who struct {
	Tenant     string    `json:"tenant,omitempty"`
	Principal  string    `json:"principal,omitempty"`
	Auth       string    `json:"auth,omitempty"`
	Roles      []string  `json:"roles,omitempty"`
	Groups     string    `json:"groups,omitempty"` // in words; "": all that the roles are offered
	Issuer     string    `json:"issuer,omitempty"`
	Client     string    `json:"client,omitempty"`
	Credential string    `json:"credential,omitempty"` // as the audit log names it
	Ends       time.Time `json:"ends,omitzero"`
	Operator   bool      `json:"operator,omitempty"` // who came over the control socket
	Tools      *int      `json:"tools,omitempty"`    // how many are offered

	// Of a credential that is refused: the status, why, and what to do.
	Refused int    `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// Lines are what is known, each with its name.
func (w *Who) Lines() (known [][2]string) {
	all := [][2]string{
		{"principal", w.Principal}, {"tenant", w.Tenant}, {"verified", w.Auth}, {"issuer", w.Issuer}, {"client", w.Client},
		{"roles", strings.Join(w.Roles, ", ")}, {"groups", w.Groups}, {"credential", w.Credential},
	}
	if !w.Ends.IsZero() {
		all = append(all, [2]string{"ends", w.Ends.UTC().Format(time.RFC3339)})
	}
	if w.Operator {
		all = append(all, [2]string{"operator", "yes: over the control socket"})
	}
	if w.Tools != nil {
		all = append(all, [2]string{"tools", strconv.Itoa(*w.Tools)})
	}
	return slices.DeleteFunc(all, func(l [2]string) bool { return l[1] == "" })
}

// WhoAmI says who a credential stands for, or which check it fails.
func (a *App) WhoAmI(ctx context.Context, r WhoRequest) (*Who, error) {
	who, err := principal(a.config.Load().cfg, "")
	if err != nil {
		return nil, err
	}
	var identity auth.Identity
	if r.Token != "" {
		s := a.senders
		who, identity, err = s.now.Load().Identify(ctx, strings.TrimSpace(r.Token), s.resource(r.Group), s.resource(""))
	}
	refusal, refused := errors.AsType[*auth.Refusal](err)
	switch {
	case refused:
		return &Who{Refused: refusal.Status, Reason: refusal.Reason, Fix: a.fix(refusal, r)}, nil
	case err != nil:
		return nil, err
	}
	to := &Who{
		Tenant: who.Tenant, Principal: who.ID, Auth: who.Auth, Roles: who.Roles, Groups: who.Groups.String(), Issuer: who.Issuer, Client: who.Client,
		Credential: who.Credential, Ends: identity.Ends, Operator: r.Token == "",
	}
	if tools, err := a.gateway.Tools(ctx, who); err == nil {
		n := len(slices.DeleteFunc(tools, func(t *gate.Tool) bool { return t.Relay }))
		to.Tools = &n
	}
	return to, nil
}

// fix says what to do about a credential that is refused.
func (a *App) fix(refusal *auth.Refusal, r WhoRequest) string {
	s, has := a.senders, func(word string) bool { return strings.Contains(refusal.Reason, word) }
	own := s.resource(r.Group)
	switch {
	case strings.HasPrefix(strings.TrimSpace(r.Token), auth.KeyPrefix):
		switch {
		case has("no API key is taken"):
			return "write auth: {keys: true} into the configuration"
		case has("its form"):
			return "copy the key whole: its end is a checksum"
		case has("revoked"), has("ended"):
			return "make another with `wasmgate key create`"
		case has("does not know any more"):
			return "list its principal under principals again, or revoke the key"
		}
		return "it is of another gateway, or of another state folder: see `wasmgate key list`"
	case has(" parts"):
		return "the issuer gives opaque tokens: have the client ask for the resource " + own + ", or define an API of that name at the issuer, so that its access tokens are JWTs"
	case has("ID token"):
		return "send the access token: the ID token tells the client who signed in, and is for nobody else"
	case has("no issuer of this gateway"):
		return "compare iss of the token with issuer in the configuration, byte for byte: often it is a / at the end. `wasmgate auth check` says what the issuer calls itself"
	case has("another audience"):
		return "have the client ask for the resource " + own + ", or name the token's aud under auth.issuers.NAME.audience"
	case has("type "):
		return "name the token's typ under auth.issuers.NAME.typ, if it is one of access tokens"
	case has("algorithm "):
		return "name the algorithm under auth.issuers.NAME.algs, or have the issuer sign with another"
	case has("in the future"), has("not valid yet"):
		return "the clocks of this machine and of the issuer differ: set them by NTP, or raise auth.issuers.NAME.skew"
	case refusal.Kind() == "expired":
		return "get another token; if it is new, the clocks differ"
	case has("lacks one of the scopes"):
		return "have the client ask for the scopes " + strings.Join(refusal.Scopes, " ") + ", or change auth.issuers.NAME.scopes"
	case has("has no claim"):
		return "name another claim under auth.issuers.NAME.claims, or have the issuer put this one into access tokens"
	case has("names no group"):
		return "map one of the token's values under auth.issuers.NAME.groups"
	case has("the one of callers"):
		return "rename the account: the id local is that of callers without a credential"
	case has("no key of the issuer fits"), has("signature"):
		return "the token is signed by a key that the issuer does not publish: `wasmgate auth check` shows its keys"
	case refusal.Kind() == "unavailable":
		return "the issuer's keys cannot be had: `wasmgate auth check` says why"
	case has("revoked"):
		return "sign in again, if the account may: it was ended with `wasmgate auth revoke`"
	}
	return "see docs/identity.md"
}
