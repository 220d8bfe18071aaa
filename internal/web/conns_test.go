package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// However many connections one caller opens, idle, busy or half sent, another one is served on a
// new connection and keeps those that it has.
func TestConns(t *testing.T) {
	const most = 8
	for name, flood := range map[string]string{
		"idle":              "GET /quick HTTP/1.1\r\nHost: a\r\nAuthorization: many\r\n\r\n",
		"busy":              "GET /slow HTTP/1.1\r\nHost: a\r\nAuthorization: many\r\n\r\n",
		"half of a body":    "POST /body HTTP/1.1\r\nHost: a\r\nAuthorization: many\r\nContent-Length: 9\r\n\r\nhalf",
		"half of a header":  "GET /quick HTTP/1.1\r\nHost:",
		"nothing at all":    "",
		"without principal": "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conns, end := &Conns[string]{Most: most}, make(chan struct{})
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if who := r.Header.Get("Authorization"); who != "" {
					Own(r.Context(), who)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/slow" {
					select {
					case <-end:
					case <-r.Context().Done():
					}
				}
				fmt.Fprint(w, "ok")
			})}
			conns.Bound(server)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go server.Serve(ln)
			t.Cleanup(func() {
				close(end)
				server.Close()
			})
			dial := func() net.Conn {
				t.Helper()
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			served := func(c net.Conn) error {
				if _, err := io.WriteString(c, "GET /quick HTTP/1.1\r\nHost: a\r\nAuthorization: one\r\n\r\n"); err != nil {
					return err
				}
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
				}
				return err
			}
			mine := dial()
			if err := served(mine); err != nil {
				t.Fatal(err)
			}
			for range 3 * most {
				if _, err := io.WriteString(dial(), flood); err != nil {
					t.Logf("%v", err) // it had to go already
				}
			}
			if err := served(mine); err != nil {
				t.Errorf("the connection from before: %v", err)
			}
			if err := served(dial()); err != nil {
				t.Errorf("a new connection: %v", err)
			}
			conns.mu.Lock()
			defer conns.mu.Unlock()
			if len(conns.all) > most {
				t.Errorf("%d connections", len(conns.all))
			}
		})
	}
}
