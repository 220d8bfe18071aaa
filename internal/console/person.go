package console

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A provider has people sign in who are not the operator of this machine: at the issuers of the
// configuration. What they may do is what policies say of them.
type provider interface {
	// SignInIssuers are the names of the issuers.
	SignInIssuers() []string
	// BeginSignIn begins to find out who sits at a browser, which comes back to redirect.
	BeginSignIn(ctx context.Context, issuer, redirect string) (*login.Begun, error)
	// EndSignIn returns the access token with which it comes back.
	EndSignIn(ctx context.Context, query url.Values) (token string, err error)
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

// leave leads a browser to an issuer.
func (c *Console) leave(w http.ResponseWriter, r *http.Request) {
	base, named := address(r)
	if !named {
		http.Redirect(w, r, base+r.URL.Path, http.StatusSeeOther)
		return
	}
	begun, err := c.people.BeginSignIn(r.Context(), r.PathValue("issuer"), base+login.LoopbackPath)
	if err != nil {
		c.signinProblem(w, http.StatusBadGateway, "Nobody can sign in there now: the log of the gateway says why.")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(leavingName, r), Value: c.signins.leave(begun.State), Path: login.LoopbackPath, MaxAge: int(leaveTime.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // it comes back from another site
	})
	http.Redirect(w, r, begun.URL, http.StatusSeeOther)
}

// comeBack signs in the person with whom a browser comes back from an issuer. It has to be the
// browser that went there: nobody is signed in as somebody else by a link.
func (c *Console) comeBack(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !c.signins.back(query.Get("state"), r) {
		c.signinProblem(w, http.StatusForbidden, "This belongs to no sign-in that this browser has begun: begin again.")
		return
	}
	token, err := c.people.EndSignIn(r.Context(), query)
	var who *gate.Principal
	if err == nil {
		who, err = c.people.TokenHolder(r.Context(), token)
	}
	if err != nil {
		c.signinProblem(w, http.StatusForbidden, "You are not signed in: the log of the gateway says why.")
		return
	}
	c.stay(w, r, c.signins.come(token))
	w.Header().Set("Refresh", "0; url=/ui/") // a redirect would be another site's, with which a strict cookie is not sent
	page(w, http.StatusOK, "signedin", view{Title: "Signed in", Out: true, Of: match.Name(who.Tenant, who.ID)})
}

func (c *Console) stay(w http.ResponseWriter, r *http.Request, cookie string) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(stayName, r), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

func (c *Console) signinProblem(w http.ResponseWriter, status int, problem string) {
	page(w, status, "signin", view{Title: "Sign in", Out: true, Problem: problem, Of: c.people.SignInIssuers()})
}
