package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// TestDeafStdio: a client on stdio that does not read its answers is not read from
// either, once there are many.
func TestDeafStdio(t *testing.T) {
	var calls atomic.Int64
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Do: func(context.Context, gate.Call) (gate.Result, error) {
				calls.Add(1)
				return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := h.Serve(context.Background(), gate.Local(), inR, outW)
		inR.Close()
		outW.Close()
		ended <- err
	}()
	const sent = 5000
	answers := bufio.NewScanner(outR)
	if fmt.Fprintln(inW, rig.Hello); !answers.Scan() {
		t.Fatal(answers.Err())
	}
	go func() {
		for i := range sent {
			fmt.Fprintln(inW, rig.Request(rig.Old, strconv.Itoa(i+1), "tools/call", `"name":"t","arguments":{}`))
		}
	}()
	for before := int64(-1); calls.Load() == 0 || calls.Load() != before; { // until nothing moves
		before = calls.Load()
		time.Sleep(200 * time.Millisecond)
	}
	if n := calls.Load(); n > 400 {
		t.Errorf("%d calls of a client that reads nothing were carried out", n)
	}
	for range sent { // it wakes up
		if !answers.Scan() {
			t.Fatal(answers.Err())
		}
	}
	inW.Close()
	if err := <-ended; err != nil || calls.Load() != sent {
		t.Errorf("%d calls carried out, %v", calls.Load(), err)
	}
}

// TestSlowSender: a client that does not send a message in its time gets an error that says so. The
// gateway sets the time.
func TestSlowSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", nil)
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(iotest.ErrReader(os.ErrDeadlineExceeded))
		x := &exchange{header: make(http.Header), status: 200}
		w.ServeHTTP(x, r)
		if x.status != http.StatusRequestTimeout {
			t.Errorf("status %d %q", x.status, x.read())
		}
		w.close(t)
	})
}

// TestSlowReaders: a hundred clients that open the stream of changes and never read it do not hold
// up clients that do, and the memory that they hold has a bound.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		reader := send(t, w, "GET", w.session, "", "Accept", "text/event-stream")
		var deaf []*exchange
		var sessions []string
		for range 100 {
			x := send(t, w, "POST", "", rig.Hello)
			<-x.ended
			session := x.header.Get("Mcp-Session-Id")
			sessions = append(sessions, session)
			<-send(t, w, "POST", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).ended
			deaf = append(deaf, sendDeaf(t, w, true, "GET", session, "", "Accept", "text/event-stream"))
		}
		start := time.Now()
		for range 100 {
			w.Changed()
			time.Sleep(20 * time.Millisecond) // changes are gathered
			synctest.Wait()
		}
		if n := strings.Count(reader.read(), "tools/list_changed"); n < 90 || time.Since(start) > 3*time.Second {
			t.Errorf("who reads was told %d times of 100, in %v", n, time.Since(start))
		}
		time.Sleep(time.Minute)
		for i, x := range deaf {
			select {
			case <-x.ended:
			default:
				t.Errorf("client %d, which reads nothing, is still connected", i)
			}
		}
		reader.breaks()
		for _, s := range sessions {
			<-send(t, w, "DELETE", s, "").ended
		}
		w.close(t)
	})
}
