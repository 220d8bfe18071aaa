package host_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// TestAnswerBecomesStream: an answer that is not there in half a second becomes a stream,
// whose first event has an id; one that is there is JSON, also where the call could have
// been told of.
func TestAnswerBecomesStream(t *testing.T) {
	for after, stream := range map[time.Duration]bool{0: false, 499 * time.Millisecond: false, 501 * time.Millisecond: true} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting(t)
				x := send(t, w, "POST", w.session, slowCall)
				time.Sleep(after)
				synctest.Wait()
				if head := x.header.Get("Content-Type"); (head == "text/event-stream") != stream {
					t.Errorf("it begins with %q", head)
				}
				if stream && !strings.HasPrefix(x.read(), "event: prime\nid: ") {
					t.Errorf("the stream begins with %q", x.read())
				}
				w.let <- struct{}{}
				<-x.ended
				if strings.Count(x.read(), `"late":true`) != 1 || strings.HasPrefix(x.read(), "{") == stream {
					t.Errorf("the answer is %q", x.read())
				}
				w.close(t)
			})
		})
	}
}

// TestStreamOfAnOlderRevision: clients of revisions before 2025-11-25 know no event without data.
func TestStreamOfAnOlderRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		x := send(t, w, "POST", w.session, slowCall, "Mcp-Protocol-Version", "2025-06-18")
		time.Sleep(time.Second)
		w.let <- struct{}{}
		<-x.ended
		if got := x.read(); strings.Contains(got, "event: prime") || !strings.Contains(got, `"late":true`) {
			t.Errorf("the stream is %q", got)
		}
		w.close(t)
	})
}

// TestNothingBehindTheAnswer: messages of a server about a call that is already answered reach no
// client.
func TestNothingBehindTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tell := make(chan func(), 1)
		h, err := host.New(host.Config{
			Config: dispatch.Config{
				Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
				Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
					tell <- func() { c.Client.Notify(ctx, "notifications/message", gate.MustDoc(`{"data":"too late"}`)) }
					return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		x := send(t, h, "POST", "", sessionless(7, "tools/call", `"name":"t","arguments":{}`, "{}"), "Mcp-Protocol-Version", rig.Newest, "Mcp-Method", "tools/call", "Mcp-Name", "t")
		<-x.ended
		(<-tell)()
		synctest.Wait()
		if got := x.read(); !strings.Contains(got, `"id":7`) || strings.Contains(got, "too late") {
			t.Errorf("the answer is %q", got)
		}
	})
}

// TestEventsAreOneLine: an event ends with its line, and so does a line; JSON of a server
// may have several.
func TestEventsAreOneLine(t *testing.T) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Do: func(ctx context.Context, c gate.Call) (gate.Result, error) {
				c.Client.Notify(ctx, "notifications/message", gate.MustDoc("{\n\"level\":\"info\",\r\n\"data\":\"a\\nb\"}"))
				return gate.Result{Doc: gate.MustDoc("{\r\"content\":\n[]\n}")}, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	x := &rig.Fixture{Host: h, URL: srv.URL}
	want := []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{ "level":"info",  "data":"a\nb"}}`, `{"jsonrpc":"2.0","id":1,"result":{ "content": [] }}`}
	call := rig.Request(rig.Old, "1", "tools/call", `"name":"t","arguments":{}`)
	resp, err := rig.Post(t.Context(), srv.URL, rig.Old, rig.OpenSession(t, srv.URL), call)
	if err != nil {
		t.Fatal(err)
	}
	stream := readAll(t, resp)
	for _, one := range want {
		if !strings.Contains(stream, "\ndata: "+one+"\n\n") {
			t.Errorf("the stream is %q", stream)
		}
	}
	w, end := rig.DialStdio(t, x)
	defer end()
	w(rig.Hello)
	if got := w(call); got != want[1] {
		t.Errorf("the line is %q", got)
	}
}

// TestStreamsAreBounded: one client has 32 streams open at most, and another one is not
// concerned.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		var calls []*exchange
		for i := range 33 {
			x := send(t, w, "POST", w.session, strings.Replace(slowCall, `"id":7`, fmt.Sprintf(`"id":%d`, i), 1))
			calls = append(calls, x)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, x := range calls {
			x.breaks()
			back := send(t, w, "GET", w.session, "", "Last-Event-ID", lastEvent(t, x))
			if want := map[bool]int{true: http.StatusTooManyRequests, false: http.StatusOK}[i == 32]; back.status != want {
				t.Errorf("stream %d: %d, want %d", i, back.status, want)
			}
		}
		other := send(t, w, "POST", "", rig.Hello)
		<-other.ended
		session := other.header.Get("Mcp-Session-Id")
		x := send(t, w, "GET", session, "")
		if x.status != http.StatusOK || x.read() == "" {
			t.Errorf("another client: %d %q", x.status, x.read())
		}
		<-send(t, w, "DELETE", session, "").ended
		<-x.ended
		w.close(t)
		for _, x := range calls {
			<-x.ended
		}
	})
}

// TestStreamsOfOneLine: so it is in lines, where they are requests.
func TestStreamsOfOneLine(t *testing.T) {
	x := rig.NewFixture(t)
	const listens = `"notifications":{"toolsListChanged":true}`
	var msgs []string
	for i := range 33 {
		msgs = append(msgs, sessionless(i, "subscriptions/listen", listens, "{}"))
	}
	told := serveLines(t, x, gate.Local(), msgs...)
	open, refused := 0, 0
	for open+refused < len(msgs) {
		switch got := hear(t, told); {
		case strings.Contains(got, "notifications/subscriptions/acknowledged"):
			open++
		case strings.Contains(got, "too many streams are open; end one first"):
			refused++
		}
	}
	if open != 32 || refused != 1 {
		t.Errorf("%d are open and %d were refused", open, refused)
	}
	other := serveLines(t, x, gate.Local(), sessionless(1, "subscriptions/listen", listens, "{}"))
	if got := hear(t, other); !strings.Contains(got, "acknowledged") {
		t.Errorf("another line: %s", got)
	}
}

// TestStreamsOfSessionsAreBounded: if all places are taken, and no client has more than its share,
// a session opens no stream until another has ended.
func TestStreamsOfSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		w.Clients().Bound(2048, 1)
		other := send(t, w, "POST", "", rig.Hello)
		<-other.ended
		session := other.header.Get("Mcp-Session-Id")
		first := send(t, w, "GET", w.session, "")
		for range 40 { // what is refused is no stream of the session's 32
			if x := send(t, w, "GET", session, ""); x.status != http.StatusTooManyRequests {
				t.Errorf("one too many: %d %q", x.status, x.read())
			}
		}
		first.breaks()
		second := send(t, w, "GET", session, "")
		if second.status != http.StatusOK || second.read() == "" {
			t.Errorf("in the place of another: %d %q", second.status, second.read())
		}
		<-send(t, w, "DELETE", session, "").ended
		<-second.ended
		w.close(t)
	})
}

// TestStreamsOfOneClient: a client that opens streams without end is refused, and does not keep
// others from opening one.
func TestStreamsOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		listen := func(id int) *exchange {
			return send(t, w, "POST", "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, id),
				"Mcp-Protocol-Version", rig.Newest, "Mcp-Method", "subscriptions/listen")
		}
		var open []*exchange
		for i := range 1024 {
			open = append(open, listen(i))
		}
		for i := range 50 {
			x := listen(2000 + i)
			<-x.ended
			if !strings.Contains(x.read(), "too many streams are open; end one first") || !strings.Contains(x.read(), "refused_busy") {
				t.Fatalf("one more: %d %s", x.status, x.read())
			}
		}
		x := send(t, w, "GET", w.session, "")
		synctest.Wait()
		if x.status != http.StatusOK || x.read() == "" {
			t.Errorf("another client: %d %q", x.status, x.read())
		}
		ended := 0
		for _, one := range open {
			select {
			case <-one.ended:
				ended++
				if !strings.Contains(one.read(), `"resultType":"complete"`) {
					t.Errorf("the stream that makes room ends with %s", one.read())
				}
			default:
			}
		}
		if ended != 1 {
			t.Errorf("%d streams have made room, want 1", ended)
		}
		w.close(t)
		for _, one := range append(open, x) {
			one.hang()
			<-one.ended
		}
	})
}

// TestIdleSessionsEnd: a session ends when its client has given no sign of life for a day:
// no request, and no stream that is open.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		lives := func() bool {
			x := send(t, w, "POST", w.session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			<-x.ended
			return x.status == http.StatusOK
		}
		time.Sleep(23 * time.Hour)
		if !lives() {
			t.Fatal("it has ended within a day")
		}
		stream := send(t, w, "GET", w.session, "")
		time.Sleep(48 * time.Hour)
		select {
		case <-stream.ended:
			t.Fatal("it has ended though its client has a stream")
		default:
		}
		stream.breaks()
		<-stream.ended
		time.Sleep(23 * time.Hour)
		if !lives() {
			t.Fatal("it has ended within a day of its stream")
		}
		time.Sleep(25 * time.Hour)
		if lives() {
			t.Error("it lives on")
		}
	})
}

// TestPolledStreamEnds: where a server has its client come back later, so does the host;
// the connection ends as one that is whole, while the call goes on.
func TestPolledStreamEnds(t *testing.T) {
	let := make(chan struct{})
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
				c.Client.Poll(1234 * time.Millisecond)
				<-let
				return gate.Result{Doc: gate.MustDoc(`{"content":[],"late":true}`)}, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	session := rig.OpenSession(t, srv.URL)
	resp, err := rig.Post(t.Context(), srv.URL, rig.Old, session, slowCall)
	if err != nil {
		t.Fatal(err)
	}
	stream := readAll(t, resp)
	if !strings.Contains(stream, "retry: 1234\n") {
		t.Fatalf("the stream is %q", stream)
	}
	close(let)
	id := eventID.FindStringSubmatch(stream)[1]
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	for name, value := range map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": session, "Last-Event-ID": id} {
		r.Header.Set(name, value)
	}
	back, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, back); !strings.Contains(got, `"late":true`) {
		t.Errorf("back it reads %q", got)
	}
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
