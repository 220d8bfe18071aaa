//go:build unix

package gateway

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A wire passes connections on to a port, until it is cut or swallows what is sent.
type wire struct {
	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool

	swallows atomic.Bool
}

// An end is one of a wire.
type end struct {
	net.Conn
	*wire
}

func (e end) Write(b []byte) (int, error) {
	if e.swallows.Load() {
		return len(b), nil
	}
	return e.Conn.Write(b)
}

// start returns the URL at which the wire begins.
func (w *wire) start(t *testing.T, port int) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.open = map[net.Conn]bool{}
	t.Cleanup(func() {
		ln.Close()
		w.set(true)
	})
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go w.pass(c, port)
		}
	}()
	return fmt.Sprintf("https://%s", ln.Addr())
}

func (w *wire) pass(c net.Conn, port int) {
	defer c.Close()
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	cut := w.cut
	w.open[c], w.open[to] = true, true
	w.mu.Unlock()
	if cut {
		return
	}
	go func() {
		_, _ = io.Copy(end{to, w}, c) // ends with either
		to.Close()
	}()
	_, _ = io.Copy(end{c, w}, to)
	w.mu.Lock()
	delete(w.open, c)
	delete(w.open, to)
	w.mu.Unlock()
}

// set cuts the wire, or restores it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.open {
		c.Close()
	}
	clear(w.open)
}

// parted: a gateway that others do not reach stays the home of its callers. Requests at others are refused, to
// be sent again, and nothing of a session is lost.
func (c *cluster) parted(t *testing.T) {
	token := c.token(t, rand.Text(), rand.Text())
	here := c.client(c.urls[1], token)
	for _, tool := range []string{"own__find", "own__read_web"} {
		if ok, code := passes(t, here, tool, `{}`); !ok {
			t.Fatalf("%s: %s", tool, code)
		}
	}
	there := c.client(c.urls[0], token)
	if ok, code := passes(t, there, "own__send", toBob); !ok {
		t.Fatalf("forwarded: %s", code)
	}
	c.between[1].set(true)
	seen := len(c.server.Calls("send"))
	for range 3 {
		r := c.send(t, http.MethodPost, c.urls[0], token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
			t.Errorf("the home cannot be reached: %s %s", r.Status, r.all())
		}
		if ok, _ := passesOnce(t, there, "own__send", toBob); ok {
			t.Error("another gateway carries out a call of the home's caller")
		}
		if ok, code := passes(t, here, "own__send", toBob); !ok {
			t.Errorf("at the home: %s", code)
		}
	}
	if n := len(c.server.Calls("send")) - seen; n != 3 {
		t.Errorf("the server has got %d calls, want 3", n)
	}
	if r := c.nodes[0].Run("doctor"); !strings.Contains(r.Stdout, "gateway n1: ") || strings.Contains(r.Stdout, "gateway n1: it answers") {
		t.Errorf("doctor: %s", r.Stdout)
	}
	c.between[1].set(false)
	timelimit.Wait(t, "requests are forwarded again", func() bool {
		ok, _ := passes(t, there, "own__send", toBob)
		return ok
	})
	if ok, code := passes(t, there, "own__send", toEvil); ok || code != "refused_authorize" {
		t.Errorf("a value that was not met: %t %s", ok, code)
	}
}

// copied: a second gateway of a name does not start, and the first one goes on.
func (c *cluster) copied(t *testing.T) {
	pl := c.nodes[0].Program.Place(t, "")
	text, err := os.ReadFile(c.nodes[0].File("wasmgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "cluster: {listen: \"")
	listens, _, _ := strings.Cut(rest, "\"")
	pl.Write("wasmgate.yaml", strings.Replace(string(text), listens, fmt.Sprintf("127.0.0.1:%d", freeport.Port(t)), 1))
	for _, name := range []string{"grants.yaml", "labels.yaml", "policies/ask.rego"} {
		text, err := os.ReadFile(c.nodes[0].File(name))
		if err != nil {
			t.Fatal(err)
		}
		pl.Write(name, string(text))
	}
	if r := pl.Run("serve", "--listen", "127.0.0.1:0"); r.Code == 0 || !strings.Contains(r.Stderr, "another gateway runs as node n0") {
		t.Errorf("a second gateway of the name: %+v", r)
	}
	_, bob := c.key(t, 0, "bob")
	if ok, code := passes(t, c.client(c.urls[0], bob), "own__find", `{}`); !ok {
		t.Errorf("the first one: %s", code)
	}
}
