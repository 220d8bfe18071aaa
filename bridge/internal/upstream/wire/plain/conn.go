package plain

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A conn is a connection, on which one exchange is under way or none.
type conn struct {
	net.Conn
	of    *Client
	br    *bufio.Reader
	left  int64           // bytes that may still be read
	raw   syscall.RawConn // nil if it cannot be found out whether the connection is quiet
	since time.Time       // when it was used last
	abort func()          // closes it
	watch watch
}

func newConn(of *Client, to net.Conn) *conn {
	k := &conn{Conn: to, of: of}
	k.br = bufio.NewReader(limited{k})
	k.abort = func() { k.Close() }
	if s, ok := to.(syscall.Conn); ok {
		k.raw, _ = s.SyscallConn()
	}
	k.watch.read = k.watch.look
	return k
}

// limited reads what may be read of a connection.
type limited struct{ *conn }

func (l limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooMuch
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

var errTooMuch = errors.New("the body is larger than allowed")

// exchange writes a message, and reads the head of its answer. It tells whether anything
// was sent. The connection is kept once the body of the answer was read.
func (k *conn) exchange(r *http.Request, msg []byte) (resp *http.Response, sent bool, err error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, k.abort)
	n, err := k.Write(msg)
	if err == nil {
		resp, err = k.answer(r)
	} else {
		err = broken(err)
	}
	if err != nil {
		stop()
		k.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, n > 0, err
	}
	b := &body{ctx: ctx, of: k, stop: stop, from: resp.Body, last: resp.Close || resp.StatusCode < 200}
	if resp.ContentLength == 0 {
		b.end(true)
		return resp, true, nil
	}
	resp.Body = b
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // which net/http asks for, and undoes, by itself
		resp.Body = &unzipped{body: b}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	return resp, true, nil
}

// answer reads the head of an answer, and passes over what comes before it: heads of status
// 1xx, but for 101, which is the last.
func (k *conn) answer(r *http.Request) (*http.Response, error) {
	k.left = k.of.MaxHead
	if _, err := k.br.Peek(1); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(k.br, r)
		switch {
		case err != nil && k.left <= 0:
			return nil, broken(fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", k.of.MaxHead))
		case err != nil:
			return nil, broken(err)
		case resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols:
			k.left = math.MaxInt64
			return resp, nil
		}
	}
}

// broken says of an error what net/http says.
func broken(err error) error {
	return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
}

// A body is that of an answer.
type body struct {
	ctx  context.Context
	of   *conn
	stop func() bool // lets the end of ctx be; false if it has come
	from io.Reader
	last bool  // the connection is of no use after it
	err  error // of the read that was the last
	over atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.over.Load() {
		return 0, errClosed
	}
	n, err := b.from.Read(p)
	if err == nil {
		return n, nil
	}
	b.err = err
	if err != io.EOF && b.ctx.Err() != nil {
		b.err = context.Cause(b.ctx)
	}
	b.end(err == io.EOF)
	return n, b.err
}

var errClosed = errors.New("http: read on closed response body")

// Close ends the connection, unless the body was read to its end.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end ends the exchange, once. whole says that the answer was read, and nothing but it: then
// the connection is kept.
func (b *body) end(whole bool) {
	if b.over.Swap(true) {
		return
	}
	if alone := b.stop(); alone && whole && !b.last && b.of.br.Buffered() == 0 && b.of.raw != nil {
		b.of.of.keep(b.of)
		return
	}
	b.of.Close()
}

// unzipped is a body that came with the encoding gzip.
type unzipped struct {
	*body
	zip *gzip.Reader
	err error
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.zip == nil && u.err == nil {
		u.zip, u.err = gzip.NewReader(u.body)
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.zip.Read(p)
}
