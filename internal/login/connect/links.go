package connect

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/evict"
	"github.com/wasmgate/wasmgate/internal/login"
)

const (
	// linkTime is how long a link is valid.
	linkTime = 10 * time.Minute
	// maxLinks bounds the links of everybody, maxOwn those of one principal.
	maxLinks, maxOwn = 10_000, 16
	// maxBegun bounds the logins that the caller begins by a link, maxNoted the records of visits that
	// came to nothing.
	maxBegun, maxNoted = 10, 10
)

// What has happened to a link, in an [Event].
const (
	Asked   = "asked"
	Done    = "done"
	Refused = "refused"
)

// An Event is something that happened to a link.
type Event struct {
	What               string // Asked, Done or Refused
	Who                *gate.Principal
	Server, Tool, Call string // where the login is, and the call that needs it
	Err                error  // why it was refused
}

// Options are what a [Connect] needs of a gateway. All are needed but Now.
type Options struct {
	Public func() string // URL by which browsers reach the gateway; "": none
	Logins *login.Logins
	// Provider is where callers of an issuer, by its name, sign in, and for "" those who have come
	// with a credential of no issuer; nil if they cannot.
	Provider func(issuer string) *login.Server
	// Proxied says who opens a page through the proxy that signs people in.
	Proxied func(r *http.Request) (*gate.Principal, error)
	// Identify returns the person that an access token belongs to, which they got by signing in.
	Identify func(ctx context.Context, token string) (*gate.Principal, error)
	// Node begins the id of each link, by which others find this gateway; "" begins none.
	Node string
	// Note records an event. A link whose making cannot be recorded is none.
	Note func(Event) error
	// Ready waits until calls can use a new login at a server.
	Ready func(server string)
	Now   func() time.Time // nil: the machine's
}

// Connect has links, and the pages behind them. It may be used from several goroutines.
type Connect struct {
	o       Options
	handler http.Handler

	mu    sync.Mutex
	links map[string]*link // by id
}

// A link is where one caller logs in to one server, because of one call.
type link struct {
	id, tag string // the tag is in the name of its cookies
	who     *gate.Principal
	client  string // that made the call, as it names itself
	server  string
	tool    string
	call    string
	until   time.Time
	ended   chan struct{}
	logins  int // that were begun
	noted   int // visits that came to nothing

	browser [sha256.Size]byte // digest of the cookie of the browser that has proved to be the caller's
	proved  bool
	begun   *login.Begun // the login that the page offers
	form    string       // what its button sends; "" once it is pressed
	state   string       // of the login that has gone on; "" before
}

// New returns one without links.
func New(o Options) *Connect {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Connect{o: o, links: make(map[string]*link)}
	c.handler = c.routes()
	return c
}

// Offer returns the link by which the caller of a call logs in, and a channel that is closed when the
// link has ended. The link is "" if a login of the caller's would not fix err, or if no browser could
// prove who the caller is. Further calls of a tool get the link that is open already.
func (c *Connect) Offer(call *gate.Call, err error) (url string, ended <-chan struct{}) {
	needed, ok := errors.AsType[*login.Needed](err)
	if !ok || c.o.Public() == "" || call.Who == nil || !c.provable(call.Who) {
		return "", nil
	}
	server, helps := needed.Login()
	if !helps || !c.o.Logins.Personal(server) {
		return "", nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.open(call, server)
	if l == nil {
		l = &link{
			id: login.Named(c.o.Node, rand.Text()), tag: rand.Text()[:8], who: call.Who, client: call.ClientName, server: server, tool: call.Name, call: call.ID,
			until: c.o.Now().Add(linkTime), ended: make(chan struct{}),
		}
		if c.note(l, Asked, nil) != nil {
			return "", nil
		}
		c.links[l.id] = l
	}
	return c.o.Public() + "/connect/" + l.id, l.ended
}

// byProxy is how callers were verified whom a proxy names.
const byProxy = "proxy"

// provable reports whether a browser can prove to be a caller's: it comes through the same proxy, or
// its person signs in at the issuer of that principal's token.
func (c *Connect) provable(who *gate.Principal) bool {
	switch who.Auth {
	case byProxy:
		return true
	case "bearer", "apikey", "mtls", "unix":
		return c.o.Provider(who.Issuer) != nil
	}
	return false
}

// open returns the link for such calls that is still valid for a while, and otherwise makes room for
// another. The caller holds mu.
func (c *Connect) open(call *gate.Call, server string) *link {
	var oldest *link
	own := 0
	for _, l := range c.links {
		if !c.o.Now().Before(l.until) {
			c.drop(l)
			continue
		}
		if l.who.Owner != call.Who.Owner {
			continue
		}
		if l.server == server && l.tool == call.Name && l.who.Client == call.Who.Client && l.logins < maxBegun && l.until.Sub(c.o.Now()) > linkTime/2 {
			return l
		}
		if own++; oldest == nil || l.until.Before(oldest.until) {
			oldest = l
		}
	}
	if own >= maxOwn {
		c.drop(oldest)
	}
	if len(c.links) >= maxLinks {
		c.drop(c.links[evict.Next(c.links, func(l *link) (gate.Owner, time.Time) { return l.who.Owner, l.until })])
	}
	return nil
}

// drop ends a link and lets everything that waits for it go on. The caller holds mu.
func (c *Connect) drop(l *link) {
	if c.forget(l) {
		close(l.ended)
	}
}

// forget takes a link away, and reports whether there was one. The caller holds mu.
func (c *Connect) forget(l *link) bool {
	if c.links[l.id] != l {
		return false
	}
	delete(c.links, l.id)
	return true
}

// find returns a link that is good; nil for any other.
func (c *Connect) find(id string) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.links[id]; l != nil && c.o.Now().Before(l.until) {
		return l
	}
	return nil
}

// refuse ends a link without a login.
func (c *Connect) refuse(l *link, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(l)
	_ = c.note(l, Refused, why) // nothing was granted
}

func (c *Connect) note(l *link, what string, err error) error {
	return c.o.Note(Event{what, l.who, l.server, l.tool, l.call, err})
}

// noteVisit records a visit that came to nothing. The link goes on: it may not have been the caller's.
func (c *Connect) noteVisit(l *link, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.noted++; l.noted <= maxNoted {
		_ = c.note(l, Refused, why) // nothing was granted
	}
}

// cookieName is that of a link's cookies. With the prefix no other host, also none below the
// same domain, can set one (RFC 6265bis, 4.1.3).
func (c *Connect) cookieName(l *link) string {
	name := "wasmgate_connect_" + l.tag
	if strings.HasPrefix(c.o.Public(), "https://") {
		return "__Host-" + name
	}
	return name
}

// bake gives a browser a new cookie of a link, and returns its digest.
func (c *Connect) bake(w http.ResponseWriter, l *link) [sha256.Size]byte {
	value := rand.Text()
	c.setCookie(w, l, value, linkTime)
	return sha256.Sum256([]byte(value))
}

// setCookie has a browser keep a value for a link, or forget it for an age below zero.
func (c *Connect) setCookie(w http.ResponseWriter, l *link, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookieName(l), Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true,
		Secure: strings.HasPrefix(c.o.Public(), "https://"), SameSite: http.SameSiteLaxMode, // it comes back from issuers' sites
	})
}

// ticket returns the link with whose sign-in a browser comes back, and the ticket that it has kept.
func (c *Connect) ticket(r *http.Request, query url.Values) (l *link, ticket string) {
	for _, cookie := range r.Cookies() {
		if id, ok := c.o.Logins.Purpose(cookie.Value, query); ok {
			if l := c.find(id); l != nil && c.cookieName(l) == cookie.Name {
				return l, cookie.Value
			}
		}
	}
	return nil, ""
}

// brings returns the digest of the cookie of a link that a request has.
func (c *Connect) brings(r *http.Request, l *link) (digest [sha256.Size]byte, ok bool) {
	cookie, err := r.Cookie(c.cookieName(l))
	if err != nil {
		return digest, false
	}
	return sha256.Sum256([]byte(cookie.Value)), true
}

// isCallers reports whether a request is of the browser that has proved to be the caller's.
func (c *Connect) isCallers(r *http.Request, l *link) bool {
	digest, ok := c.brings(r, l)
	c.mu.Lock()
	defer c.mu.Unlock()
	return ok && l.proved && l.browser == digest
}
