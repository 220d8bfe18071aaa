package plain

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// A Client makes requests to one server. Its fields are set before it is used. It may be used
// from several goroutines.
type Client struct {
	Host string // of the URLs of requests that it takes, with a port if they have one
	// Dial connects to the server, as that of an [http.Transport] does; nil is a [net.Dialer]'s.
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	MaxHead  int64         // bytes of the heads before one answer
	MaxIdle  int           // connections that are kept for later requests
	IdleTime time.Duration // how long a connection is kept

	mu      sync.Mutex
	idle    []*conn // the one that was used last comes last
	expires *time.Timer
	closed  bool // by CloseIdle, until the next request
}

// RoundTrip makes a request that the client takes. It is that of an [http.RoundTripper].
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	msg := messages.Get().(*[]byte)
	defer messages.Put(msg)
	var err error
	if *msg, err = appendMessage((*msg)[:0], r); err != nil {
		return nil, err
	}
	for {
		k, kept, err := c.connect(r.Context(), r.URL)
		if err != nil {
			return nil, err
		}
		resp, sent, err := k.exchange(r, *msg)
		if err != nil && kept && !sent && r.Context().Err() == nil {
			continue // the server cannot have seen anything of it
		}
		return resp, err
	}
}

// connect returns a connection, and whether it was kept of an earlier request.
func (c *Client) connect(ctx context.Context, u *url.URL) (k *conn, kept bool, err error) {
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	for k := c.take(); k != nil; k = c.take() {
		if k.quiet() {
			return k, true, nil
		}
		k.Close()
	}
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	to, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, false, err
	}
	return newConn(c, to), false, nil
}

func (c *Client) take() (k *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = false
	if n := len(c.idle); n > 0 {
		k, c.idle[n-1] = c.idle[n-1], nil
		c.idle = c.idle[:n-1]
	}
	return k
}

// keep keeps a connection on which nothing is under way, or closes it.
func (c *Client) keep(k *conn) {
	k.since = time.Now()
	if !c.kept(k) {
		k.Close()
	}
}

// kept keeps a connection, if there is room for it.
func (c *Client) kept(k *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= c.MaxIdle {
		return false
	}
	c.idle = append(c.idle, k)
	if c.expires == nil {
		c.expires = time.AfterFunc(c.IdleTime, c.expire)
	}
	return true
}

// expire closes what was not used for long.
func (c *Client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.idle = slices.DeleteFunc(c.idle, func(k *conn) bool {
		old := now.Sub(k.since) >= c.IdleTime
		if old {
			k.Close()
		}
		return old
	})
	c.expires = nil
	if len(c.idle) > 0 {
		c.expires = time.AfterFunc(c.IdleTime-now.Sub(c.idle[0].since), c.expire)
	}
}

// CloseIdle closes the connections that are kept, and keeps none of those that are in use
// unless another request is made.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.idle {
		k.Close()
	}
	c.idle, c.closed = nil, true
	if c.expires != nil {
		c.expires.Stop()
		c.expires = nil
	}
}
