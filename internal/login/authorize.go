package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// Saw keeps the token of a caller that was let in, if a server takes such tokens in exchange. The token
// goes to the authorization server of that server and nowhere else. A nil who keeps nothing.
func (l *Logins) Saw(who *gate.Principal, r *http.Request) { l.subjects.keep(who, r) }

// Authorize returns the value of the header Authorization for a request to a server on behalf
// of somebody; nil is the gateway itself, which lists what there is. Refused is the server's
// answer to the value before, 401 or 403; "" without an error passes that answer on. The error
// is a [*Needed] or that of ctx.
func (l *Logins) Authorize(ctx context.Context, id string, who *gate.Principal, need Need, refused *http.Response) (value string, used gate.Credential, err error) {
	s, err := l.server(id)
	if err != nil {
		return "", used, &Needed{id, "server " + id + " has no credential", err, false}
	}
	var before string
	if refused != nil {
		before = strings.TrimPrefix(refused.Request.Header.Get("Authorization"), "Bearer ")
	}
	r, err := l.rowFor(s, who)
	if err != nil {
		return "", used, err
	}
	if refused != nil && refused.StatusCode == http.StatusForbidden {
		return "", used, r.forbidden(refused, need)
	}
	g, err := l.token(ctx, s, r, who, need, before)
	n, _ := errors.AsType[*Needed](err)
	if _, other := errors.AsType[denied](err); n != nil && (n.login || other) && who == nil && !s.Shared {
		what := "nobody has logged in to server " + id
		switch {
		case other: // the gateway lists by any login
			what = "server " + id + " needs a login at " + s.IDP.Issuer + " of a person who may use it"
		case n.cause != nil:
			what = "the login at server " + id + " does not hold"
		}
		return "", used, &Needed{n.server, what + ": " + how(key(s, gate.Owner{})) + ", with --as for somebody else than the principal local", n.cause, true}
	}
	if err != nil {
		return "", used, err
	}
	used = gate.Credential{Mode: s.Mode, Issuer: g.Issuer, Name: g.ID, Scopes: g.Scopes, Expires: g.Expires, Narrow: need.Scopes != nil}
	return "Bearer " + g.Access, used, nil
}

// rowFor returns whose grant a request uses. The gateway itself lists with the grant of the
// principal local, or else with the oldest.
func (l *Logins) rowFor(s *Server, who *gate.Principal) (*row, error) {
	if who != nil || s.owner(gate.Local().Owner) == (gate.Owner{}) {
		o := gate.Owner{}
		if who != nil {
			o = who.Owner
		}
		return l.rows.row(s, o), nil
	}
	at := s
	if s.Mode == IDJAG {
		at = s.IDP
	}
	r := l.rows.row(s, gate.Local().Owner)
	if l.rows.row(at, gate.Local().Owner).has() {
		return r, nil
	}
	all, err := l.List()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(g Login) bool { return g.Server != at.ID })
	if good := slices.DeleteFunc(slices.Clone(all), func(g Login) bool { return g.Problem != "" }); len(good) > 0 {
		all = good
	}
	if len(all) == 0 {
		return r, nil
	}
	oldest := slices.MinFunc(all, func(a, b Login) int { return a.Made.Compare(b.Made) })
	return l.rows.row(s, gate.Owner{Tenant: oldest.Tenant, ID: oldest.Principal}), nil
}

// token returns a grant for one request.
func (l *Logins) token(ctx context.Context, s *Server, r *row, who *gate.Principal, need Need, refused string) (*grant, error) {
	if s.Mode == OAuth || s.Mode == IDJAG {
		g, err := r.access(ctx, s, refusedUnless(need.Scopes == nil, refused))
		if err != nil || need.Scopes == nil {
			return g, err
		}
		return r.exchanged(ctx, s, g, g.Access, who, need, refused)
	}
	subject := ""
	if s.Mode == Exchange {
		if who != nil {
			subject = l.subjects.token(who)
		}
		if who == nil {
			return nil, &Needed{s.ID, "server " + s.ID + " wants a token before it says what it offers, and its callers' are for their calls: write one to servers." + s.ID + ".auth.discovery", nil, false}
		}
		if subject == "" {
			return nil, &Needed{s.ID, "server " + s.ID + " takes tokens of its callers alone, and this request came with none", nil, false}
		}
	}
	g, err := r.own(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.exchanged(ctx, s, g, subject, who, need, refused)
}

func refusedUnless(ok bool, refused string) string {
	if ok {
		return refused
	}
	return ""
}

// Check finds out whether a server's tokens can be had, as far as that needs no login.
func (l *Logins) Check(ctx context.Context, id string) error {
	s, err := l.server(id)
	if err != nil {
		return err
	}
	if s.PrivateKey != "" {
		if _, _, err := readKey(s.PrivateKey); err != nil {
			return fmt.Errorf("private_key: %w", err)
		}
	}
	if s.IDP != nil {
		if err := l.Check(ctx, s.IDP.ID); err != nil {
			return fmt.Errorf("idp: %w", err)
		}
	}
	if s.Mode == ClientCreds {
		_, _, err := l.Authorize(ctx, id, nil, Need{}, nil)
		return err
	}
	if s.asksPeople() {
		if err := l.o.Vault.Ready(); err != nil {
			return err
		}
	}
	_, err = discover(ctx, s)
	return err
}
