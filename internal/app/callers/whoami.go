package callers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/auth"
)

// A WhoRequest asks who a credential stands for.
type WhoRequest struct {
	Token string `json:"token,omitempty"` // a bearer token or an API key; "": who asks
	Group string `json:"group,omitempty"` // at whose endpoint it is used
}

// A Who describes a caller, as the gateway sees it.
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
func (s *Callers) WhoAmI(ctx context.Context, r WhoRequest) (*Who, error) {
	who, err := naming.Principal(s.Config(), "")
	if err != nil {
		return nil, err
	}
	var identity auth.Identity
	if r.Token != "" {
		who, identity, err = s.now.Load().Identify(ctx, strings.TrimSpace(r.Token), s.Resource(r.Group), s.Resource(""))
	}
	refusal, refused := errors.AsType[*auth.Refusal](err)
	switch {
	case refused:
		return &Who{Refused: refusal.Status, Reason: refusal.Reason, Fix: refusal.Fix(r.Token, s.Resource(r.Group))}, nil
	case err != nil:
		return nil, err
	}
	to := &Who{
		Tenant: who.Tenant, Principal: who.ID, Auth: who.Auth, Roles: who.Roles, Groups: gate.GroupsText(who.Groups), Issuer: who.Issuer, Client: who.Client,
		Credential: who.Credential, Ends: identity.Ends, Operator: r.Token == "",
	}
	if tools, err := s.Gateway.Tools(ctx, who); err == nil {
		n := len(slices.DeleteFunc(tools, func(t *gate.Tool) bool { return t.Relay }))
		to.Tools = &n
	}
	return to, nil
}
