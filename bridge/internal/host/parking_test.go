package host_test

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/gate"
)

const answers = `{"ask-1":{"action":"accept","content":{"name":"Ada"}}}`

// At the limit the call whose client has not come back for the longest time makes room, once it has
// waited for its grace. Its client gets an error that it has ended.
func TestParkedMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := offline(t, host.Config{Config: dispatch.Config{ParkIdle: 20 * time.Second}}) // a grace of a second
		park := func() string {
			t.Helper()
			got := x.calls(t, "form", "", "")
			if got.At("/result/resultType").Text() != "input_required" {
				t.Fatalf("got %s", got)
			}
			return got.At("/result/requestState").Text()
		}
		first, second := park(), park()
		time.Sleep(5 * time.Millisecond)
		if got := x.calls(t, "form", first, ""); got.At("/result/resultType").Text() != "input_required" { // it has come back
			t.Fatalf("got %s", got)
		}
		for range 62 {
			park()
		}
		if got := x.calls(t, "form", "", "").At("/result/content/0/text").Text(); !strings.Contains(got, "this principal has 64") {
			t.Errorf("nobody has waited for long, and one too many got %q", got)
		}
		<-x.over
		time.Sleep(1100 * time.Millisecond)
		park()
		if err := <-x.over; err == nil {
			t.Error("the server of the call that makes room has an answer")
		}
		if got := x.calls(t, "form", second, answers).At("/error/message").Text(); !strings.Contains(got, "has ended") {
			t.Errorf("the one that waited for the longest time got %q", got)
		}
		if got := x.calls(t, "form", first, answers).At("/result/content/0/text").Text(); got != "Ada" {
			t.Errorf("another one has ended: %q", got)
		}
		waitUntil(t, func() bool {
			return slices.ContainsFunc(x.recorded(), func(r gate.Record) bool { return r.Event == gate.Done && r.Code == "cancelled" })
		})
		if err := x.host.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lineClient is a client without a session on a connection of its own.
type lineClient struct {
	in   io.WriteCloser
	out  *bufio.Scanner
	left chan struct{}
	last int
}

func (x *asking) line(t *testing.T) *lineClient {
	in, toHost := io.Pipe()
	fromHost, out := io.Pipe()
	c := &lineClient{in: toHost, out: bufio.NewScanner(fromHost), left: make(chan struct{})}
	go func() {
		_ = x.host.Serve(t.Context(), gate.Local(), in, out)
		close(c.left)
	}()
	t.Cleanup(func() { c.leave() })
	return c
}

func (c *lineClient) call(t *testing.T, name string) gate.Doc {
	t.Helper()
	c.last++
	_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"local__%s","arguments":{},%s}}`+"\n", c.last, name, canElicit)
	if err != nil || !c.out.Scan() {
		t.Fatal(err, c.out.Err())
	}
	return gate.MustDoc(c.out.Text())
}

func (c *lineClient) leave() {
	c.in.Close()
	<-c.left
}

// A client with a connection of its own does not keep others from waiting, and its calls end with
// the connection.
func TestParkedOfAConnection(t *testing.T) {
	x := newAsking(t, host.Config{})
	greedy, other := x.line(t), x.line(t)
	for range 16 {
		if got := greedy.call(t, "form"); got.At("/result/resultType").Text() != "input_required" {
			t.Fatalf("got %s", got)
		}
	}
	if got := greedy.call(t, "form").At("/result/content/0/text").Text(); !strings.Contains(got, "this client has 16") {
		t.Errorf("one too many: %q", got)
	}
	<-x.over
	for name, got := range map[string]gate.Doc{"on a connection": other.call(t, "form"), "over HTTP": x.calls(t, "form", "", "")} {
		if got.At("/result/resultType").Text() != "input_required" {
			t.Errorf("another client %s got %s", name, got)
		}
	}
	greedy.leave()
	for range 16 {
		if err := <-x.over; err == nil {
			t.Error("the server of a call whose client has gone has an answer")
		}
	}
}
