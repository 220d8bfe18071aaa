package console

import (
	"cmp"
	"embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/loopback"
)

//go:embed static
var static embed.FS

// A Console serves the pages and the API of one gateway.
type Console struct {
	app     *app.App
	handler http.Handler
	signins signins
}

var _ app.Desk = (*Console)(nil)

// New returns the console of a gateway.
func New(a *app.App) *Console {
	c := &Console{app: a, signins: newSignins(time.Now)}
	mux := http.NewServeMux()
	for _, r := range c.routes() {
		mux.HandleFunc(r.pattern, c.serve(r))
	}
	mux.HandleFunc("GET /ui/signin", c.signinPage)
	mux.HandleFunc("POST /ui/signin", c.signin)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ui/", http.StatusSeeOther) })
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // browsers ask for one
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /ui/static/", http.StripPrefix("/ui/static/", http.FileServerFS(files)))
	c.handler = loopback.Only(headers(http.NewCrossOriginProtection().Handler(mux)))
	return c
}

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// policy of contents: nothing is loaded but our own style and script, nothing runs that stands
// in a page, nobody frames it, and no script makes markup of text (W3C Content Security Policy
// Level 3, Trusted Types).
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// SignIn makes a link and a code by which somebody who may open the control socket signs in at
// url, once.
func (c *Console) SignIn(url string) app.SignIn {
	token, code, until := c.signins.offer()
	return app.SignIn{URL: cmp.Or(url, "http://127.0.0.1") + "/ui/signin#t=" + token, Code: code, Until: until}
}
