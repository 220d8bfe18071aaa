package plain_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire/plain"
)

const patience = time.Minute

// A server of these tests gives each request to answer, with its number on its connection,
// which answer ends by returning false. It listens on a Unix socket, where what one side has
// written, or ended, is there for the other at once.
type server struct {
	path        string
	connections atomic.Int64
	requests    atomic.Int64
	ended       chan struct{} // gets one for each connection that the client has ended
}

func serve(t *testing.T, answer func(c net.Conn, nth int, body string) bool) *server {
	dir, err := os.MkdirTemp("", "plain") // short, as paths of sockets must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{path: l.Addr().String(), ended: make(chan struct{}, 1000)}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			wg.Go(func() { s.serve(c, answer) })
		}
	})
	return s
}

func (s *server) serve(c net.Conn, answer func(net.Conn, int, string) bool) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	br := bufio.NewReader(c)
	for nth := 1; ; nth++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			s.ended <- struct{}{}
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.requests.Add(1)
		if !answer(c, nth, string(body)) {
			return
		}
	}
}

const host = "server.example"

func (s *server) client(t *testing.T) *plain.Client {
	c := &plain.Client{Host: host, Dial: s.dial, MaxHead: maxHead, MaxIdle: 8, IdleTime: patience}
	t.Cleanup(c.CloseIdle)
	return c
}

func (s *server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", s.path)
}

// sees waits until the server has seen the end of a connection.
func (s *server) sees(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Error("the client has not ended the connection")
	}
}

// says sends an answer with a body.
func says(c net.Conn, body string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func echo(c net.Conn, _ int, body string) bool {
	says(c, body)
	return true
}

func exchange(t *testing.T, ctx context.Context, c *plain.Client, body string) (string, error) {
	t.Helper()
	r := post(t, "http://"+host, body).WithContext(ctx)
	resp, err := c.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func want(t *testing.T, c *plain.Client, body, answer string) {
	t.Helper()
	if got, err := exchange(t, t.Context(), c, body); got != answer || err != nil {
		t.Errorf("%s is answered with %q, %v; want %q", body, got, err, answer)
	}
}

func TestConnectionIsKept(t *testing.T) {
	for name, answer := range map[string]func(net.Conn, int, string) bool{
		"length": echo,
		"chunks": func(c net.Conn, _ int, body string) bool {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			return true
		},
		"compressed": func(c net.Conn, _ int, body string) bool {
			z := zipped(body)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(z), z)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			c := s.client(t)
			for i := range 20 {
				want(t, c, strconv.Itoa(i), strconv.Itoa(i))
			}
			if n := s.connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// A server that ends each connection after an answer is connected again, and no request
// fails or is made twice.
func TestServerEndsConnections(t *testing.T) {
	gone := make(chan struct{}, 100)
	s := serve(t, func(c net.Conn, _ int, body string) bool {
		says(c, body)
		c.Close()
		gone <- struct{}{}
		return false
	})
	c := s.client(t)
	for i := range 20 {
		want(t, c, strconv.Itoa(i), strconv.Itoa(i))
		<-gone
	}
	if n := s.requests.Load(); n != 20 {
		t.Errorf("%d requests", n)
	}
}

// What a server sends without being asked is never the answer to the next request, whether
// it comes with an answer or after it.
func TestUnaskedAnswer(t *testing.T) {
	for name, apart := range map[string]bool{"at once": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			read, evil := make(chan struct{}, 100), make(chan struct{}, 100)
			s := serve(t, func(c net.Conn, nth int, body string) bool {
				var b bytes.Buffer
				fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				if apart {
					_, _ = c.Write(b.Bytes())
					b.Reset()
					<-read
				}
				b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
				_, _ = c.Write(b.Bytes())
				evil <- struct{}{}
				return true
			})
			c := s.client(t)
			for i := range 10 {
				want(t, c, strconv.Itoa(i), strconv.Itoa(i))
				read <- struct{}{}
				<-evil
			}
		})
	}
}

// A request that the server may have seen is not made again.
func TestNothingIsRepeated(t *testing.T) {
	s := serve(t, func(c net.Conn, nth int, body string) bool {
		if nth == 2 {
			return false // seen, and not answered
		}
		return echo(c, nth, body)
	})
	c := s.client(t)
	want(t, c, "1", "1")
	if got, err := exchange(t, t.Context(), c, "2"); err == nil {
		t.Errorf("answered with %q", got)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
	want(t, c, "3", "3")
}

// The end of a request's context ends it, whatever the server does, and its connection.
func TestContextEnds(t *testing.T) {
	errOver := errors.New("over")
	for name, begins := range map[string]string{
		"before the head": "", "in the head": "HTTP/1.1 200", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{}, 1)
			s := serve(t, func(c net.Conn, _ int, body string) bool {
				if body == "next" {
					return echo(c, 0, body)
				}
				_, _ = io.WriteString(c, begins)
				began <- struct{}{}
				return true
			})
			c := s.client(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-began
				cancel(errOver)
			}()
			if got, err := exchange(t, ctx, c, "{}"); !errors.Is(err, errOver) {
				t.Errorf("%q, %v", got, err)
			}
			s.sees(t)
			if _, err := exchange(t, ctx, c, "{}"); !errors.Is(err, errOver) {
				t.Errorf("a request whose context is over: %v", err)
			}
			want(t, c, "next", "next")
		})
	}
}

// A connection whose answer was not read to its end carries no other request, nor does one that the
// server says it will close.
func TestConnectionIsNotKept(t *testing.T) {
	s := serve(t, func(c net.Conn, nth int, body string) bool {
		switch body {
		case "left":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789")
		case "last":
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast")
		default:
			return echo(c, nth, body)
		}
		return true
	})
	c := s.client(t)
	resp, err := c.RoundTrip(post(t, "http://"+host, "left"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	s.sees(t)
	if _, err := resp.Body.Read(make([]byte, 10)); err == nil {
		t.Error("a closed body is read")
	}
	want(t, c, "last", "last")
	s.sees(t)
	want(t, c, "next", "next")
}

// The end of a context closes no connection that another request has by then.
func TestContextEndsLate(t *testing.T) {
	s := serve(t, echo)
	c := s.client(t)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := c.RoundTrip(post(t, "http://"+host, "1").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_, _ = io.ReadAll(resp.Body)
		want(t, c, "2", "2")
	}
}

// A body that is closed after its end leaves the connection alone, though somebody else has
// it by then.
func TestBodyIsClosedLate(t *testing.T) {
	s := serve(t, echo)
	c := s.client(t)
	for range 10 {
		resp, err := c.RoundTrip(post(t, "http://"+host, "1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		next, err := c.RoundTrip(post(t, "http://"+host, "2"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got, err := io.ReadAll(next.Body); string(got) != "2" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		next.Body.Close()
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	s := serve(t, echo)
	short := &plain.Client{Host: host, Dial: s.dial, MaxHead: maxHead, MaxIdle: 1, IdleTime: 10 * time.Millisecond}
	want(t, short, "1", "1")
	s.sees(t)
	want(t, short, "2", "2")
	s.sees(t)

	c := s.client(t)
	want(t, c, "3", "3")
	c.CloseIdle()
	s.sees(t)
	want(t, c, "4", "4")

	under, err := c.RoundTrip(post(t, "http://"+host, "5"))
	if err != nil {
		t.Fatal(err)
	}
	c.CloseIdle()
	if _, err := io.ReadAll(under.Body); err != nil {
		t.Fatal(err)
	}
	s.sees(t) // what is in use then is not kept

	few := &plain.Client{Host: host, Dial: s.dial, MaxHead: maxHead, IdleTime: patience}
	want(t, few, "6", "6")
	s.sees(t)
}

func TestDialFails(t *testing.T) {
	errNoWay := errors.New("no way")
	c := &plain.Client{Host: "server.example", MaxHead: maxHead, Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != "server.example:80" {
			t.Errorf("dials %s", addr)
		}
		return nil, errNoWay
	}}
	if _, err := exchange(t, t.Context(), c, "1"); !errors.Is(err, errNoWay) {
		t.Errorf("%v", err)
	}
}

// A request whose context ends while it connects is over for that, not for want of a server.
func TestContextEndsDialling(t *testing.T) {
	errOver := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &plain.Client{Host: host, MaxHead: maxHead, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel(errOver)
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}}
	if _, err := exchange(t, ctx, c, "1"); !errors.Is(err, errOver) {
		t.Errorf("%v", err)
	}
}

// Many requests run at once; some are given up at any time, and some connections break. Each that
// is answered has its own answer.
func TestEachHasItsOwnAnswer(t *testing.T) {
	s := serve(t, func(c net.Conn, nth int, body string) bool {
		n, _ := strconv.Atoi(body)
		if n%7 == 0 {
			time.Sleep(time.Millisecond)
		}
		echo(c, nth, body)
		return n%11 != 0
	})
	c := s.client(t)
	var wg sync.WaitGroup
	var answered atomic.Int64
	for client := range 8 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%3 == 0 {
					time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
				}
				body := strconv.Itoa(client*1000 + i)
				got, err := exchange(t, ctx, c, body)
				if err == nil && got != body {
					t.Errorf("%s is answered with %s", body, got)
				}
				if err == nil {
					answered.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if n := answered.Load(); n < 8*66/2 {
		t.Errorf("%d requests were answered", n)
	}
}
