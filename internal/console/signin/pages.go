package signin

import (
	"net/http"

	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/login"
)

// Pages are those on which browsers sign in and out. It may be used from several goroutines.
type Pages struct {
	*Browsers
	People Provider
}

// Handle serves the pages.
func (p *Pages) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /ui/signin", p.page)
	mux.HandleFunc("POST /ui/signin", p.signIn)
	mux.HandleFunc("GET /ui/signin/{issuer}", p.depart)
	mux.HandleFunc("POST /ui/signin/{issuer}", p.leave)
	mux.HandleFunc("GET "+login.LoopbackPath, p.comeBack)
	mux.HandleFunc("POST /ui/signout", p.signOut)
}

// maxForm bounds what a browser sends, in bytes.
const maxForm = 1 << 20

func (p *Pages) page(w http.ResponseWriter, _ *http.Request) { p.problem(w, http.StatusOK, "") }

// signIn takes the token of a link, which its page's script reads, or a code.
func (p *Pages) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	cookie := p.take(r.PostFormValue("code"))
	if cookie == "" {
		p.problem(w, http.StatusForbidden, "The link or the code is no longer valid: run wasmgate console again.")
		return
	}
	p.keep(w, r, cookie)
	http.Redirect(w, r, "/ui/", http.StatusSeeOther)
}

// signOut needs no decision of a policy: anyone who is signed in may sign out.
func (p *Pages) signOut(w http.ResponseWriter, r *http.Request) {
	p.out(r)
	http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
}

// keep has a browser keep a cookie while it is signed in.
func (p *Pages) keep(w http.ResponseWriter, r *http.Request, cookie string) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(stayName, r), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// problem shows the page to sign in on, with what has gone wrong; "" if nothing has.
func (p *Pages) problem(w http.ResponseWriter, status int, problem string) {
	pages.Write(w, status, "signin", pages.View{Title: "Sign in", Out: true, Problem: problem, Of: p.People.SignInIssuers()})
}
