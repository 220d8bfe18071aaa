package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A poller is a server that ends the stream of an answer before it gives it. Each of
// its streams is begun at the event where the client says that it is.
type poller struct {
	*rig.Web
	resumed func(w http.ResponseWriter, id string)

	mu   sync.Mutex
	call string   // id of the request
	at   []string // where it was resumed
}

func newPoller(first string, resumed func(w http.ResponseWriter, id string)) *poller {
	p := &poller{resumed: resumed}
	p.Web = rig.EventServer(func(w io.Writer, id string) {
		p.mu.Lock()
		p.call = id
		p.mu.Unlock()
		io.WriteString(w, first)
	})
	return p
}

func (p *poller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.Header.Get("Last-Event-ID")
	if r.Method != http.MethodGet || at == "" {
		p.Web.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	p.at = append(p.at, at)
	id := p.call
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	p.resumed(w, id)
}

// The stream of an answer that ends early is taken up where it ended, as often as
// that brings something.
func TestHTTPResume(t *testing.T) {
	unraced.Long(t)
	const prime = "retry: 1\nid: e0\ndata: \n\n"
	answer := func(w io.Writer, id string) {
		fmt.Fprintf(w, "id: last\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, rig.Odd)
	}
	progress := func(w io.Writer, n int) {
		fmt.Fprintf(w, "id: e%d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", n)
	}
	steps := 0
	tests := map[string]struct {
		first   string
		resumed func(w http.ResponseWriter, id string)
		kind    string
		at      []string
	}{
		"the answer comes with the next stream": {prime, func(w http.ResponseWriter, id string) { answer(w, id) }, "ok", []string{"e0"}},
		"it comes after many streams, each with something new": {prime, func(w http.ResponseWriter, id string) {
			if steps++; steps < 8 {
				progress(w, steps)
				return
			}
			answer(w, id)
		}, "ok", []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"}},
		"nothing new comes": {prime, func(http.ResponseWriter, string) {}, "timeout", []string{"e0", "e0", "e0", "e0", "e0"}},
		"the server has forgotten the stream": {"id: e0\ndata: \n\n", func(w http.ResponseWriter, _ string) {
			w.WriteHeader(http.StatusBadRequest)
		}, "transport", []string{"e0"}},
		"the server does not say where it is": {"retry: 1\ndata: \n\n", nil, "timeout", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			timelimit.Grow(t, 3*time.Second, func(limit time.Duration) error {
				steps = 0
				p := newPoller(tt.first, tt.resumed)
				e, srv := rig.Dialled(t, p, func(c *options.Endpoint) { c.CallTimeout = limit })
				defer srv.Close()
				defer e.Close()
				res, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
				if rig.Kind(err) != tt.kind {
					return fmt.Errorf("%s, want %s: %w", rig.Kind(err), tt.kind, err)
				}
				if err == nil && res.Doc.String() != rig.Odd {
					return fmt.Errorf("the result is another: %s", res.Doc)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				if !slices.Equal(p.at, tt.at) {
					return fmt.Errorf("resumed at %q, want %q", p.at, tt.at)
				}
				return nil
			})
		})
	}
}
