//go:build unix

package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/duplex"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A balancer sends requests to gateways that are ready, and tries the next one if it cannot connect.
type balancer struct {
	urls  []string // of MCP
	turn  atomic.Uint64
	ready []atomic.Bool
}

func (b *balancer) start(t *testing.T) string {
	b.ready = make([]atomic.Bool, len(b.urls))
	ended := make(chan struct{})
	looks := &http.Client{Timeout: timelimit.Patience(t)}
	var looking sync.WaitGroup
	for i, at := range b.urls {
		b.ready[i].Store(true)
		looking.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				r, err := looks.Get(strings.TrimSuffix(at, "/mcp") + "/readyz")
				if err == nil {
					r.Body.Close()
				}
				b.ready[i].Store(err == nil && r.StatusCode == http.StatusOK)
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	s := httptest.NewServer(duplex.Handler(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: b}))
	t.Cleanup(func() {
		close(ended)
		looking.Wait()
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/mcp"
}

func (b *balancer) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	for range 3 * len(b.urls) {
		i := int(b.turn.Add(1)) % len(b.urls)
		if !b.ready[i].Load() {
			continue
		}
		to, err := url.Parse(b.urls[i])
		if err != nil {
			return nil, err
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = to.Scheme, to.Host, to.Host
		resp, err = http.DefaultTransport.RoundTrip(out)
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			continue
		}
		return resp, err
	}
	return nil, errors.New("no gateway is ready")
}

// restart ends a gateway as a supervisor does, and starts it again.
func (c *cluster) restart(t *testing.T, at int) {
	t.Helper()
	c.processes[at].Signal(syscall.SIGTERM)
	c.processes[at].Wait()
	c.processes[at] = c.nodes[at].Serve("--listen", strings.TrimSuffix(strings.TrimPrefix(c.urls[at], "http://"), "/mcp"))
}

// rolls: while all gateways are restarted, one after the other, no request of a client without a session
// fails, and no session loses what it has met. The slower the machine, the longer a gateway has to linger until the
// balancer notices.
func (c *cluster) rolls(t *testing.T) {
	b := &balancer{urls: c.urls}
	at := b.start(t)
	linger := time.Second
	timelimit.Grow(t, linger, func(limit time.Duration) error {
		if limit != linger {
			for i, pl := range c.nodes {
				c.edit(t, pl, fmt.Sprintf("linger: %v}", linger), fmt.Sprintf("linger: %v}", limit))
				c.restart(t, i)
			}
			linger = limit
		}
		return c.roll(t, at)
	})
}

// edit replaces a part of a gateway's configuration.
func (c *cluster) edit(t *testing.T, pl *e2e.Place, was, is string) {
	t.Helper()
	text, err := os.ReadFile(pl.File("wasmgate.yaml"))
	if err != nil || !strings.Contains(string(text), was) {
		t.Fatalf("the configuration has no %q: %v", was, err)
	}
	pl.Write("wasmgate.yaml", strings.Replace(string(text), was, is, 1))
}

// roll restarts all gateways once, and returns how many calls failed meanwhile.
func (c *cluster) roll(t *testing.T, at string) error {
	var calls atomic.Int64
	var failed sync.Map // by what the calls said
	ended := make(chan struct{})
	var calling sync.WaitGroup
	for range 6 {
		w := c.client(at, c.token(t, rand.Text(), rand.Text()))
		for _, tool := range []string{"own__find", "own__read_web"} {
			if ok, code := passes(t, w, tool, `{}`); !ok {
				t.Fatalf("%s: %s", tool, code)
			}
		}
		calling.Go(func() {
			for {
				if ok, code := passesOnce(t, w, "own__send", toBob); !ok {
					failed.Store("a call to an address that was met before: "+code, true)
				}
				switch ok, code := passesOnce(t, w, "own__send", toEvil); {
				case ok:
					t.Error("a call to an address that was not met passes")
				case code != "refused_authorize":
					failed.Store("a call to an address that was not met: "+code, true)
				}
				calls.Add(2)
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	for at := range c.nodes {
		before := calls.Load()
		c.restart(t, at)
		timelimit.Wait(t, "calls go on", func() bool { return calls.Load() > before+12 })
	}
	close(ended)
	calling.Wait()
	t.Logf("%d calls", calls.Load())
	var err error
	failed.Range(func(what, _ any) bool {
		err = errors.Join(err, errors.New(what.(string)))
		return true
	})
	return err
}

// drains: a gateway that is drained gives its callers to others, and takes part again once it is restarted.
func (c *cluster) drains(t *testing.T) {
	token := c.token(t, rand.Text(), rand.Text())
	for _, tool := range []string{"own__find", "own__read_web"} {
		if ok, code := passes(t, c.client(c.urls[1], token), tool, `{}`); !ok {
			t.Fatalf("%s: %s", tool, code)
		}
	}
	if r := c.nodes[0].Run("cluster", "drain", "n9"); r.Code != 2 || !strings.Contains(r.Stderr, "no gateway n9 runs") {
		t.Errorf("a gateway that is not there: %+v", r)
	}
	c.nodes[0].Must("cluster", "drain", "n1", "--wait")
	if text := c.nodes[2].Must("cluster"); !strings.Contains(text, "n1    draining") {
		t.Errorf("status: %s", text)
	}
	r, err := http.Get(strings.TrimSuffix(c.urls[1], "/mcp") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readiness: %s", r.Status)
	}
	for _, url := range []string{c.urls[0], c.urls[1], c.urls[2]} {
		if ok, code := passes(t, c.client(url, token), "own__send", toBob); !ok {
			t.Errorf("a value of before: %s", code)
		}
		if ok, code := passes(t, c.client(url, token), "own__send", toEvil); ok || code != "refused_authorize" {
			t.Errorf("a value that was not met: %t %s", ok, code)
		}
	}
	if id := c.open(t, c.urls[1], token); strings.Contains(id, "n1~") {
		t.Errorf("a session begins at a gateway that drains: %s", id)
	}
	c.restart(t, 1)
	timelimit.Wait(t, "it runs again", func() bool {
		text := c.nodes[2].Must("cluster")
		return strings.Contains(text, "n1    runs")
	})
}

// verified: the logs of all gateways hold, and what is forged in one shows in the others, also if its own chain
// holds.
func (c *cluster) verified(t *testing.T) {
	_, bob := c.key(t, 0, "bob")
	if ok, code := passes(t, c.client(c.urls[2], bob), "own__find", `{}`); !ok {
		t.Fatal(code)
	}
	timelimit.Wait(t, "n2 has told of its records", func() bool {
		text := c.nodes[0].Must("cluster")
		return !strings.Contains(text, " 1:")
	})
	c.restart(t, 0) // it notes the records of others as it starts
	timelimit.Wait(t, "n0 has noted a later record of n2", func() bool {
		for _, e := range c.nodes[0].Log() {
			if e.Event == "heads" && strings.Contains(e.Raw, `"n2 `) && !strings.Contains(e.Raw, `"n2 1:`) {
				return true
			}
		}
		return false
	})
	if text := c.nodes[1].Must("cluster", "verify"); strings.Count(text, "the chain holds") != 3 {
		t.Errorf("verify: %s", text)
	}
	c.processes[2].Signal(syscall.SIGTERM)
	c.processes[2].Wait()
	whole, err := os.ReadFile(c.nodes[2].File("state/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(whole), "\n")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(c.nodes[2].File("state/audit.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		t.Helper()
		c.processes[2] = c.nodes[2].Serve("--listen", strings.TrimSuffix(strings.TrimPrefix(c.urls[2], "http://"), "/mcp"))
	}
	write(first + "\n")
	start()
	if r := c.nodes[2].Run("audit", "verify", c.nodes[2].File("state/audit.jsonl")); r.Code != 0 {
		t.Errorf("the chain of a log that was cut: %+v", r)
	}
	if r := c.nodes[0].Run("cluster", "verify"); r.Code != 3 || !strings.Contains(r.Stdout, "n2: ") || !strings.Contains(r.Stdout, "head names") || !strings.Contains(r.Stdout, "n1: the chain holds") {
		t.Errorf("a log that was cut: %+v", r)
	}
	c.processes[2].Signal(syscall.SIGTERM)
	c.processes[2].Wait()
	write(string(whole))
	start()
}
