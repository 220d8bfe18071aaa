package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// slowly returns a server that connects only after a while.
func slowly(s *rig.Script, id string, after time.Duration) options.Endpoint {
	c := s.Config(id)
	c.ConnectTimeout = time.Hour
	c.Dial = func() (sdk.Transport, error) {
		time.Sleep(after)
		return s.Dial()
	}
	return c
}

// never is how long a server takes that never starts: longer than any test looks.
const never = 30 * time.Minute

// took returns how long f takes by the clock of a bubble, and what can be listed then.
func took(t *testing.T, f *fleet.Fleet, one gate.Feature) (time.Duration, []string) {
	began := time.Now()
	var names []string
	for _, tool := range f.Features(t.Context(), one) {
		names = append(names, tool.Offered)
	}
	return time.Since(began), names
}

// TestListingsWait: all listings together wait once for servers that were never listed.
func TestListingsWait(t *testing.T) {
	tests := map[string]struct {
		servers map[string]time.Duration // how long they take to start
		pause   time.Duration            // before the first listing
		first   time.Duration            // how long that takes
		tools   []string                 // that it has
	}{
		"all ready":                {map[string]time.Duration{"a": 0, "b": 0}, time.Second, 0, []string{"a__echo", "b__echo"}},
		"one never, one ready":     {map[string]time.Duration{"a": 0, "b": never}, time.Minute, time.Second, []string{"a__echo"}},
		"one never, one comes":     {map[string]time.Duration{"a": 300 * time.Millisecond, "b": never}, 0, time.Second, []string{"a__echo"}},
		"one after a while":        {map[string]time.Duration{"a": 0, "b": 600 * time.Millisecond}, 0, 600 * time.Millisecond, []string{"a__echo", "b__echo"}},
		"alone, after six seconds": {map[string]time.Duration{"a": 6 * time.Second}, 0, 6 * time.Second, []string{"a__echo"}},
		"alone, never":             {map[string]time.Duration{"a": never}, 0, 8 * time.Second, nil},
		"two, one takes a while":   {map[string]time.Duration{"a": 3 * time.Second, "b": never}, 0, 3 * time.Second, []string{"a__echo"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cfg fleet.Config
				for _, id := range []string{"a", "b"} {
					if after, ok := tt.servers[id]; ok {
						cfg.Servers = append(cfg.Servers, slowly(rig.NewScript(nil), id, after))
					}
				}
				f := rig.NewFleet(t, cfg)
				f.Start(t.Context())
				time.Sleep(tt.pause)
				var wg sync.WaitGroup
				for _, one := range []gate.Feature{gate.FeaturePrompt, gate.FeatureResource} { // at the same time
					wg.Go(func() { took(t, f, one) })
				}
				d, tools := took(t, f, gate.FeatureTool)
				if d != tt.first || !slices.Equal(tools, tt.tools) {
					t.Errorf("the first listing took %s and has %q", d, tools)
				}
				wg.Wait()
				for _, one := range []gate.Feature{gate.FeatureTool, gate.FeaturePrompt, gate.FeatureResource, gate.FeatureTemplate} {
					if d, _ := took(t, f, one); d != 0 {
						t.Errorf("another listing (%q) took %s", one, d)
					}
				}
				began := time.Now()
				if _, err := f.Lookup(t.Context(), gate.CallTool, "other__tool"); gate.Code(err) == "ok" || time.Since(began) != 0 {
					t.Errorf("an unknown name: %v after %s", err, time.Since(began))
				}
				f.Close()
			})
		})
	}
}

// TestLaterServersAreWaitedFor: a server that comes at run time has a wait of its own, and its
// own tools are announced.
func TestLaterServersAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{slowly(rig.NewScript(nil), "a", 0), slowly(rig.NewScript(nil), "b", never)}})
		f.Start(t.Context())
		took(t, f, gate.FeatureTool)
		go func() { _ = f.Add(t.Context(), slowly(rig.NewScript(nil), "c", 2*time.Second)) }()
		synctest.Wait()
		announced := make(chan struct{}, 100)
		f.Watch(func(l status.Lists) {
			if l.Tools {
				announced <- struct{}{}
			}
		})
		if d, tools := took(t, f, gate.FeatureTool); d != time.Second || !slices.Equal(tools, []string{"a__echo"}) {
			t.Errorf("%s, %q", d, tools)
		}
		<-announced
		if d, tools := took(t, f, gate.FeatureTool); d != 0 || !slices.Equal(tools, []string{"a__echo", "c__echo"}) {
			t.Errorf("%s, %q", d, tools)
		}
		f.Close()
	})
}

// kept is a memory of the test.
type kept struct {
	mu sync.Mutex
	by map[string]listings.Listing
}

func (k *kept) Recall(server, config string) (listings.Listing, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, ok := k.by[server]
	return l, ok && l.Config == config
}

func (k *kept) Keep(server string, l listings.Listing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.by[server] = l
}

// all is a server with one of each feature.
func all() *rig.Script {
	return rig.NewScript(map[string]string{
		"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{"subscribe":true},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"use it well"}`,
		"prompts/list":             `{"prompts":[{"name":"p"}]}`,
		"resources/list":           `{"resources":[{"uri":"x://r","name":"r"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"x://t/{v}","name":"t"}]}`,
	})
}

// TestLastListing: in the next run what a server listed last is offered while it starts, and
// what is called of it waits for the start.
func TestLastListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, pins := &kept{by: map[string]listings.Listing{}}, &rig.Pins{Approved: []string{"echo", "p", "x://t/{v}", "s instructions"}}
		s := all()
		cfg := fleet.Config{Pins: pins, Memory: memory, Servers: []options.Endpoint{slowly(s, "s", time.Second)}}
		f := rig.Connected(t, cfg)
		s.List(rig.EchoTool + `,{"name":"unapproved","inputSchema":{"type":"object"}}`)
		if err := f.Reload(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		f.Close()

		again := all()
		again.List(rig.EchoTool)
		cfg.Servers = []options.Endpoint{slowly(again, "s", 10*time.Minute), slowly(rig.NewScript(nil), "t", never)}
		f = rig.NewFleet(t, cfg)
		f.Start(t.Context())
		synctest.Wait()
		for one, want := range map[gate.Feature]string{gate.FeatureTool: "[s__echo s__unapproved]", gate.FeaturePrompt: "[s__p]", gate.FeatureResource: "[x://r]", gate.FeatureTemplate: "[x://t/{v}]"} {
			if _, got := took(t, f, one); fmt.Sprint(got) != want {
				t.Errorf("%q: %q, want %s", one, got, want)
			}
		}
		if o := f.Offering(t.Context()); !o.Prompts || !o.Updates {
			t.Errorf("offering %+v", o)
		}
		if said := f.Instructions(); len(said) != 1 || said[0].Text != "use it well" {
			t.Errorf("instructions %+v", said)
		}
		g, _ := rig.NewGate(t, f)
		began := time.Now()
		if _, err := g.Do(t.Context(), rig.NewCall("s__echo", "{}")); err != nil || time.Since(began) < 9*time.Minute || again.Count("tools/call") != 1 {
			t.Errorf("a call while it starts: %v after %s", err, time.Since(began))
		}
		if _, got := took(t, f, gate.FeatureTool); fmt.Sprint(got) != "[s__echo]" {
			t.Errorf("once it has started: %q", got)
		}
		f.Close()
	})
}

// TestLastListingIsHeld: what was listed last is no promise. A tool that has changed is not
// called, another configuration recalls nothing, and a client that gives up is answered.
func TestLastListingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &kept{by: map[string]listings.Listing{}}
		cfg := fleet.Config{Memory: memory, Servers: []options.Endpoint{rig.NewScript(nil).Config("s")}}
		rig.Connected(t, cfg).Close()

		other := rig.NewScript(nil)
		other.List(`{"name":"echo","description":"another","inputSchema":{"type":"object"}}`)
		cfg.Servers = []options.Endpoint{slowly(other, "s", time.Minute)}
		f := rig.NewFleet(t, cfg)
		f.Start(t.Context())
		synctest.Wait()
		g, _ := rig.NewGate(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := g.Do(ctx, rig.NewCall("s__echo", "{}")); gate.Code(err) != "cancelled" && gate.Code(err) != "timeout" {
			t.Errorf("a client that gives up: %v", err)
		}
		cancel()
		if _, err := g.Do(t.Context(), rig.NewCall("s__echo", "{}")); rig.Kind(err) != "not_connected" || other.Count("tools/call") != 0 {
			t.Errorf("a tool that has changed: %v", err)
		}
		f.Close()

		cfg.Servers[0].Tools.Config = "another"
		f = rig.NewFleet(t, cfg)
		f.Start(t.Context())
		synctest.Wait()
		if tools := f.KnownFeatures(gate.FeatureTool); len(tools) != 0 {
			t.Errorf("with another configuration: %v", tools)
		}
		f.Close()
	})
}

// TestNameOfAStartingServer: a name with the id of a server that starts is not unknown.
func TestNameOfAStartingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{slowly(rig.NewScript(nil), "a", 0), slowly(rig.NewScript(nil), "s", never)}})
		f.Start(t.Context())
		g, _ := rig.NewGate(t, f)
		for _, call := range []gate.Call{rig.NewCall("s__x", "{}"), {Action: gate.GetPrompt, Name: "s__x", Args: gate.MustDoc("{}"), Who: gate.Local()}} {
			if _, err := g.Do(t.Context(), call); rig.Kind(err) != "not_connected" {
				t.Errorf("%s: %v", call.Action, err)
			}
		}
		if _, err := g.Do(t.Context(), rig.NewCall("a__x", "{}")); gate.Code(err) != "refused_lookup" {
			t.Errorf("a name that a ready server does not have: %v", err)
		}
		f.Close()
	})
}
