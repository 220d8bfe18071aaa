package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A keeping server says for how long its listings can be kept, and counts them.
type keeping struct {
	*sdk.Server
	lists atomic.Int64
}

func newKeeping(ttl time.Duration, tells bool) *keeping {
	k := &keeping{Server: sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: tells}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.TTLMs = int(ttl.Milliseconds()) },
	})}
	k.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "tools/list" {
				k.lists.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	rig.AddTool(k.Server, "one")
	return k
}

func (k *keeping) config(t *testing.T, server, protocol string) options.Endpoint {
	return options.Endpoint{Server: server, Protocol: protocol, Tools: rig.Options(), Dial: func() (sdk.Transport, error) {
		a, b := sdk.NewInMemoryTransports()
		_, err := k.Connect(context.WithoutCancel(t.Context()), a, nil)
		return b, err
	}}
}

// keepers returns a fleet of servers, which is closed before the test is over.
func keepers(t *testing.T, servers ...options.Endpoint) *fleet.Fleet {
	t.Helper()
	f := rig.NewFleet(t, fleet.Config{Servers: servers})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// A listing of the gateway is good for no longer than the shortest of its servers'.
func TestFresh(t *testing.T) {
	tests := map[string]struct {
		ttls  []time.Duration // of servers; a negative one is of an older revision
		fresh time.Duration   // at first
	}{
		"nobody says anything":              {nil, 0},
		"one says":                          {[]time.Duration{30 * time.Second}, 30 * time.Second},
		"the shortest counts":               {[]time.Duration{30 * time.Second, 10 * time.Second}, 10 * time.Second},
		"one is not to be kept":             {[]time.Duration{30 * time.Second, 0}, 0},
		"one cannot say":                    {[]time.Duration{30 * time.Second, -1}, 0},
		"no longer than grants are to last": {[]time.Duration{time.Hour}, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var servers []options.Endpoint
				for i, ttl := range tt.ttls {
					protocol := mcp.Stateless
					if ttl < 0 {
						protocol = mcp.Revision
					}
					servers = append(servers, newKeeping(ttl, true).config(t, string(rune('a'+i)), protocol))
				}
				f := keepers(t, servers...)
				fresh := func(want time.Duration) {
					t.Helper()
					if got := f.Fresh(gate.FeatureTool); got > want || got < want-2*time.Second { // connecting takes its time
						t.Errorf("fresh for %v, want %v", got, want)
					}
				}
				fresh(tt.fresh)
				if tt.fresh > 0 && tt.fresh < time.Minute {
					time.Sleep(7 * time.Second)
					fresh(tt.fresh - 7*time.Second)
					time.Sleep(time.Minute)
					fresh(0)
				}
				if got := f.Fresh(gate.FeaturePrompt); got != 0 {
					t.Errorf("what nobody has is fresh for %v", got)
				}
				f.Close()
			})
		})
	}
}

// A server that does not tell what changes is listed anew when its listing can be kept no
// more: by itself if there is such a time, and otherwise when somebody lists; not more
// often than every few seconds, and never one that tells.
func TestRelistedWhenStale(t *testing.T) {
	unraced.Long(t)
	for name, tt := range map[string]struct {
		ttl    time.Duration
		tells  bool
		alone  int64 // listings in 5 minutes in which no client lists
		listed int64 // in 5 minutes in which somebody lists all the time
		known  int   // tools that are known in the end, of two
	}{
		"for a minute":                {time.Minute, false, 5, 5, 2},
		"for less than a few seconds": {time.Second, false, 60, 60, 2},
		"for no time":                 {0, false, 0, 60, 2},
		"one that tells":              {time.Minute, true, 0, 0, 2},
		"one that tells, for no time": {0, true, 0, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeeping(tt.ttl, tt.tells)
				f := keepers(t, k.config(t, "s", mcp.Stateless))
				began := k.lists.Load()
				time.Sleep(5 * time.Minute)
				if got := k.lists.Load() - began; got > tt.alone || got < tt.alone*3/4 {
					t.Errorf("%d listings while nobody asks, want about %d", got, tt.alone)
				}
				began = k.lists.Load()
				for range 5 * 60 {
					time.Sleep(time.Second)
					f.Tools(t.Context())
				}
				if got := k.lists.Load() - began; got > tt.listed || got < tt.listed*3/4 {
					t.Errorf("%d listings while somebody asks, want about %d", got, tt.listed)
				}
				rig.AddTool(k.Server, "two")
				time.Sleep(2 * time.Minute)
				if got := len(f.Tools(t.Context())); got != tt.known {
					t.Errorf("%d tools in the end", got)
				}
				f.Close()
			})
		})
	}
}

// Each client without a session learns how long it can keep its listing.
func TestListingsAreFresh(t *testing.T) {
	d := newDesk(t, host.Config{
		Config: dispatch.Config{
			Fresh: func(f gate.Feature) time.Duration {
				if f != gate.FeatureTool {
					return 0
				}
				return 1500 * time.Millisecond
			},
		},
	})
	resp, err := rig.Post(t.Context(), d.url, rig.Newest, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+rig.Newest+`","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := gate.MustDoc(rig.AnswerOf(t, resp)).Get("result")
	if got.Get("ttlMs").String() != "1500" || got.Get("cacheScope").Text() != "private" {
		t.Errorf("got %s", got)
	}
}
