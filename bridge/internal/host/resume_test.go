package host_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// An exchange is a request to a host in this process, and what its client has read of
// the answer.
type exchange struct {
	header http.Header
	status int
	hang   context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	body     bytes.Buffer
	deaf     bool // reads nothing: writes wait for their deadline
	deadline time.Time
}

func (x *exchange) Header() http.Header    { return x.header }
func (x *exchange) WriteHeader(status int) { x.status = status }
func (x *exchange) FlushError() error      { return nil }

func (x *exchange) SetWriteDeadline(t time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deadline = t
	return nil
}

func (x *exchange) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.deaf {
		return x.body.Write(b)
	}
	until := x.deadline
	x.mu.Unlock()
	time.Sleep(time.Until(until))
	x.mu.Lock()
	return 0, os.ErrDeadlineExceeded
}

func (x *exchange) read() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.body.String()
}

// send has a host serve a request, in a goroutine that ends with the exchange.
func send(t *testing.T, h http.Handler, method, session, body string, headers ...string) *exchange {
	return sendDeaf(t, h, false, method, session, body, headers...)
}

func sendDeaf(t *testing.T, h http.Handler, deaf bool, method, session, body string, headers ...string) *exchange {
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", rig.Old)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	x := &exchange{header: make(http.Header), status: 200, hang: cancel, ended: make(chan struct{}), deaf: deaf}
	go func() {
		defer close(x.ended)
		h.ServeHTTP(x, r)
	}()
	synctest.Wait()
	return x
}

// breaks ends the connection of a request.
func (x *exchange) breaks() {
	x.hang()
	synctest.Wait()
}

// A waiting host carries out calls until they are let go on.
type waiting struct {
	*host.Host
	session string
	let     chan struct{} // lets one call end
	told    atomic.Int64  // notifications
	mu      sync.Mutex
	ends    []string
}

func newWaiting(t *testing.T) *waiting {
	t.Helper()
	w := &waiting{let: make(chan struct{}, 9)}
	var err error
	w.Host, err = host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
				if c.Name == "quick" {
					return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
				}
				if c.Name == "floods" {
					for i := range 20_000 {
						c.Client.Notify(ctx, "notifications/progress", gate.MustDoc(fmt.Sprintf(`{"progressToken":1,"progress":%d,"message":%q}`, i, strings.Repeat("x", 200))))
						w.told.Add(1)
					}
				}
				select {
				case <-w.let:
					w.note("answered")
					return gate.Result{Doc: gate.MustDoc(`{"content":[],"late":true}`)}, nil
				case <-ctx.Done():
					w.note("cancelled")
					return gate.Result{}, ctx.Err()
				}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := send(t, w, "POST", "", rig.Hello)
	<-x.ended
	w.session = x.header.Get("Mcp-Session-Id")
	<-send(t, w, "POST", w.session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).ended
	return w
}

// close ends the session, and with it all that it has begun.
func (w *waiting) close(t *testing.T) {
	<-send(t, w, "DELETE", w.session, "").ended
	synctest.Wait()
}

func (w *waiting) note(how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, how)
}

func (w *waiting) ended() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.ends, " ")
}

// slowCall is a call whose answer becomes a stream, for it takes its time.
const slowCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"progressToken":1}}}`

var eventID = regexp.MustCompile(`(?m)^id: (\S+)$`)

func lastEvent(t *testing.T, x *exchange) string {
	t.Helper()
	ids := eventID.FindAllStringSubmatch(x.read(), -1)
	if len(ids) == 0 {
		t.Fatalf("no event has an id: %q", x.read())
	}
	return ids[len(ids)-1][1]
}

// TestLostStream: a client that comes back for a stream that is not there is answered, instead of
// waiting for its call.
func TestLostStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		defer w.close(t)
		for _, id := range []string{"7", `"seven"`} {
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", fmt.Sprintf("X-%x_0", id))
			<-back.ended
			if got := back.read(); !strings.Contains(got, `"id":`+id+`,"error":{"code":-32603`) {
				t.Errorf("request %s: %q", id, got)
			}
			again := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, back))
			<-again.ended
			if again.status != http.StatusMethodNotAllowed {
				t.Errorf("asking for more is answered with %d, %q", again.status, again.read())
			}
		}
		for _, other := range []string{"X_0", "X-_0", "X-7_0", fmt.Sprintf("X-%x_0", "{}"), fmt.Sprintf("X-%x_0", strings.Repeat("7", 65))} {
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", other)
			<-back.ended
			if back.status != http.StatusBadRequest {
				t.Errorf("%s: %d, %q", other, back.status, back.read())
			}
		}
	})
}

// TestBrokenStream: the call of a client that has lost the stream goes on for a while,
// and as long as the client is back for it; whatever else ends it does so at once.
func TestBrokenStream(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	tests := map[string]struct {
		early bool // the connection breaks before the answer is a stream
		only  bool // the client has no other stream
		then  func(t *testing.T, w *waiting, x *exchange)
		ends  string
	}{
		"the client comes back in time": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			time.Sleep(29 * time.Second)
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x))
			time.Sleep(time.Hour)
			w.let <- struct{}{}
			<-back.ended
			if !strings.Contains(back.read(), `"id":7`) || !strings.Contains(back.read(), `"late":true`) {
				t.Errorf("it reads %q", back.read())
			}
		}, "answered"},
		"the answer waits for the client": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			w.let <- struct{}{}
			time.Sleep(time.Second)
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x))
			<-back.ended
			if strings.Count(back.read(), `"late":true`) != 1 {
				t.Errorf("it reads %q", back.read())
			}
		}, "answered"},
		"the client has had the answer": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			w.let <- struct{}{}
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x))
			<-back.ended
			again := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, back))
			<-again.ended
			if again.status != http.StatusMethodNotAllowed {
				t.Errorf("asking for more is answered with %d, %q", again.status, again.read())
			}
		}, "answered"},
		"the client comes back, and goes again": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			time.Sleep(20 * time.Second)
			send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x)).breaks()
			time.Sleep(20 * time.Second)
			if got := w.ended(); got != "" {
				t.Errorf("%s 20 s after it was back", got)
			}
			time.Sleep(11 * time.Second)
		}, "cancelled"},
		"the client stays away": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			time.Sleep(29 * time.Second)
			if got := w.ended(); got != "" {
				t.Errorf("%s within the window", got)
			}
			time.Sleep(2 * time.Second)
		}, "cancelled"},
		"the client has gone": {false, true, func(t *testing.T, w *waiting, x *exchange) {
			time.Sleep(4 * time.Second)
			if got := w.ended(); got != "" {
				t.Errorf("%s within 4 s", got)
			}
			time.Sleep(2 * time.Second)
		}, "cancelled"},
		"its only stream breaks, and it comes back": {false, true, func(t *testing.T, w *waiting, x *exchange) {
			time.Sleep(4 * time.Second)
			send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x)).breaks()
			time.Sleep(29 * time.Second)
			if got := w.ended(); got != "" {
				t.Errorf("%s, though it has come back before", got)
			}
			time.Sleep(2 * time.Second)
		}, "cancelled"},
		"somebody else comes for it": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			other := send(t, w, "POST", "", rig.Hello)
			<-other.ended
			session := other.header.Get("Mcp-Session-Id")
			time.Sleep(20 * time.Second)
			back := send(t, w, "GET", session, "", "Last-Event-ID", lastEvent(t, x))
			back.breaks()
			if got := back.read(); !strings.Contains(got, `"error"`) || strings.Contains(got, `"late"`) {
				t.Errorf("another session reads %q", got)
			}
			time.Sleep(11 * time.Second) // which keeps nothing going
			<-send(t, w, "DELETE", session, "").ended
		}, "cancelled"},
		"the client cancels the call": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			<-send(t, w, "POST", w.session, ask).ended
		}, "cancelled"},
		"the gateway ends": {false, false, func(t *testing.T, w *waiting, _ *exchange) {
			if err := w.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		}, "cancelled"},
		"the session ends": {false, false, func(t *testing.T, w *waiting, x *exchange) {
			<-send(t, w, "DELETE", w.session, "").ended
		}, "cancelled"},
		"the answer is not a stream": {true, false, func(t *testing.T, w *waiting, _ *exchange) {
			time.Sleep(29 * time.Second)
			if got := w.ended(); got != "" {
				t.Errorf("%s at once", got)
			}
			time.Sleep(2 * time.Second)
		}, "cancelled"},
		"the answer is not a stream, and comes in time": {true, false, func(t *testing.T, w *waiting, x *exchange) {
			w.let <- struct{}{}
			<-x.ended
		}, "answered"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting(t)
				if !tt.only {
					send(t, w, "GET", w.session, "")
				}
				x := send(t, w, "POST", w.session, slowCall)
				if !tt.early {
					time.Sleep(500 * time.Millisecond)
					synctest.Wait()
				}
				if got := w.ended(); got != "" {
					t.Fatalf("%s with the client there", got)
				}
				x.breaks()
				tt.then(t, w, x)
				if got := w.ended(); got != tt.ends {
					t.Errorf("the call: %q, want %q", got, tt.ends)
				}
				w.close(t)
			})
		})
	}
}

// TestBrokenStreamBesideAnother: a client comes back for the stream that it names, also with the
// stream of notices open; that one, too, it can come back for, and it ends with the session.
func TestBrokenStreamBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		changed := func() {
			w.Changed()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if early := send(t, w, "GET", w.session, "", "Last-Event-ID", "_0"); early.status != http.StatusBadRequest {
			t.Errorf("back at the stream of notices, which was never opened: %d %q", early.status, early.read())
		}
		notices := send(t, w, "GET", w.session, "")
		changed()
		notices.breaks()
		notices = send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, notices))
		changed()
		if n := strings.Count(notices.read(), "tools/list_changed"); n != 1 {
			t.Errorf("back at the stream of notices it reads %d, want the one that came then: %q", n, notices.read())
		}
		x := send(t, w, "POST", w.session, slowCall)
		time.Sleep(time.Second)
		x.breaks()
		back := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x))
		w.let <- struct{}{}
		<-back.ended
		if !strings.Contains(back.read(), `"late":true`) {
			t.Errorf("back at its call it reads %d %q", back.status, back.read())
		}
		w.close(t)
		<-notices.ended
	})
}

// TestDeafClientWithoutASession: a client cannot come back for a call without a session.
func TestDeafClientWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		call := sessionless(7, "tools/call", `"name":"floods","arguments":{}`, "{}")
		x := sendDeaf(t, w, true, "POST", "", call, "Mcp-Protocol-Version", rig.Newest, "Mcp-Method", "tools/call", "Mcp-Name", "floods")
		time.Sleep(31 * time.Second)
		if got := w.ended(); got != "cancelled" {
			t.Errorf("the call of a client that reads nothing: %q", got)
		}
		<-x.ended
		w.close(t)
	})
}

// TestBrokenStreamOfAListing: a listing ends with its connection, for its client can ask again.
func TestBrokenStreamOfAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		h, err := host.New(host.Config{
			Config: dispatch.Config{
				Do: func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, nil },
				Tools: func(ctx context.Context, _ *gate.Principal) ([]*gate.Tool, error) {
					<-ctx.Done()
					ended.Store(true)
					return nil, ctx.Err()
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &waiting{Host: h}
		x := send(t, w, "POST", "", rig.Hello)
		<-x.ended
		w.session = x.header.Get("Mcp-Session-Id")
		x = send(t, w, "POST", w.session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		time.Sleep(time.Second)
		if ended.Load() {
			t.Error("it has ended with the client there")
		}
		x.breaks()
		if !ended.Load() {
			t.Error("it goes on without its client")
		}
		w.close(t)
	})
}

// TestBrokenStreamAtTheEnd: a gateway that ends does not wait for clients that have lost a stream.
func TestBrokenStreamAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		x := send(t, w, "POST", w.session, slowCall)
		time.Sleep(time.Second)
		go w.Drain(context.Background())
		if got := w.ended(); got != "" {
			t.Errorf("%s with the client there", got)
		}
		x.breaks()
		if got := w.ended(); got != "cancelled" {
			t.Errorf("the call of a client that has gone: %q", got)
		}
		w.close(t)
	})
}

// Of a request that is answered nothing is kept but its events, for a while.
func TestStreamThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		for range 3 {
			x := send(t, w, "POST", w.session, slowCall)
			time.Sleep(time.Second)
			if n := w.Clients().Streams(); n != 1 {
				t.Errorf("%d streams are kept while one call is under way", n)
			}
			w.let <- struct{}{}
			<-x.ended
		}
		if n := w.Clients().Streams(); n != 0 {
			t.Errorf("%d streams are kept of calls that have ended", n)
		}
		w.close(t)
	})
}

// TestDeafClient: a client that reads nothing does not hold up others, is given up in time, and may
// come back for the rest.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		x := sendDeaf(t, w, true, "POST", w.session, strings.Replace(slowCall, `"slow"`, `"floods"`, 1))
		if n := w.told.Load(); n == 0 || n > 10_000 {
			t.Errorf("%d notifications wait for a client that reads nothing", n)
		}
		start := time.Now()
		other := send(t, w, "POST", w.session, strings.Replace(strings.Replace(slowCall, `"slow"`, `"quick"`, 1), `"id":7`, `"id":8`, 1))
		<-other.ended
		if took := time.Since(start); took > 0 || !strings.Contains(other.read(), `"id":8`) {
			t.Errorf("another call took %v: %q", took, other.read())
		}
		time.Sleep(31 * time.Second) // it is given up
		if got := w.ended(); got != "" {
			t.Errorf("the call was %s though its client may come back", got)
		}
		time.Sleep(30 * time.Second)
		if got := w.ended(); got != "cancelled" {
			t.Errorf("the call of a client that has gone: %q", got)
		}
		<-x.ended
		w.close(t)
	})
}
