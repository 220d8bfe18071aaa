package bridge_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge"
)

func TestCancellationReachesServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"tools/call": "-"})
		e := ready(t, s.config("s"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := do(ctx, t, e, "s__echo", "{}"); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || kind(err) != "cancelled" {
			t.Errorf("the caller got %v", err)
		}
		synctest.Wait()
		if s.count("notifications/cancelled 3") != 1 { // after initialize and tools/list
			t.Errorf("the server saw %v", s.seen)
		}
		if e.Phase() != bridge.Ready {
			t.Errorf("phase %s", e.Phase())
		}
		e.Close()
	})
}

// TestReconnect: an endpoint connects again by itself, and calls wait for that: at once if
// it had worked for a while, else after a pause, and not for longer than five seconds.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil)
		e := ready(t, s.config("s"))
		time.Sleep(time.Minute)
		s.cut(nil)
		synctest.Wait()
		if got := e.Phase(); got != bridge.Ready {
			t.Errorf("phase %s: no attempt at once after a minute of work", got)
		}
		s.cut(nil)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.dials != 3 || s.count("tools/call") != 10 {
			t.Errorf("%d dials, %d calls", s.dials, s.count("tools/call"))
		}
		s.answer("initialize", "-")
		s.cut(nil)
		synctest.Wait()
		before := time.Now()
		if _, err := do(t.Context(), t, e, "s__echo", "{}"); kind(err) != "not_connected" || time.Since(before) != 5*time.Second {
			t.Errorf("while connecting hangs: %v after %v", err, time.Since(before))
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := do(short, t, e, "s__echo", "{}"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller with a deadline of its own: %v", err)
		}
		e.Close()
	})
}

// TestCloseInEveryPhase closes twice and concurrently.
func TestCloseInEveryPhase(t *testing.T) {
	tests := map[string]struct {
		cfg     bridge.EndpointConfig
		connect bool
		phase   bridge.Phase
	}{
		"idle":             {newScript(nil).config("s"), false, bridge.Idle},
		"connecting":       {newScript(map[string]string{"initialize": "-"}).config("s"), true, bridge.Connecting},
		"ready":            {newScript(nil).config("s"), true, bridge.Ready},
		"faulted":          {bridge.EndpointConfig{Server: "s", Broken: "so"}, true, bridge.Faulted},
		"child ready":      {child("honest"), true, bridge.Ready},
		"child connecting": {child("mute"), true, bridge.Connecting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			tt.cfg.Tools = options()
			e := newEndpoint(t, tt.cfg)
			var opening sync.WaitGroup
			if tt.connect {
				opening.Go(func() { _ = e.Connect(t.Context()) })
			}
			for e.Phase() != tt.phase {
				time.Sleep(time.Millisecond)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					e.Close()
					if e.Phase() != bridge.Closed {
						t.Errorf("Close returned in phase %s", e.Phase())
					}
				})
			}
			wg.Wait()
			opening.Wait()
			if err := e.Connect(t.Context()); kind(err) != "not_connected" {
				t.Errorf("connect after Close: %v", err)
			}
		})
	}
}

// TestServerEndsAtOnce: a connection that ends right after the listing leaves no
// endpoint that looks ready.
func TestServerEndsAtOnce(t *testing.T) {
	for range 200 {
		s := newScript(nil)
		cfg := s.config("s")
		e := newEndpoint(t, cfg)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for s.count("tools/list") == 0 {
				select {
				case <-stop:
					return
				default:
				}
			}
			s.cut(nil)
		})
		_ = e.Connect(t.Context())
		close(stop)
		wg.Wait()
		s.cut(io.EOF) // or it would be connected again before anybody looks
		for i := 0; e.Phase() != bridge.Faulted; i++ {
			if i == 1000 {
				t.Fatalf("phase %s of a dead connection", e.Phase())
			}
			time.Sleep(time.Millisecond)
		}
		e.Close()
	}
}

// TestRelist: a listing is read again when the server says so, and no more often
// than once a second however often it does.
func TestRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil)
		var changes atomic.Int32
		f, err := bridge.NewFleet(bridge.FleetConfig{Servers: []bridge.EndpointConfig{s.config("s")}})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Watch(func() { changes.Add(1) })
		s.list(echoTool + `,{"name":"new","inputSchema":{"type":"object"}}`)
		for range 10_000 {
			s.tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := s.count("tools/list"); n < 3 || n > 13 {
			t.Errorf("%d listings in 10 s", n)
		}
		if len(f.Tools(t.Context())) != 2 {
			t.Error("the new tool is not offered")
		}
		if changes.Load() != 1 {
			t.Errorf("%d changes told of one", changes.Load())
		}
	})
}

// TestServerAsks: a server's own requests are answered, and a flood of them
// blocks nothing.
func TestServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil)
		e := ready(t, s.config("s"))
		for i := range 1000 {
			id, _ := jsonrpc.MakeID(float64(i))
			s.tell(&jsonrpc.Request{ID: id, Method: "ping"})
		}
		id, _ := jsonrpc.MakeID(strings.Repeat("x", 1000))
		s.tell(&jsonrpc.Request{ID: id, Method: "roots/list"})
		if _, err := do(t.Context(), t, e, "s__echo", "{}"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.count("answer 0") != 1 || s.count("answer "+strings.Repeat("x", 1000)) != 0 {
			t.Errorf("%d answers to the first ping", s.count("answer 0"))
		}
		e.Close()
	})
}

func TestEndpointConfig(t *testing.T) {
	tests := map[string]bridge.EndpointConfig{
		"no way":            {Server: "s"},
		"two ways":          {Server: "s", Command: "x", URL: "http://x/"},
		"a bad id":          {Server: "a_b", Command: "x"},
		"a bad URL":         {Server: "s", URL: "ftp://x/"},
		"no host":           {Server: "s", URL: "http:///x"},
		"no such transport": {Server: "s", URL: "http://x/", Transport: "carrier-pigeon"},
		"a negative limit":  {Server: "s", Command: "x", MaxMessage: -1},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			cfg.Tools = options()
			if _, err := bridge.NewEndpoint(cfg); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := bridge.NewEndpoint(bridge.EndpointConfig{Server: "s", Command: "x"}); err == nil {
		t.Error("no error without a sanitizer")
	}
}
