package signin

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/match"
)

// leaveTime is how long a browser may be at an issuer.
const leaveTime = 10 * time.Minute

const leavingName = "wasmgate_console_leaves"

// A Provider lets people sign in who are not the operator of this machine, at the issuers of the
// configuration. Policies say what they may do.
type Provider interface {
	// SignInIssuers are the names of the issuers.
	SignInIssuers() []string
	// BeginSignIn begins to find out who sits at a browser, which keeps a ticket and comes back to
	// redirect with it.
	BeginSignIn(ctx context.Context, issuer, redirect string) (begun *login.Begun, ticket string, err error)
	// EndSignIn returns the access token with which it comes back, and whose that is.
	EndSignIn(ctx context.Context, ticket string, query url.Values) (token string, who *gate.Principal, err error)
	// TokenHolder says whose a token is, as long as it is good.
	TokenHolder(ctx context.Context, token string) (*gate.Principal, error)
}

// address returns the console's own URL by the address at which a request has come, and whether
// the browser has called it by an address: that is where issuers send it back to (RFC 8252, 7.3),
// and cookies of a name do not come along.
func address(r *http.Request) (base string, named bool) {
	if a, err := netip.ParseAddrPort(r.Host); err == nil && a.Addr().IsLoopback() {
		return "http://" + r.Host, true
	}
	base = r.Host
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }); ok {
		base = a.String()
	}
	return "http://" + base, false
}

// depart asks a person to go on to an issuer. Nothing begins before they press the button: pages of
// other sites can make a browser ask for an address.
func (p *Pages) depart(w http.ResponseWriter, r *http.Request) {
	base, named := address(r)
	if !named {
		http.Redirect(w, r, base+r.URL.Path, http.StatusSeeOther)
		return
	}
	issuer := r.PathValue("issuer")
	if !slices.Contains(p.People.SignInIssuers(), issuer) {
		p.problem(w, http.StatusNotFound, "The configuration has no issuer of this name.")
		return
	}
	pages.Write(w, http.StatusOK, "depart", pages.View{Title: "Sign in", Out: true, Of: issuer})
}

// leave leads a browser to an issuer.
func (p *Pages) leave(w http.ResponseWriter, r *http.Request) {
	base, _ := address(r)
	begun, ticket, err := p.People.BeginSignIn(r.Context(), r.PathValue("issuer"), base+login.LoopbackPath)
	if err != nil {
		p.problem(w, http.StatusBadGateway, "No one can sign in there now: the log of the gateway says why.")
		return
	}
	p.keepTicket(w, r, ticket, leaveTime)
	// A redirect would be refused: the policy of the page lets its form lead to the console only.
	w.Header().Set("Refresh", "0; url="+begun.URL)
	pages.Write(w, http.StatusOK, "leaving", pages.View{Title: "Sign in", Out: true, Of: begun})
}

// comeBack signs in the person with whom a browser comes back from an issuer. It has to be the browser
// that went there: otherwise a link could sign people in as somebody else.
func (p *Pages) comeBack(w http.ResponseWriter, r *http.Request) {
	ticket := ""
	if kept, err := r.Cookie(cookieName(leavingName, r)); err == nil {
		ticket = kept.Value
	}
	token, who, err := p.People.EndSignIn(r.Context(), ticket, r.URL.Query())
	if errors.Is(err, login.ErrState) {
		p.problem(w, http.StatusForbidden, "This does not belong to a sign-in of this browser: sign in again.")
		return
	}
	p.keepTicket(w, r, "", -time.Second) // it is good once
	if err != nil {
		p.problem(w, http.StatusForbidden, "You are not signed in: the log of the gateway says why.")
		return
	}
	p.keep(w, r, p.come(who.Owner, token))
	w.Header().Set("Refresh", "0; url=/ui/") // a redirect would be another site's, with which a strict cookie is not sent
	pages.Write(w, http.StatusOK, "signedin", pages.View{Title: "Signed in", Out: true, Of: match.Name(who.Tenant, who.ID)})
}

// keepTicket has a browser keep a ticket, or forget it for an age below zero.
func (p *Pages) keepTicket(w http.ResponseWriter, r *http.Request, ticket string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(leavingName, r), Value: ticket, Path: login.LoopbackPath, MaxAge: int(age.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // it comes back from another site
	})
}
