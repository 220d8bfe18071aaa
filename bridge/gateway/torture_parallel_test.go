package gateway_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestTortureParallel: of thousands of calls at once those beyond the limits are
// refused, and say so; another client is served meanwhile.
func TestTortureParallel(t *testing.T) {
	unraced.Long(t)
	const waits = `"name":"f__waits","arguments":{},$m`
	overHTTP := func(era string) func(*testing.T, *tortured, func(string, error)) {
		return func(t *testing.T, tt *tortured, answered func(string, error)) {
			const calls, atOnce = 600, 128 // connections
			c := tt.client(t, era)
			var left atomic.Int64
			left.Store(calls)
			var wg sync.WaitGroup
			for range atOnce {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						_, answer, err := c.do(t.Context(), misdeed{body: req("$", "tools/call", waits)})
						answered(answer, err)
					}
				})
			}
			wg.Wait()
		}
	}
	ways := map[string]func(t *testing.T, tt *tortured, answered func(string, error)){
		"HTTP, sessions": overHTTP(older), "HTTP, stateless": overHTTP(newer),
		"stdio, ten thousand": func(t *testing.T, tt *tortured, answered func(string, error)) {
			const calls = 10_000
			c := tt.lines(t)
			defer c.close(t)
			go func() {
				for i := range calls {
					_, _ = io.WriteString(c.in, req(strconv.Itoa(i+1), "tools/call", strings.TrimSuffix(waits, ",$m"))+"\n") // the answers that lack say so
				}
			}()
			for range calls {
				answered(c.out.ReadString('\n'))
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			tt := torture(t)
			other := tt.client(t, older)
			before := runtime.NumGoroutine()
			var ok, busy atomic.Int64
			var others sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			met := make(chan struct{}) // closed when the limit has been met
			meets := sync.OnceFunc(func() { close(met) })
			others.Go(func() { // then places become free, a few at a time
				select {
				case <-met:
				case <-ctx.Done():
				}
				for i := 0; ; i++ {
					select {
					case tt.let <- struct{}{}:
					case <-ctx.Done():
						return
					}
					if i%16 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
			others.Go(func() {
				select {
				case <-met:
				case <-ctx.Done():
				}
				for range 20 { // it takes its turn, and does not wait for theirs
					if err := other.well(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
			way(t, tt, func(answer string, err error) {
				switch {
				case err == nil && strings.Contains(answer, `"text":"done"`):
					ok.Add(1)
				case err == nil && strings.Contains(answer, `"code":"refused_busy"`) && strings.Contains(answer, "as many calls under way as it may have at once"):
					busy.Add(1)
					meets()
				default:
					t.Errorf("%.300s, %v", answer, err)
				}
			})
			stop()
			others.Wait()
			if ok.Load() == 0 || busy.Load() == 0 {
				t.Error("the limit was not met, or nothing else")
			}
			t.Logf("%d carried out, %d refused", ok.Load(), busy.Load())
			other.http.CloseIdleConnections()
			for end := time.Now().Add(patience); time.Now().Before(end); {
				if runtime.NumGoroutine() <= before+2*128 { // the connections of idle clients
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		})
	}
}

// TestTortureSlowSenders: clients that begin a request and do not go on do not hold up others.
func TestTortureSlowSenders(t *testing.T) {
	unraced.Long(t)
	tt := torture(t)
	c := tt.client(t, newer)
	where, err := url.Parse(tt.url)
	if err != nil {
		t.Fatal(err)
	}
	var dialer net.Dialer
	for _, begun := range []string{"PO", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"} {
		for range 100 {
			conn, err := dialer.DialContext(t.Context(), "tcp", where.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, begun); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.well(t.Context()); err != nil {
		t.Error(err)
	}
}
