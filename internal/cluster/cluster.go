package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/web"
)

const (
	// leastTimeout and mostTimeout bound Timeout. With the least, a request that another gateway does not
	// answer is refused within 3 s; with the most, well before the lease of a gateway ends.
	leastTimeout = 2 * time.Second
	mostTimeout  = 4 * time.Second
	// dialMore is how much longer than the Timeout another gateway may take to be connected to, and silence
	// how long one that is connected may be silent until it is asked whether it is there. To say so, it has
	// pongMore longer than the Timeout.
	dialMore = 500 * time.Millisecond
	silence  = 500 * time.Millisecond
	pongMore = 400 * time.Millisecond
	// reportEvery is how often the same gateway is reported not to answer.
	reportEvery = 10 * time.Second
	// header says to a gateway from where a request was forwarded. Clients may send it: only the
	// listener for gateways reads it.
	header = "Wasmgate-Forwarded"
	// movedHeader says to a gateway that what it has forwarded is to be answered by another one.
	movedHeader = "Wasmgate-Moved"
)

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// Options say which gateways there are.
type Options struct {
	Node string // the name of this one
	// Listen is the address at which it answers what others forward; "" if it does not, and forwards
	// nothing.
	Listen string
	Key    []byte // 32 bytes, which all have
	// Timeout is how long another gateway may seem to be away on a busy machine. A request that was
	// forwarded to one that is silent for longer fails. Less than 2 s is 2 s, more than 4 s is 4 s.
	Timeout time.Duration
	// Find returns the URL at which a gateway listens for others; "" if there is none of that name, or
	// it listens for none. Now asks for what holds at the moment, and not a few seconds ago.
	Find func(ctx context.Context, node string, now bool) (url string, err error)
	// Home returns the gateway that has what the requests of an owner leave behind, this one if there is
	// none yet.
	Home func(ctx context.Context, of gate.Owner, now bool) (node string, err error)
	// Drains reports whether this gateway gives its homes away.
	Drains func() bool
	// Internal answers what gateways ask each other, below /internal/.
	Internal http.Handler
	// Observe gets what came of each request that was forwarded, and how long its answer took to begin: "answered", "moved" (to another gateway), "gone"
	// (the gateway has ended), "away" (nothing was sent), "cut" (it may have been carried out) or "left" (the client has gone). Nil does nothing.
	Observe func(result string, took time.Duration)
	Log     *slog.Logger
}

// Peers are the other gateways. Use them from several goroutines.
type Peers struct {
	o         Options
	tls       *tls.Config
	transport *http.Transport
	server    *http.Server
	internal  *http.ServeMux // what gateways ask each other
	silent    *log.Logger
	buffers   buffers

	mu       sync.Mutex
	reported map[string]time.Time // by node
}

// New returns the peers of a gateway: nil if it does not listen for them. It connects to none.
func New(o Options) (*Peers, error) {
	if o.Listen == "" {
		return nil, nil
	}
	o.Timeout = min(max(o.Timeout, leastTimeout), mostTimeout)
	own, err := identity(o.Node, o.Key)
	if err != nil {
		return nil, err
	}
	p := &Peers{o: o, tls: own, silent: log.New(io.Discard, "", 0), reported: map[string]time.Time{}, internal: http.NewServeMux()}
	if o.Internal != nil {
		p.internal.Handle("/internal/", o.Internal)
	}
	p.transport = &http.Transport{
		DialTLSContext: p.dial, Protocols: new(http.Protocols), DisableCompression: true, IdleConnTimeout: time.Minute,
		HTTP2: &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: o.Timeout + pongMore},
	}
	p.transport.Protocols.SetHTTP2(true)
	p.server = &http.Server{
		ReadHeaderTimeout: web.HeaderTime, IdleTimeout: 2 * time.Minute, ErrorLog: p.silent,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return p, nil
}

// Answer answers what gateways ask each other by a pattern below /internal/. It is called before Serve, and does nothing of nil.
func (p *Peers) Answer(pattern string, h http.HandlerFunc) {
	if p != nil {
		p.internal.HandleFunc(pattern, h)
	}
}

// Node returns the name of this gateway.
func (p *Peers) Node() string { return p.o.Node }

// Why another gateway has not answered.
var (
	errAway  = errors.New("the gateway that has this session, call or task does not answer; try again later")
	errMoved = errors.New("another gateway is the home of the caller")
	errCut   = errors.New("the gateway that has this session, call or task stopped answering; the request may have been carried out")
)

type forwardedKey struct{}

// buffers are what answers are copied by. The zero buffers has none yet.
type buffers struct{ free sync.Pool }

// bufferSize is that of [io.Copy].
const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if free, ok := b.free.Get().(*[bufferSize]byte); ok {
		return free[:]
	}
	return make([]byte, bufferSize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(free []byte) { b.free.Put((*[bufferSize]byte)(free)) }

// Forward has another gateway answer a request, whose body was read. Gone says that there is none of
// that name, or that the request was forwarded to this one: nothing was answered. Nor was it with an
// error, which the client may read.
func (p *Peers) Forward(w http.ResponseWriter, r *http.Request, node string, body []byte) (gone bool, err error) {
	if p.Forwarded(r) || !nodePattern.MatchString(node) {
		return true, nil
	}
	if gone, err := p.gone(r.Context(), node); gone || err != nil {
		return gone, err
	}
	began := time.Now()
	ended := func(result string) {
		if p.o.Observe != nil {
			p.o.Observe(result, time.Since(began))
		}
	}
	proxy := httputil.ReverseProxy{
		Transport: p.transport, BufferPool: &p.buffers, ErrorLog: p.silent,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Scheme, out.Out.URL.Host = "https", node // dial finds its address
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if said, ok := out.In.Header[name]; ok {
					out.Out.Header[name] = said
				}
			}
			out.Out.Header.Del("Expect")
			out.Out.Header.Set(header, factsOf(r).encode())
			out.Out.Body, out.Out.ContentLength = http.NoBody, int64(len(body))
			if len(body) > 0 {
				out.Out.Body = io.NopCloser(bytes.NewReader(body))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get(movedHeader) != "" {
				return errMoved
			}
			ended("answered")
			closes := w.Header().Get("Connection")
			clear(w.Header()) // which the other gateway has set itself
			if closes != "" {
				w.Header().Set("Connection", closes)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, why error) {
			if r.Context().Err() != nil { // the client has gone
				ended("left")
				return
			}
			if errors.Is(why, errMoved) {
				ended("moved")
				gone = true
				return
			}
			var unsent *dialError
			if err = errCut; errors.As(why, &unsent) {
				gone, err = p.goneNow(context.WithoutCancel(r.Context()), node)
			}
			switch {
			case gone:
				ended("gone")
			case unsent != nil:
				ended("away")
			default:
				ended("cut")
			}
			if !gone {
				p.report(node, why)
			}
		},
	}
	proxy.ServeHTTP(w, r)
	return gone, err
}

// maxPage bounds the body of a request for a page.
const maxPage = 1 << 20

// Page has another gateway answer a request for a page that is at a node, and reports whether it did: not
// if that is this gateway, or there is none of that name. It is false of nil.
func (p *Peers) Page(w http.ResponseWriter, r *http.Request, node string) bool {
	if p == nil || node == "" || node == p.o.Node {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPage))
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return true
	}
	gone, err := p.Forward(w, r, node, body)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	if gone {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return !gone
}

// Home returns the gateway that is to answer a request of an owner.
func (p *Peers) Home(ctx context.Context, of gate.Owner, now bool) (node string, err error) {
	return p.o.Home(ctx, of, now)
}

// Drains reports whether this gateway gives its homes away.
func (p *Peers) Drains() bool { return p.o.Drains() }

// Forwarded reports whether another gateway has forwarded a request here.
func (p *Peers) Forwarded(r *http.Request) bool { return r.Context().Value(forwardedKey{}) != nil }

// Moved answers a request that was forwarded here, and is to be answered by another gateway.
func (p *Peers) Moved(w http.ResponseWriter) {
	w.Header().Set(movedHeader, "1")
	w.WriteHeader(http.StatusConflict)
}

// gone reports whether there is no gateway of a name to forward to.
func (p *Peers) gone(ctx context.Context, node string) (bool, error) {
	if at, err := p.o.Find(ctx, node, false); err == nil && at != "" {
		return false, nil
	}
	at, err := p.o.Find(ctx, node, true)
	return err == nil && at == "", err
}

// goneNow is gone of a gateway that cannot be connected to. One whose lease runs is there, whatever it
// does: nothing of it is taken over.
func (p *Peers) goneNow(ctx context.Context, node string) (bool, error) {
	if at, err := p.o.Find(ctx, node, true); err != nil || at != "" {
		return false, errAway
	}
	return true, nil
}

// report tells the operator that a gateway does not answer, now and then.
func (p *Peers) report(node string, why error) {
	p.mu.Lock()
	again := time.Since(p.reported[node]) >= reportEvery
	if again {
		p.reported[node] = time.Now()
	}
	p.mu.Unlock()
	if again {
		p.o.Log.Warn("a request was not answered by the gateway that it was forwarded to", "node", node, "error", why)
	}
}

// A dialError says why a gateway could not be connected to. Nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dial connects to the gateway that the host of an address names.
func (p *Peers) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout+dialMore)
	defer cancel()
	node, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &dialError{err}
	}
	c, err := p.connect(ctx, network, node)
	if err != nil {
		return nil, &dialError{err}
	}
	return c, nil
}

// Check connects to a gateway once. Nil says that it has proved the secret and its name.
func (p *Peers) Check(ctx context.Context, node string) error {
	c, err := p.dial(ctx, "tcp", net.JoinHostPort(node, "443"))
	if err != nil {
		return err
	}
	return c.Close()
}

// Ask sends a gateway what is to be encoded as JSON, below /internal/, and decodes the answer.
func (p *Peers) Ask(ctx context.Context, node, path string, send, to any) error {
	body, err := json.Marshal(send)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+node+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", node, resp.Status, bytes.TrimSpace(said))
	}
	return json.NewDecoder(resp.Body).Decode(to)
}

func (p *Peers) connect(ctx context.Context, network, node string) (net.Conn, error) {
	at, err := p.o.Find(ctx, node, true)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, errors.New("it listens for no other gateways: set cluster.listen there")
	}
	own := p.tls.Clone()
	own.VerifyConnection = func(s tls.ConnectionState) error {
		if is := s.PeerCertificates[0].Subject.CommonName; is != node {
			return fmt.Errorf("the gateway at %s is %s: set cluster.url of %s to an address of that gateway only, not of a load balancer", at, is, node)
		}
		return nil
	}
	c, err := (&tls.Dialer{Config: own}).DialContext(ctx, network, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return nil, fmt.Errorf("what answers at %s does not prove the secret of the database: give all gateways the same store.secret, and see that cluster.url leads to %s: %w", at, node, err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return nil, fmt.Errorf("what answers at %s is not a gateway: see that cluster.url leads to cluster.listen of %s: %w", at, node, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s, the cluster.url of %s: %w", at, node, err)
	}
	return c, nil
}

// facts are what a gateway knows of a request that is not in it.
type facts struct {
	Addr     string    `json:"addr"` // of the client
	Peer     auth.Peer `json:"peer"`
	TLS      bool      `json:"tls"`
	Cert     []byte    `json:"cert,omitempty"` // of the client
	Verified bool      `json:"verified,omitempty"`
}

func factsOf(r *http.Request) facts {
	f := facts{Addr: r.RemoteAddr, Peer: auth.PeerOf(r.Context()), TLS: r.TLS != nil}
	if f.TLS && len(r.TLS.PeerCertificates) > 0 {
		f.Cert, f.Verified = r.TLS.PeerCertificates[0].Raw, len(r.TLS.VerifiedChains) > 0
	}
	return f
}

func (f facts) encode() string {
	raw, _ := json.Marshal(f) // of nothing that could fail
	return base64.StdEncoding.EncodeToString(raw)
}

// on returns a request as it came to the gateway that has forwarded it.
func (f facts) on(r *http.Request) (*http.Request, error) {
	r = r.WithContext(context.WithValue(auth.WithPeer(r.Context(), f.Peer), forwardedKey{}, true))
	r.Header.Del(header)
	r.RemoteAddr, r.TLS = f.Addr, nil // which is of the other gateway
	if !f.TLS {
		return r, nil
	}
	r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	if f.Cert == nil {
		return r, nil
	}
	c, err := x509.ParseCertificate(f.Cert)
	if err != nil {
		return nil, err
	}
	r.TLS.PeerCertificates = []*x509.Certificate{c}
	if f.Verified {
		r.TLS.VerifiedChains = [][]*x509.Certificate{{c}}
	}
	return r, nil
}

// Serve answers what other gateways forward as next does what comes from clients, until life ends.
func (p *Peers) Serve(life context.Context, next http.Handler) error {
	if p == nil {
		return nil
	}
	ln, err := web.Listen(life, p.o.Listen, "cluster.listen in the configuration")
	if err != nil {
		return err
	}
	return p.serve(life, ln, next)
}

func (p *Peers) serve(life context.Context, ln net.Listener, next http.Handler) error {
	p.server.BaseContext = func(net.Listener) context.Context { return life }
	p.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/internal/") {
			p.internal.ServeHTTP(w, r)
			return
		}
		var f facts
		raw, err := base64.StdEncoding.DecodeString(r.Header.Get(header))
		if err == nil {
			err = json.Unmarshal(raw, &f)
		}
		if err == nil {
			r, err = f.on(r)
		}
		if err != nil {
			http.Error(w, "this address is for gateways: "+header+" cannot be read: run the same version everywhere", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
	return web.Serve(life, p.server, tls.NewListener(ln, p.tls))
}

// Shutdown lets answers end, within ctx.
func (p *Peers) Shutdown(ctx context.Context) {
	if p == nil {
		return
	}
	_ = p.server.Shutdown(ctx) // what is busy after this is cut off
	p.transport.CloseIdleConnections()
}
