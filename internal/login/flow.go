package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// flowTime is how long a person may take.
	flowTime = 10 * time.Minute
	// maxFlows bounds the logins that are under way.
	maxFlows = 1000
)

// A flow is a login that has begun: what must come back, and to whom it belongs.
type flow struct {
	server   *Server
	owner    gate.Owner
	redirect string
	verifier string
	place    *place
	client   client
	scopes   []string
	until    time.Time
}

// A Begun login goes on in a browser.
type Begun struct {
	URL    string   // of the authorization server, to be opened
	Issuer string   // whose it is
	State  string   // by which [Logins.Finish] finds the login again
	Scopes []string // that are asked for
	For    string   // the resource for which they are
}

// url is the authorization request (OAuth 2.1, 4.1.1).
func (f *flow) url(state string) string {
	u, err := url.Parse(f.place.AuthorizationEndpoint)
	if err != nil {
		return ""
	}
	q := u.Query()
	for name, v := range map[string]string{
		"response_type": "code", "client_id": f.client.ID, "redirect_uri": f.redirect, "state": state, "resource": f.place.resource,
		"code_challenge": oauth2.S256ChallengeFromVerifier(f.verifier), "code_challenge_method": "S256", "scope": strings.Join(f.scopes, " "),
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if slices.Contains(f.scopes, "offline_access") { // OpenID Connect Core, 11
		q.Set("prompt", "consent")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// ErrState says that an answer belongs to no login that is under way.
var ErrState = errors.New("this answer does not belong to a login in progress: it may have come too late, or twice")

// exchange gets what was granted for the answer to a flow.
func (f *flow) exchange(ctx context.Context, now time.Time, query url.Values) (*grant, error) {
	if err := f.answered(query); err != nil {
		return nil, err
	}
	g := &grant{
		ID: newID(), URL: f.server.URL, Made: now, Issuer: f.place.Issuer, Resource: f.place.resource,
		Token: f.place.TokenEndpoint, Revocation: f.place.RevocationEndpoint, Client: f.client,
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {query.Get("code")}, "redirect_uri": {f.redirect}, "code_verifier": {f.verifier}}
	g, err := g.ask(ctx, f.server, now, form)
	if err != nil {
		return nil, fmt.Errorf("the authorization server gives no token: %w", err)
	}
	return g, nil
}

// answered judges an authorization response. The issuer comes first: before it is known to be
// the right one nothing of the answer means anything (RFC 9207, 2.4).
func (f *flow) answered(query url.Values) error {
	for name, all := range query {
		if len(all) > 1 {
			return fmt.Errorf("the answer has %.20q twice", name)
		}
	}
	iss, said := query.Get("iss"), query.Has("iss")
	switch {
	case said && iss != f.place.Issuer, !said && f.place.AuthorizationResponseIssParameterSupported:
		return errors.New("the answer does not come from the authorization server that was asked")
	case query.Has("error"):
		return fmt.Errorf("the authorization server refuses: %s", word(query.Get("error")))
	case query.Get("code") == "":
		return errors.New("the answer has no code")
	}
	return nil
}

// nodeMark follows the node in the state of a login.
const nodeMark = "."

// Named returns an id that names the gateway that has made it, if that shares anything.
func Named(node, id string) string {
	if node == "" {
		return id
	}
	return node + nodeMark + id
}

// NodeOf returns the gateway that an id of [Named] names; "" if it names none.
func NodeOf(id string) string {
	node, _, ok := strings.Cut(id, nodeMark)
	if !ok {
		return ""
	}
	return node
}
