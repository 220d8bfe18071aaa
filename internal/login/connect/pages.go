package connect

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/web"
)

//go:embed pages
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"visible": escaped.Text}).ParseFS(files, "pages/*.html"))

const (
	stylePath = "/connect/style.css"

	maxForm = 4 << 10
	// askTime bounds what is asked of authorization servers for one page.
	askTime = 30 * time.Second
)

// contentPolicy loads nothing but our own style. No script runs, no site may frame the pages, and the
// button leads nowhere else.
const contentPolicy = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func (c *Connect) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /connect/{id}", c.opens)
	mux.HandleFunc("POST /connect/{id}", c.agree)
	mux.HandleFunc("GET "+login.SignInPath, c.signedIn)
	mux.HandleFunc("GET "+login.ConnectPath, c.cameBack)
	mux.HandleFunc("GET "+stylePath, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "pages/style.css") })
	next := http.NewCrossOriginProtection().Handler(mux)
	return web.Page(contentPolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// Node returns the gateway that has the link that a request is about; "" if it names none.
func Node(r *http.Request) string {
	if state := r.URL.Query().Get("state"); state != "" {
		return login.NodeOf(state)
	}
	if r.URL.Path == stylePath {
		return ""
	}
	return login.NodeOf(path.Base(r.URL.Path))
}

// ServeHTTP implements [http.Handler], for all paths below /connect/.
func (c *Connect) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// A view is what a page shows.
type view struct {
	Title, Text string
	Login       *consent // nil: nothing to agree to
	Next        string   // where the person goes on; "" for nowhere
}

// A consent is what a person agrees to.
type consent struct {
	Server, At, Issuer, Whose, Tool, Call, Client, Form string
	Scopes                                              []string
	Until                                               time.Time
}

func show(w http.ResponseWriter, status int, v view) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "page.html", v); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the browser has gone
}

func gone(w http.ResponseWriter) {
	show(w, http.StatusNotFound, view{Title: "This link is not good", Text: "The link was used before, has expired, or was never valid. Call the tool again for a new one. Nothing was granted."})
}

func foreign(w http.ResponseWriter) {
	show(w, http.StatusForbidden, view{Title: "This is not yours to finish", Text: "This does not belong to a login of this browser. Open the link again. Nothing was granted."})
}

func failed(w http.ResponseWriter, text string) {
	show(w, http.StatusBadGateway, view{Title: "This does not work now", Text: text + " Nothing was granted."})
}

// opens shows a link to the caller's browser, and has any other sign in first.
func (c *Connect) opens(w http.ResponseWriter, r *http.Request) {
	l := c.find(r.PathValue("id"))
	switch {
	case l == nil:
		gone(w)
	case c.isCallers(r, l):
		c.ask(w, r, l)
	case l.who.Auth == byProxy:
		c.passes(w, r, l)
	default:
		c.signIn(w, r, l)
	}
}

// passes accepts the person that the proxy names. A cookie that the browser sends counts for nothing.
func (c *Connect) passes(w http.ResponseWriter, r *http.Request, l *link) {
	who, err := c.o.Proxied(r)
	if err != nil {
		c.noteVisit(l, err)
		failed(w, "The proxy does not say who you are: the log of the gateway says why.")
		return
	}
	c.proves(w, r, l, who)
}

// signIn leads a browser to the caller's own issuer. A cookie that it brings counts for nothing,
// and nothing is kept of it here: previews and scanners of mail open links, too.
func (c *Connect) signIn(w http.ResponseWriter, r *http.Request, l *link) {
	provider := c.o.Provider(l.who.Issuer)
	if provider == nil {
		gone(w)
		return
	}
	begun, ticket, err := c.o.Logins.SignIn(r.Context(), provider, c.o.Public()+login.SignInPath, l.id)
	if err != nil {
		c.noteVisit(l, fmt.Errorf("sign-in is not possible: %w", err))
		failed(w, "No one can sign in: the log of the gateway says why. Open the link again later.")
		return
	}
	c.setCookie(w, l, ticket, linkTime)
	http.Redirect(w, r, begun.URL, http.StatusSeeOther)
}

// errOther says that the person at the browser is not the caller.
var errOther = errors.New("the person who signed in is not the caller")

// signedIn takes a browser that has come back from the issuer. It has to be the one that went there.
func (c *Connect) signedIn(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	l, ticket := c.ticket(r, query)
	if l == nil {
		foreign(w)
		return
	}
	c.setCookie(w, l, "", -time.Second) // the ticket is good once
	who, err := c.whose(r.Context(), l, ticket, query)
	if err != nil {
		c.noteVisit(l, err)
		failed(w, "You are not signed in: the log of the gateway says why. Open the link again.")
		return
	}
	c.proves(w, r, l, who)
}

// proves lets the caller's browser go on. Another person ends the link: it has come into the wrong
// hands.
func (c *Connect) proves(w http.ResponseWriter, r *http.Request, l *link, who *gate.Principal) {
	if who.Owner != l.who.Owner {
		c.refuse(l, fmt.Errorf("%w: %s", errOther, match.Name(who.Tenant, who.ID)))
		show(w, http.StatusForbidden, view{Title: "This is for somebody else", Text: "You are signed in as " + match.Name(who.Tenant, who.ID) + ", and another user made the call that needs a login. " +
			"If somebody has sent you this link, they may have wanted your access for themselves. Nothing was granted, and the link is no longer valid."})
		return
	}
	browser := c.bake(w, l) // a cookie from before, which others may know, gives nothing now
	c.mu.Lock()
	l.browser, l.proved = browser, true
	l.begun, l.form, l.state = nil, "", ""
	c.mu.Unlock()
	http.Redirect(w, r, c.o.Public()+"/connect/"+l.id, http.StatusSeeOther)
}

func (c *Connect) whose(ctx context.Context, l *link, ticket string, query url.Values) (*gate.Principal, error) {
	provider := c.o.Provider(l.who.Issuer)
	if provider == nil {
		return nil, login.ErrState
	}
	token, err := c.o.Logins.SignedIn(ctx, provider, ticket, query)
	if err != nil {
		return nil, err
	}
	return c.o.Identify(ctx, token)
}

// mayBegin counts the logins that are begun by a link. After too many it ends.
func (c *Connect) mayBegin(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.logins++; l.logins > maxBegun {
		c.drop(l)
		return false
	}
	return true
}

// ask shows what is granted to whom and for which call, with a button.
func (c *Connect) ask(w http.ResponseWriter, r *http.Request, l *link) {
	c.mu.Lock()
	begun, form := l.begun, l.form
	c.mu.Unlock()
	if begun == nil || form == "" {
		if !c.mayBegin(l) {
			gone(w)
			return
		}
		var err error
		begun, err = c.o.Logins.Begin(r.Context(), login.Start{Server: l.server, Owner: l.who.Owner, Redirect: c.o.Public() + login.ConnectPath})
		if err != nil {
			_ = c.note(l, Refused, err)
			failed(w, "No login can begin: the log of the gateway says why. Open the link again later.")
			return
		}
		form = rand.Text()
		c.mu.Lock()
		l.begun, l.form, l.state = begun, form, ""
		c.mu.Unlock()
	}
	show(w, http.StatusOK, view{Title: "Log in to " + l.server, Login: &consent{
		Server: l.server, At: begun.For, Issuer: begun.Issuer, Whose: match.Name(l.who.Tenant, l.who.ID), Scopes: begun.Scopes,
		Tool: l.tool, Call: l.call, Client: client(l), Form: form, Until: l.until,
	}})
}

// client names the sender of the call: what was verified about it, and what it says about itself.
func client(l *link) string {
	if l.who.Client == "" {
		return l.client
	}
	return fmt.Sprintf("%s (%s)", l.client, l.who.Client)
}

// agree sends a browser whose person has pressed the button on to the server's authorization server. It
// answers with a page, because the answer to a form may only lead to this gateway (contentPolicy,
// form-action), and authorization servers lead on elsewhere.
func (c *Connect) agree(w http.ResponseWriter, r *http.Request) {
	l := c.find(r.PathValue("id"))
	if l == nil {
		gone(w)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	said := r.PostFormValue("form")
	if !c.isCallers(r, l) {
		foreign(w)
		return
	}
	c.mu.Lock()
	ok := said != "" && said == l.form && l.begun != nil
	var begun *login.Begun
	if ok {
		begun, l.form, l.state = l.begun, "", l.begun.State
	}
	c.mu.Unlock()
	if !ok {
		foreign(w)
		return
	}
	w.Header().Set("Refresh", "0; url="+begun.URL)
	show(w, http.StatusOK, view{Title: "Log in to " + l.server, Text: "You continue to " + begun.Issuer + ", who gives the access.", Next: begun.URL})
}

// cameBack takes a browser that has come back from the server's authorization server, once.
func (c *Connect) cameBack(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	l := c.onTheWay(query.Get("state"))
	if l == nil {
		gone(w)
		return
	}
	if !c.isCallers(r, l) {
		foreign(w)
		return
	}
	c.mu.Lock()
	mine := c.forget(l) // of two that come at once one goes on
	c.mu.Unlock()
	if !mine {
		gone(w)
		return
	}
	_, err := c.o.Logins.Finish(context.WithoutCancel(r.Context()), l.who.Owner, query)
	if err != nil {
		_ = c.note(l, Refused, err)
		close(l.ended)
		failed(w, "There is no login: "+err.Error()+". Call the tool again for a new link.")
		return
	}
	_ = c.note(l, Done, nil) // the login is recorded itself
	go func() {              // ends with Ready
		defer close(l.ended)
		c.o.Ready(l.server)
	}()
	show(w, http.StatusOK, view{Title: "You are logged in to " + l.server, Text: "Go back to the program that made the call; it continues, or you can repeat the call. This window can be closed."})
}

// onTheWay returns the link whose login has gone on with a state; nil if there is none.
func (c *Connect) onTheWay(state string) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		if state != "" && l.state == state && c.o.Now().Before(l.until) {
			return l
		}
	}
	return nil
}
