package login

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Redirect waits on this machine for the browser to come back (RFC 8252, 7.3). The address
// is 127.0.0.1 and never localhost, which a name service can lead elsewhere.
type Redirect struct {
	URL    string
	ln     net.Listener
	answer chan url.Values
}

// Listen begins to wait, at a port that is free.
func Listen(ctx context.Context) (*Redirect, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Redirect{URL: "http://" + ln.Addr().String() + LoopbackPath, ln: ln, answer: make(chan url.Values, 1)}, nil
}

// Close ends the waiting.
func (r *Redirect) Close() error { return r.ln.Close() }

// Wait returns the query with which the browser comes back. Requests with another state are
// refused, and the wait goes on.
func (r *Redirect) Wait(ctx context.Context, state string) (query string, err error) {
	ctx, cancel := context.WithTimeout(ctx, flowTime)
	defer cancel()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		inert(w.Header())
		got := q.URL.Query()
		if q.Method != http.MethodGet || q.URL.Path != LoopbackPath || q.Host != r.ln.Addr().String() || !same(got.Get("state"), state) {
			http.Error(w, "This does not belong to a login in progress.", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "The answer is with wasmgate now; this window can be closed. What came of it stands where the login was begun.\n")
		select {
		case r.answer <- got:
		default: // the second of two
		}
	})}
	go func() { _ = server.Serve(r.ln) }() // ends with Shutdown or Close
	select {
	case got := <-r.answer:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // the page is written
		return got.Encode(), nil
	case <-ctx.Done():
		_ = server.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", errors.New("the login in the browser was not finished in time; log in again")
		}
		return "", ctx.Err()
	}
}

// inert are the headers of pages that must not be read, framed or kept by others.
func inert(h http.Header) {
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
