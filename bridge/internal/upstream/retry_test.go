package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// repeats calls the tool echo of server s, and tells how the call ended, how often it was
// repeated as its record has it, and how many calls were granted.
func repeats(t *testing.T, up gate.Upstream) (code string, again, granted int) {
	t.Helper()
	g, recorded := rig.NewGate(t, up)
	_, _ = g.Do(t.Context(), rig.NewCall("s__echo", "{}"))
	for _, r := range recorded.List() {
		if r.Event == gate.Granted {
			granted++
			continue
		}
		code, again = r.Code, r.Usage.Repeats
	}
	return code, again, granted
}

// A call that the server cannot have seen is sent again, once, and its record says so:
// one that meets a session which the server has ended.
func TestExpiredSession(t *testing.T) {
	var expired atomic.Int32 // messages that are still to be refused
	s := rig.JSONServer(rig.Nothing)
	e, _ := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" && expired.Add(-1) >= 0 {
			http.Error(w, "Session not found", http.StatusNotFound)
			return
		}
		s.ServeHTTP(w, r)
	}))
	expired.Store(1)
	if code, again, granted := repeats(t, e); code != "ok" || again != 1 || granted != 1 {
		t.Errorf("%s after %d repeats, %d granted", code, again, granted)
	}
	if n := count(s.Asked(), "POST initialize"); n != 2 {
		t.Errorf("%d sessions, want a second one", n)
	}
	if code, again, _ := repeats(t, e); code != "ok" || again != 0 {
		t.Errorf("the next one: %s after %d repeats", code, again)
	}
}

// TestLostSessions: a server that has forgotten its sessions says so in many ways. No call fails
// for that, and nothing is carried out twice; nor is a call whose tool uses the same words.
func TestLostSessions(t *testing.T) {
	texts := []string{"Session not found", "Bad Request: No valid session ID provided", "unknown session", "the session has expired", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid session"}}`}
	for _, status := range []int{400, 401, 404, 410, 500, 503} {
		for i, text := range texts {
			t.Run(fmt.Sprint(status, " ", i), func(t *testing.T) {
				var calls atomic.Int32
				var live atomic.Pointer[string]
				var made, bad atomic.Int32
				s := rig.JSONServer(rig.Nothing)
				e, _ := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					given := r.Header.Get("Mcp-Session-Id")
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
					called := bytes.Contains(body, []byte(`"tools/call"`))
					switch {
					case r.Method == http.MethodPost && given == "":
						id := fmt.Sprint("session-", made.Add(1))
						live.Store(&id)
						s.ServeHTTP(&named{ResponseWriter: w, session: id}, r)
					case given != *live.Load():
						http.Error(w, text, status)
					case called && bad.Add(-1) >= 0: // the tool itself fails with the same words
						calls.Add(1)
						http.Error(w, text, http.StatusInternalServerError)
					default:
						if called {
							calls.Add(1)
						}
						s.ServeHTTP(w, r)
					}
				}))
				for n := range int32(3) {
					gone := "none"
					live.Store(&gone)
					if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil || calls.Load() != n+1 {
						t.Fatalf("call %d: %v; %d carried out", n, err, calls.Load())
					}
				}
				bad.Store(1)
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err == nil || calls.Load() != 4 {
					t.Errorf("a tool that fails with such words: %v; %d carried out", err, calls.Load())
				}
			})
		}
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// All calls that meet the end of a session at one time are sent again, however many.
func TestExpiredSessionUnderLoad(t *testing.T) {
	var live atomic.Pointer[string] // the one session that is known
	var made atomic.Int32
	s := rig.JSONServer(func(id string) string {
		time.Sleep(2 * time.Millisecond) // so that calls overlap
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
	})
	e, _ := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Mcp-Session-Id")
		switch known := live.Load(); {
		case given == "" && r.Method == http.MethodPost:
			id := fmt.Sprintf("session-%d", made.Add(1))
			live.Store(&id)
			s.ServeHTTP(&named{ResponseWriter: w, session: id}, r)
		case given != *known:
			time.Sleep(time.Millisecond)
			http.Error(w, "Session not found", http.StatusNotFound)
		default:
			s.ServeHTTP(&named{ResponseWriter: w, session: given}, r)
		}
	}))
	gone := "none"
	var wg sync.WaitGroup
	var done atomic.Int32
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if done.Add(1)%100 == 0 {
					live.Store(&gone)
				}
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Errorf("a call was lost with its session: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if made.Load() < 3 {
		t.Errorf("only %d sessions were made", made.Load())
	}
}

// named gives the session of an answer another name.
type named struct {
	http.ResponseWriter
	session string
}

func (n *named) WriteHeader(status int) {
	n.Header().Set("Mcp-Session-Id", n.session)
	n.ResponseWriter.WriteHeader(status)
}

func (n *named) Write(b []byte) (int, error) {
	n.Header().Set("Mcp-Session-Id", n.session)
	return n.ResponseWriter.Write(b)
}

// A call that finds no server at the address waits for it to come back, and is sent again, because
// nothing of it was ever sent.
func TestRefusedConnection(t *testing.T) {
	s := rig.JSONServer(rig.Nothing)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that each message is dialled for
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	var out atomic.Int32 // attempts that find no server
	e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options(),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if out.Add(-1) >= 0 {
				return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("refused")}
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	out.Store(2)
	if code, again, granted := repeats(t, e); code != "ok" || again != 1 || granted != 1 {
		t.Errorf("%s after %d repeats, %d granted", code, again, granted)
	}
}

// What a server may have seen is sent again only if it may be: of a tool that declares it,
// by an operator's leave.
func TestRepeats(t *testing.T) {
	tests := map[string]struct {
		retry, annotations string
		again              int
	}{
		"nothing is said":                         {"", `{}`, 0},
		"the tool is idempotent, no one allows":   {options.RetryNever, `{"idempotentHint":true}`, 0},
		"the tool is idempotent, and it may be":   {options.RetryIdempotent, `{"idempotentHint":true}`, 1},
		"the tool only reads, and it may be":      {options.RetryIdempotent, `{"readOnlyHint":true}`, 1},
		"the operator allows, the tool is none":   {options.RetryIdempotent, `{"readOnlyHint":false}`, 0},
		"the operator allows, the tool is silent": {options.RetryIdempotent, `{}`, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": "!"}) // the connection breaks
				s.List(`{"name":"echo","inputSchema":{"type":"object"},"annotations":` + tt.annotations + `}`)
				cfg := s.Config("s")
				cfg.Retry = tt.retry
				e := rig.Ready(t, cfg)
				code, again, granted := repeats(t, e)
				if code != "transport" || again != tt.again || granted != 1 {
					t.Errorf("%s after %d repeats, %d granted; want %d repeats", code, again, granted, tt.again)
				}
				if n := s.Count("tools/call"); n != 1+tt.again {
					t.Errorf("the server saw %d calls", n)
				}
				e.Close()
			})
		})
	}
}

// A call is sent again as often as the operator says, and only if it may be: with pauses that
// double, also while there is no connection, and within its time.
func TestRetries(t *testing.T) {
	tests := map[string]struct {
		say         func(*options.Endpoint)
		away        time.Duration // until the server is back
		code        string
		again       int
		least, most time.Duration // random pauses before it connects again are within
	}{
		"broken, the tool may be called twice": {func(c *options.Endpoint) { c.Retry, c.Retries, c.RetryWait = options.RetryIdempotent, 3, time.Second }, 0, "transport", 3, 7 * time.Second, 11 * time.Second},
		"broken, no one says that it may be":   {func(c *options.Endpoint) { c.Retries, c.RetryWait = 3, time.Second }, 0, "transport", 0, 0, 0},
		"broken, at once":                      {func(c *options.Endpoint) { c.Retry, c.Retries = options.RetryIdempotent, 2 }, 0, "transport", 2, 0, 2 * time.Second},
		// Once in a while all attempts that open the circuit fall into the wait, which ends it.
		"not there, and nothing is said":        {func(*options.Endpoint) {}, time.Minute, "not_connected", 0, time.Millisecond, 5 * time.Second},
		"not there, but the time is up earlier": {func(c *options.Endpoint) { c.Retries, c.RetryWait = 3, 30*time.Second }, time.Minute, "not_connected", 0, 30 * time.Second, 30 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": "!"})
				s.List(`{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
				cfg := s.Config("s")
				tt.say(&cfg)
				e := rig.Ready(t, cfg)
				if tt.away > 0 {
					s.Cut(io.EOF)
					time.AfterFunc(tt.away, func() { s.Cut(nil) })
					synctest.Wait()
				}
				began := time.Now()
				code, again, _ := repeats(t, e)
				if took := time.Since(began); code != tt.code || again != tt.again || took < tt.least || took > tt.most {
					t.Errorf("%s after %d repeats and %v; want %s, %d, %v to %v", code, again, took, tt.code, tt.again, tt.least, tt.most)
				}
				e.Close()
			})
		})
	}
}

// A call that is repeated finds a server that is back, and none whose tool is another by then,
// also if that has connected during a pause.
func TestRetriesFindAServer(t *testing.T) {
	for name, tt := range map[string]struct {
		back string // what the tool says of itself then
		code string
	}{
		"the same one":    {"", "ok"},
		"another by then": {`"description":"another",`, "not_connected"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(nil)
				cfg := s.Config("s")
				cfg.Retries, cfg.RetryWait, cfg.CallTimeout = 2, 20*time.Second, 2*time.Minute
				s.List(`{"name":"echo","inputSchema":{"type":"object"}}`)
				e := rig.Ready(t, cfg)
				s.Cut(io.EOF)
				synctest.Wait()
				s.List(`{"name":"echo",` + tt.back + `"inputSchema":{"type":"object"}}`)
				time.AfterFunc(8*time.Second, func() { s.Cut(nil) })
				if code, again, _ := repeats(t, e); code != tt.code || again == 0 {
					t.Errorf("%s after %d repeats, want %s", code, again, tt.code)
				}
				if n := s.Count("tools/call"); (n == 1) != (tt.code == "ok") {
					t.Errorf("the server saw %d calls", n)
				}
				e.Close()
			})
		})
	}
}

// A call that a server does not answer in time is not sent again, whatever may be.
func TestLateIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		s.List(`{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
		cfg := s.Config("s")
		cfg.Retry, cfg.Retries = options.RetryIdempotent, 3
		e := rig.Ready(t, cfg)
		if code, again, _ := repeats(t, e); code != "timeout" || again != 0 || s.Count("tools/call") != 1 {
			t.Errorf("%s after %d repeats", code, again)
		}
		e.Close()
	})
}

// A call is not carried out by a tool that has become another one while the server was
// away.
func TestAnotherToolAfterReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		e := rig.Ready(t, s.Config("s"))
		s.Cut(io.EOF)
		synctest.Wait()
		s.List(`{"name":"echo","description":"another","inputSchema":{"type":"object"}}`)
		time.AfterFunc(time.Second, func() { s.Cut(nil) })
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); rig.Kind(err) != "not_connected" || s.Count("tools/call") != 0 {
			t.Errorf("%v, and the server saw %d calls", err, s.Count("tools/call"))
		}
		e.Close()
	})
}

// A server that has closed its input cannot have seen what was never written to it.
func TestClosedPipe(t *testing.T) {
	unraced.Long(t)
	rig.Within(t, "the call waits for a server that starts again", func() bool {
		var said lines
		cfg := rig.Child("shut")
		cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
		e := rig.Ready(t, cfg)
		rig.Within(t, "the server closes its input", func() bool { return said.has("line=shut") })
		g, recorded := rig.NewGate(t, e)
		_, err := g.Do(t.Context(), rig.NewCall("liar__echo", "{}"))
		if rig.Kind(err) == string(fault.NotConnected) {
			return false // it took longer to start than a call waits
		}
		if last := recorded.List()[len(recorded.List())-1]; rig.Kind(err) != "transport" || last.Usage.Repeats != 1 {
			t.Errorf("%v after %d repeats", err, last.Usage.Repeats)
		}
		return true
	})
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}
