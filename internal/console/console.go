package console

import (
	"context"
	"embed"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/console/signin"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

//go:embed static
var static embed.FS

// A Console serves the pages and the API of one gateway.
type Console struct {
	parts
	nodes   *app.Nodes
	index   *index.Index
	name    string // of this machine, made for this console
	handler http.Handler
}

var _ desks.Desk = (*Console)(nil)

// New returns the console of a gateway.
func New(a *app.App) *Console {
	c := &Console{nodes: a.Nodes, index: index.New(a.IndexPath(), a.AuditPath()), name: "wasmgate-" + signin.Secret()[:32] + ".localhost"}
	in := &signin.Pages{Browsers: signin.NewBrowsers(a.Nodes.Peer()), People: a.Logins}
	c.parts = newParts(a, &auditLog{c.index, a.Nodes}, &frame{a.Overview, []byte(signin.Secret())}, &access{a.Gateway(), a.Callers, in})
	mux := http.NewServeMux()
	for _, r := range c.routes() {
		mux.HandleFunc(r.pattern, serve(c.access, r))
	}
	in.Handle(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ui/", http.StatusSeeOther) })
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // browsers ask for one
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /ui/static/", http.StripPrefix("/ui/static/", http.FileServerFS(files)))
	c.handler = loopback.Only(web.Page(contentPolicy, http.NewCrossOriginProtection().Handler(mux)))
	return c
}

// Run keeps the index over the audit log up to date until ctx ends.
func (c *Console) Run(ctx context.Context) { c.index.Run(ctx) }

// ServeHTTP implements [http.Handler]. If another gateway has signed a browser in, or has made the link or code by which it
// signs in, that gateway answers.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if desks.ConsolePath(r) && c.nodes.ForwardPage(w, r, c.access.signin.Home(r)) {
		return
	}
	c.handler.ServeHTTP(w, r)
}

// OverSocket is the API for users who may open the control socket: they are the operator, or the holder
// of the key that they send. No browser gets there.
func (c *Console) OverSocket() http.Handler {
	mux := http.NewServeMux()
	for _, r := range c.routes() {
		if !r.isPage() {
			mux.HandleFunc(r.pattern, serve(c.access, r))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), overSocketKey{}, true)))
	})
}

// contentPolicy allows only our own style and script. Inline code does not run, no site may frame the
// pages, and no script turns text into markup (W3C Content Security Policy Level 3, Trusted Types).
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// SignIn makes a link and a code by which a user who may open the control socket signs in at url, once.
func (c *Console) SignIn(url string) desks.SignIn {
	token, code, until := c.access.signin.Offer()
	return desks.SignIn{URL: c.URL(url) + "/ui/signin#t=" + token, Code: code, At: url + "/ui/", Until: until}
}

// URL is url with the console's own host name, which no one else knows. Browsers send a cookie to every
// port of a host (RFC 6265, 8.5): they would send one of 127.0.0.1 to any other program that serves
// pages on this machine, if that gets the browser to ask. Names below localhost always mean this
// machine, and are not looked up anywhere else (RFC 6761, 6.3).
func (c *Console) URL(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Port() == "" {
		return base
	}
	u.Host = net.JoinHostPort(c.name, u.Port())
	return u.String()
}
