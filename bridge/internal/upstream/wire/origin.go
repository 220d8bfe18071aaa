package wire

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire/plain"
)

const (
	// idleConns is how many connections to one server are kept for later calls.
	idleConns = 64
	// idleTime is how long one is kept.
	idleTime = 90 * time.Second
	// maxHead bounds the head of an answer, in bytes.
	maxHead = 64 << 10
	// maxRedirects bounds redirects, which stay within the server's origin.
	maxRedirects = 3
)

// A Remote is a server over HTTP: where it is, and how it is reached.
type Remote struct {
	URL         string
	Headers     http.Header
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	PinTLS      bool
	MaxMessage  int64 // bytes
	// Authorize, if not nil, returns the value of the header Authorization of each request.
	// Refused is the server's answer, 401 or 403, to the value before, with which the request
	// is sent once more; "" without an error leaves that answer as it is.
	Authorize func(ctx context.Context, refused *http.Response) (string, error)
}

// NewHTTPClient returns a client for one server. It uses no proxy from the
// environment.
func NewHTTPClient(to Remote) (*http.Client, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, err
	}
	o := &origin{
		scheme: u.Scheme, host: u.Host, headers: to.Headers, credentials: credentials(to.Headers), authorize: to.Authorize,
		plain: plain.Client{Host: u.Host, Dial: to.DialContext, MaxHead: maxHead, MaxIdle: idleConns, IdleTime: idleTime},
		Transport: http.Transport{
			MaxIdleConns: idleConns, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime,
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHead,
			DialContext:            to.DialContext, // and no proxy, whatever the environment says
		},
	}
	if to.PinTLS {
		o.TLSClientConfig = &tls.Config{VerifyConnection: o.seeKey}
	}
	return &http.Client{
		Transport: o,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			if r.Method != via[0].Method {
				return fmt.Errorf("redirect to %s that drops the message; configure that URL if it is meant", r.URL.Redacted())
			}
			return nil
		},
	}, nil
}

// origin is a transport to one origin, whose requests carry the configured
// headers. Wherever else a server points, with a redirect or with the endpoint
// of HTTP+SSE, nothing is sent.
type origin struct {
	scheme, host string
	headers      http.Header
	credentials  []string // among the headers
	authorize    func(ctx context.Context, refused *http.Response) (string, error)
	key          atomic.Pointer[string] // of the certificate, if it is asked for
	plain        plain.Client           // for most requests
	http.Transport
}

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != o.scheme || r.URL.Host != o.host {
		return nil, fmt.Errorf("the server redirects to another origin, %s://%s; configure that URL if it is meant", r.URL.Scheme, r.URL.Host)
	}
	return o.send(r.Clone(r.Context()))
}

// send sends a request whose headers are its own to change.
func (o *origin) send(r *http.Request) (*http.Response, error) {
	o.configured(r)
	if o.authorize != nil {
		return o.authorized(r)
	}
	resp, err := o.carry(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && resp.Header.Get("WWW-Authenticate") != "" && r.Header.Get("Authorization") == "" {
		defer resp.Body.Close()
		return nil, &Unauthorized{&loginWanted{statusOf(resp)}}
	}
	return resp, err
}

// carry sends a request as it is.
func (o *origin) carry(r *http.Request) (resp *http.Response, err error) {
	if o.plain.Takes(r) {
		resp, err = o.plain.RoundTrip(r)
	} else {
		resp, err = o.Transport.RoundTrip(r)
	}
	if err == nil {
		for _, value := range o.credentials {
			withoutEcho(resp, value)
		}
	}
	return resp, err
}

// CloseIdleConnections closes the connections that are kept for later requests.
func (o *origin) CloseIdleConnections() {
	o.plain.CloseIdle()
	o.Transport.CloseIdleConnections()
}

// configured puts the configured headers into a request.
func (o *origin) configured(r *http.Request) {
	for k, v := range o.headers {
		r.Header[k] = v
	}
	if host := r.Header["Host"]; len(host) > 0 && host[0] != "" {
		r.Host = host[0]
		delete(r.Header, "Host")
	}
}

// seeKey keeps the key of the certificate of the first connection, and refuses
// connections with another.
func (o *origin) seeKey(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server has shown no certificate")
	}
	sum := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
	key := hex.EncodeToString(sum[:])
	if o.key.CompareAndSwap(nil, &key) || *o.key.Load() == key {
		return nil
	}
	return errors.New("the key of the server's certificate has changed since the gateway connected")
}
