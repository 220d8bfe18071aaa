package handover_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/app/handover"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	restarted   = "the gateway was restarted; the call may or may not have been carried out"
)

var errBroken = errors.New("the connection broke")

// A peer is a gateway as a client sees it: it answers each request with its own
// name, but those whose method is one of the following.
//
//	hang   is never answered
//	die    breaks the connection
//	tear   breaks the connection in the middle of an answer
//	die/list   breaks the connection of the first gateway
type peer struct {
	name  string
	mute  bool // it answers nothing
	heard []string
	eof   bool
}

func (p *peer) serve(_ context.Context, in io.Reader, out io.Writer) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		p.heard = append(p.heard, s.Text())
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(s.Bytes(), &m)
		switch {
		case m.Method == "die", m.Method == "die/list" && p.name == "first":
			return errBroken
		case m.Method == "tear":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"resu`, m.ID)
			return errBroken
		case p.mute || m.ID == nil || m.Method == "hang" || m.Method == "":
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%q}`+"\n", m.ID, p.name)
		}
	}
	p.eof = true
	return nil
}

// A person is what stands at the other end of a client: it says lines and
// collects what it hears.
type person struct {
	*handover.Client
	to *io.PipeWriter

	mu    sync.Mutex
	hears []string
}

// newPerson returns one whose lines have at most max bytes. It is used within a
// synctest bubble.
func newPerson(t *testing.T, max int64) *person {
	in, to := io.Pipe()
	from, out := io.Pipe()
	p := &person{Client: handover.New(in, out, max), to: to}
	go func() {
		for s := bufio.NewScanner(from); s.Scan(); {
			p.mu.Lock()
			p.hears = append(p.hears, s.Text())
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		to.Close()
		from.Close()
	})
	return p
}

func (p *person) say(lines ...string) {
	for _, l := range lines {
		go fmt.Fprintln(p.to, l) // it is read when somebody serves the client
		synctest.Wait()
	}
}

// heard returns what was heard since the last time.
func (p *person) heard() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hears
	p.hears = nil
	return h
}

func request(id, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q}`, id, method)
}

func result(id, from string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%q}`, id, from)
}

func failure(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`, id, text)
}

func TestClientIsServedByTheNextGateway(t *testing.T) {
	tests := map[string]struct {
		before  []string // said to the first gateway, which ends with it
		answers []string // in any order
		after   []string // said to the second
		then    []string // answers
		heard   []string // all that the second has heard
	}{
		"its own handshake is replayed, and not answered twice": {
			before:  []string{initialize, initialized, request("1", "tools/list"), request("2", "die")},
			answers: []string{result("0", "first"), result("1", "first"), failure("2", restarted)},
			after:   []string{request("3", "tools/list")},
			then:    []string{result("3", "second")},
			heard:   []string{initialize, initialized, request("3", "tools/list")},
		},
		"a client without a handshake has none to replay": {
			before:  []string{request(`"a"`, "tools/list"), request(`"b"`, "die")},
			answers: []string{result(`"a"`, "first"), failure(`"b"`, restarted)},
			after:   []string{request(`"b"`, "tools/list")},
			then:    []string{result(`"b"`, "second")},
			heard:   []string{request(`"b"`, "tools/list")},
		},
		"requests under way are answered, those that were cancelled are not": {
			before: []string{
				request("1", "hang"), request(`"1"`, "hang"), request("2.0", "hang"), request("3", "hang"),
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`, request("4", "die"),
			},
			answers: []string{failure("1", restarted), failure(`"1"`, restarted), failure("2.0", restarted), failure("4", restarted)},
			after:   []string{request("1", "tools/list")},
			then:    []string{result("1", "second")},
			heard:   []string{request("1", "tools/list")},
		},
		"a list is asked for again": {
			before:  []string{initialize, initialized, request("1", "hang"), request("2", "die/list")},
			answers: []string{result("0", "first"), failure("1", restarted)},
			after:   []string{request("3", "tools/list")},
			then:    []string{result("2", "second"), result("3", "second")},
			heard:   []string{initialize, initialized, request("2", "die/list"), request("3", "tools/list")},
		},
		"half an answer is none": {
			before:  []string{request("1", "tear")},
			answers: []string{failure("1", restarted)},
		},
		"what is not a message passes": {
			before: []string{"nonsense", "[]", request("1", "die")}, answers: []string{failure("1", restarted)},
			after: []string{"{}"}, heard: []string{"{}"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPerson(t, 1<<20)
				first, second := &peer{name: "first"}, &peer{name: "second"}
				var gone bool
				var err error
				serve := func(by *peer) {
					gone, err = p.Serve(t.Context(), by.serve)
				}
				go serve(first)
				p.say(tt.before...)
				got := p.heard()
				slices.Sort(got)
				slices.Sort(tt.answers)
				if diff := cmp.Diff(tt.answers, got); diff != "" {
					t.Error(diff)
				}
				if gone || !errors.Is(err, errBroken) {
					t.Fatalf("gone %v, error %v, want the gateway's", gone, err)
				}

				go serve(second)
				p.say(tt.after...)
				if diff := cmp.Diff(tt.then, p.heard()); diff != "" {
					t.Error(diff)
				}
				p.to.Close()
				synctest.Wait()
				if diff := cmp.Diff(tt.heard, second.heard); diff != "" {
					t.Error(diff)
				}
				if !gone || err != nil || !second.eof {
					t.Errorf("gone %v, error %v, the gateway saw the end: %v", gone, err, second.eof)
				}
			})
		})
	}
}

// The client has not seen an answer to its handshake when the first gateway
// ends: it sees the second one's, once.
func TestHandshakeUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPerson(t, 1<<20)
		go func() {
			for _, by := range []*peer{{mute: true}, {name: "second"}, {name: "third"}} {
				if gone, _ := p.Serve(t.Context(), by.serve); gone {
					return
				}
			}
		}()
		p.say(initialize, request("1", "die"))
		p.say(initialized, request("2", "die"))
		p.say(request("3", "tools/list"))
		want := []string{failure("1", restarted), result("0", "second"), failure("2", restarted), result("3", "third")}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
		p.to.Close()
		synctest.Wait()
	})
}

func TestGatewayThatDoesNotAnswerTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPerson(t, 1<<20)
		var ended time.Duration
		go func() {
			_, _ = p.Serve(t.Context(), new(peer).serve)
			began := time.Now()
			gone, err := p.Serve(t.Context(), (&peer{mute: true}).serve)
			ended = time.Since(began)
			if gone || err != nil {
				t.Errorf("gone %v, error %v", gone, err)
			}
		}()
		p.say(initialize, request("1", "die"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if ended != 10*time.Second {
			t.Errorf("given up after %v, want 10s", ended)
		}
	})
}

func TestClientWithTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPerson(t, 1<<20)
		by := &peer{}
		go func() { _, _ = p.Serve(t.Context(), by.serve) }()
		for i := range 1025 {
			p.say(request(fmt.Sprint(i), "hang"))
		}
		if diff := cmp.Diff([]string{failure("1024", "too many requests are under way")}, p.heard()); diff != "" {
			t.Error(diff)
		}
		if len(by.heard) != 1024 {
			t.Errorf("%d requests passed", len(by.heard))
		}
		p.to.Close()
		synctest.Wait()
	})
}

func TestClientThatIsGone(t *testing.T) {
	tests := map[string]struct {
		leave func(p *person)
		err   string
	}{
		"it has ended":            {func(p *person) { p.to.Close() }, ""},
		"it says a line too long": {func(p *person) { p.say(`{"a":"` + strings.Repeat("a", 100) + `"}`) }, "more than 100 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPerson(t, 100)
				by := &peer{}
				var gone bool
				var err error
				go func() { gone, err = p.Serve(t.Context(), by.serve) }()
				tt.leave(p)
				synctest.Wait()
				if !gone || !by.eof || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("gone %v, error %v, the gateway saw the end: %v", gone, err, by.eof)
				}
			})
		})
	}
	t.Run("it does not read any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			in, to := io.Pipe()
			defer to.Close()
			c := handover.New(in, brokenWriter{}, 100)
			by := &peer{}
			go fmt.Fprintln(to, request("1", "tools/list"))
			if gone, err := c.Serve(t.Context(), by.serve); !gone || err != nil {
				t.Errorf("gone %v, error %v", gone, err)
			}
		})
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
