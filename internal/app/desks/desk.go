// Package desks serves those who run a gateway: the console in a browser, and its API over the control socket.
package desks

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/web"
)

// Open is the operation that makes a link to the console.
var Open = operation.New[operation.None, SignIn]("sign-in")

// A Desk serves those who run the gateway.
type Desk interface {
	http.Handler
	// OverSocket is its API for who may open the control socket.
	OverSocket() http.Handler
	// Run does what goes on next to requests, until ctx ends.
	Run(ctx context.Context)
	// URL is a URL of the console by a name that only its operator knows.
	URL(base string) string
	// SignIn makes a link below url, and a code, by which one browser signs in.
	SignIn(url string) SignIn
}

// A SignIn is how a browser signs in, once.
type SignIn struct {
	URL   string    `json:"url"`
	Code  string    `json:"code"`
	At    string    `json:"at"` // where the code can be pasted
	Until time.Time `json:"until"`
}

// A Front serves the desk of one gateway: the console, if it has an address, and the API over the control socket.
type Front struct {
	API      http.Handler  // over the control socket; nil without a desk
	BodyTime time.Duration // that clients have to send the body of a request

	log     *slog.Logger
	desk    Desk   // nil without one to run
	url     string // of the console
	missing string // why there is no console though there should be
}

// New returns a front without a desk.
func New(log *slog.Logger) *Front { return &Front{BodyTime: web.BodyTime, log: log} }

// Operations adds those of the desk to a table.
func (f *Front) Operations(t operation.Table) {
	operation.AddPlain(t, Open, func(context.Context) (SignIn, error) { return f.SignIn() })
}

// URL is that of the console; "" without one.
func (f *Front) URL() string { return f.url }

// Listen listens for those who run the gateway, at the address of the console. A port that somebody has is no reason
// for the gateway not to run.
func (f *Front) Listen(ctx context.Context, address string) net.Listener {
	ln, err := web.Listen(ctx, address, "console.listen in the configuration")
	if err != nil {
		f.log.Info("no console", "error", err)
		f.missing = fmt.Sprintf("its address is taken: %v", err)
		return nil
	}
	f.url = "http://" + ln.Addr().String()
	return ln
}

// Serve serves those who run the gateway with a desk: at ln, if that is not nil, and over the control
// socket. Without a console what a desk does next to requests begins with the first of these.
func (f *Front) Serve(life context.Context, g *errgroup.Group, d Desk, ln net.Listener) {
	f.desk = d
	run := sync.OnceFunc(func() {
		g.Go(func() error { f.desk.Run(life); return nil })
	})
	api := f.desk.OverSocket()
	f.API = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run()
		api.ServeHTTP(w, r)
	})
	if ln != nil {
		run()
		g.Go(func() error { return web.Serve(life, f.server(life), ln) })
	}
}

// server returns what serves the console, to requests that end with life.
func (f *Front) server(life context.Context) *http.Server {
	return &http.Server{
		Handler: web.Bounded(f.BodyTime, f.desk), ReadHeaderTimeout: web.HeaderTime, IdleTimeout: web.IdleTime,
		BaseContext: func(net.Listener) context.Context { return life },
	}
}

// ConsolePath reports whether a request is for pages or the API of the console.
func ConsolePath(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/ui/") || strings.HasPrefix(r.URL.Path, "/api/")
}

// Forwarded answers what other gateways forward: what browsers ask the console, and what clients send.
func (f *Front) Forwarded(clients http.Handler) http.Handler {
	if f.url == "" {
		return clients
	}
	console := web.Bounded(f.BodyTime, f.desk)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ConsolePath(r) {
			console.ServeHTTP(w, r)
			return
		}
		clients.ServeHTTP(w, r)
	})
}

// SignIn makes a link and a code by which a browser signs in to the console.
func (f *Front) SignIn() (SignIn, error) {
	switch {
	case f.url != "":
		return f.desk.SignIn(f.url), nil
	case f.missing != "":
		return SignIn{}, fmt.Errorf("the gateway has no console: %s; set another console.listen or stop the program that uses the address, then restart the gateway", f.missing)
	default:
		return SignIn{}, fmt.Errorf("the gateway has no console: set console.listen, then restart the gateway")
	}
}

// Page returns the link to a page of the console; "" without one.
func (f *Front) Page(name string) string {
	if f.url == "" {
		return ""
	}
	return f.desk.URL(f.url) + "/ui/" + name
}

// Address is where the console is: with HTTP at its usual address, unless the
// configuration sets another; "" is nowhere.
func Address(cfg *config.Config, stdio bool) string {
	switch {
	case cfg.Console.Listen == "off":
		return ""
	case cfg.Console.Listen != "" || stdio:
		return cfg.Console.Listen
	default:
		return config.DefaultConsole
	}
}
