package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func bodyGateway(t *testing.T, cfg gateway.Config) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.WithoutCancel(t.Context())) })
	return g
}

// TestHalfBody: half a message and silence holds a connection for the time that a message
// may take, on every path and before every check, and not longer.
func TestHalfBody(t *testing.T) {
	g := bodyGateway(t, gateway.Config{Recorder: new(records), Limits: gateway.Limits{BodyTime: 300 * time.Millisecond}})
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	for name, request := range map[string]string{
		"a call":          "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
		"a foreign host":  "POST /mcp HTTP/1.1\r\nHost: evil.example\r\n",
		"foreign origin":  "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nOrigin: https://evil.example\r\n",
		"no such group":   "POST /mcp/none HTTP/1.1\r\nHost: " + addr + "\r\n",
		"no such path":    "POST /nothing HTTP/1.1\r\nHost: " + addr + "\r\n",
		"healthz":         "GET /healthz HTTP/1.1\r\nHost: " + addr + "\r\n",
		"delete":          "DELETE /mcp HTTP/1.1\r\nHost: " + addr + "\r\nMcp-Session-Id: x\r\n",
		"a chunked call":  "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
		"a large message": "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nX-Size: 3000000\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			length, half := "Content-Length: 5000\r\n", `{"jsonrpc":`
			switch {
			case strings.Contains(request, "chunked"):
				length, half = "", "b\r\n"+half+"\r\n"
			case strings.Contains(request, "X-Size"):
				length = "Content-Length: 3000000\r\n"
			}
			fmt.Fprint(c, request+length+"\r\n"+half)
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Fatal("neither an answer nor an end")
				}
				return // it was closed
			}
			defer resp.Body.Close()
			if _, err := r.Discard(1 << 20); err != nil { // the connection ends, too
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Errorf("%s, and the connection stays open", resp.Status)
				}
			}
		})
	}
}

// A message that comes in time is answered however long its call takes, and the
// connection is kept.
func TestBodyInTime(t *testing.T) {
	unraced.Long(t)
	timelimit.Grow(t, time.Second, func(limit time.Duration) error {
		srv := httptest.NewServer(bodyGateway(t, gateway.Config{Recorder: new(records), Limits: gateway.Limits{BodyTime: limit}}))
		defer srv.Close()
		for range 2 {
			resp, err := srv.Client().Post(srv.URL+"/healthz", "application/json", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			resp.Body.Close()
			time.Sleep(limit * 9 / 8) // longer than a body may take
		}
		return nil
	})
}

// While it drains a gateway is not healthy, so that balancers and supervisors send nothing more.
func TestDrainIsNotHealthy(t *testing.T) {
	g := bodyGateway(t, gateway.Config{Recorder: new(records)})
	if err := g.Operator().Healthy(); err != nil {
		t.Fatal(err)
	}
	if err := g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/healthz", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
