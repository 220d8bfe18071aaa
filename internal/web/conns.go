package web

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConns bounds the connections of a server.
const maxConns = 4096

// Conns bounds the connections of an [http.Server]. No client can keep others from connecting: a
// new connection is always served, and beyond the bound the owner that has the most loses one, an
// idle one if it has any. A connection belongs to the address that it comes from, until a request
// tells whose it is: see [Own]. The zero Conns is ready to use.
type Conns[K comparable] struct {
	Most int // zero: 4096

	mu  sync.Mutex
	all map[net.Conn]*conn[K]
	by  map[holder[K]][]*conn[K] // the oldest first
}

// holder is a caller, or as long as that is not known an address.
type holder[K comparable] struct {
	caller  K
	address string
}

type conn[K comparable] struct {
	net.Conn
	conns *Conns[K]
	owner holder[K]
	idle  bool
}

type connKey struct{}

// Bound has the connections of a server counted. It is called before the server serves.
func (c *Conns[K]) Bound(s *http.Server) {
	further := s.ConnContext
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if further != nil {
			ctx = further(ctx, nc)
		}
		return context.WithValue(ctx, connKey{}, c.add(nc))
	}
	s.ConnState = c.state
}

// Own says whose the connection of a request is.
func Own[K comparable](ctx context.Context, caller K) {
	one, ok := ctx.Value(connKey{}).(*conn[K])
	if !ok {
		return
	}
	c, now := one.conns, holder[K]{caller: caller}
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.owner == now || c.all[one.Conn] != one {
		return
	}
	c.leave(one)
	one.owner = now
	c.by[now] = append(c.by[now], one)
}

// add counts a connection, and closes another one if there are too many.
func (c *Conns[K]) add(nc net.Conn) *conn[K] {
	one := &conn[K]{Conn: nc, conns: c}
	if host, _, err := net.SplitHostPort(nc.RemoteAddr().String()); err == nil {
		one.owner.address = host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all, c.by = make(map[net.Conn]*conn[K]), make(map[holder[K]][]*conn[K])
	}
	most := c.Most
	if most == 0 {
		most = maxConns
	}
	if len(c.all) >= most {
		c.makeRoom()
	}
	c.all[nc] = one
	c.by[one.owner] = append(c.by[one.owner], one)
	return one
}

// makeRoom closes a connection of the owner that has the most. The caller holds mu.
func (c *Conns[K]) makeRoom() {
	var most []*conn[K]
	for _, has := range c.by {
		if len(has) > len(most) {
			most = has
		}
	}
	goes := most[max(0, slices.IndexFunc(most, func(one *conn[K]) bool { return one.idle }))]
	delete(c.all, goes.Conn)
	c.leave(goes)
	go goes.Close() // over TLS it may wait for its client
}

// leave takes a connection from its owner. The caller holds mu.
func (c *Conns[K]) leave(one *conn[K]) {
	has := c.by[one.owner]
	if has = slices.DeleteFunc(has, func(o *conn[K]) bool { return o == one }); len(has) > 0 {
		c.by[one.owner] = has
	} else {
		delete(c.by, one.owner)
	}
}

// state follows what a server says of its connections.
func (c *Conns[K]) state(nc net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[nc]
	if one == nil { // it has made room
		return
	}
	one.idle = s == http.StateIdle
	if s == http.StateClosed || s == http.StateHijacked {
		delete(c.all, nc)
		c.leave(one)
	}
}
