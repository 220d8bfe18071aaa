package gateway_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// decidedBy keeps, of each call that has ended, the snapshot and what decided it.
type decidedBy struct {
	mu  sync.Mutex
	all []string
}

func (d *decidedBy) Record(_ context.Context, r *gate.Record) error {
	if r.Event == gate.Done {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, fmt.Sprintf("%s: policy %s, %d changed", r.Snapshot, r.Decision.Revision, len(r.Findings)))
	}
	return nil
}

// configured is a configuration by a name, with the profile for texts and the policy that
// come with it.
func configured(name, profile, server string, packs ...string) (gateway.Config, *gateway.Policy) {
	p := granting("f__*")
	p.Options.Packs = append([]string{"grants"}, packs...)
	next := gateway.Config{Snapshot: name, Sanitize: clean.Sanitize{Profile: profile}}
	if server != "" {
		next.Sanitize.Servers = map[string]string{"other": server}
	}
	return next, &p
}

// TestSnapshotIsWhatDecided: whenever the configuration changes, a record names exactly the one by
// which its call was decided and its result sanitized.
func TestSnapshotIsWhatDecided(t *testing.T) {
	unraced.Long(t)
	var seen decidedBy
	says := tool("says", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		return text("a <script>alert(1)</script> b"), nil
	})
	cfg, p := configured("off", "off", "")
	cfg.Recorder, cfg.Policy, cfg.Functions = &seen, *p, map[string][]options.LocalTool{"f": {says}}
	g := start(t, cfg)
	revisions := map[string]string{"off": g.Operator().Policy().Revision()}
	var calls sync.WaitGroup
	stop := make(chan bool)
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := call(g, "f__says", "{}"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 20 {
		name, profile, packs := "off", "off", []string(nil)
		if i%2 == 0 {
			name, profile, packs = "strict", "strict", []string{"ratelimit"}
		}
		next, p := configured(name, profile, "", packs...)
		if err := g.Reconfigure(t.Context(), next, p); err != nil {
			t.Fatal(err)
		}
		revisions[name] = g.Operator().Policy().Revision()
	}
	close(stop)
	calls.Wait()
	if revisions["off"] == revisions["strict"] {
		t.Fatal("both policies are one")
	}
	names := map[string]int{}
	for _, got := range seen.all {
		name, _, _ := strings.Cut(got, ":")
		names[name]++
		changed := 0
		if name == "strict" {
			changed = 1
		}
		if want := fmt.Sprintf("%s: policy %s, %d changed", name, revisions[name], changed); got != want {
			t.Errorf("recorded %q, want %q", got, want)
		}
	}
	if len(names) != 2 {
		t.Errorf("calls under one configuration alone: %v", names)
	}
}

// TestReconfigureRefuses what does not hold together, and leaves all as it was.
func TestReconfigureRefuses(t *testing.T) {
	var seen decidedBy
	cfg, p := configured("one", "text", "")
	cfg.Recorder, cfg.Policy, cfg.Functions = &seen, *p, map[string][]options.LocalTool{"f": {tool("t", nil)}}
	g := start(t, cfg)
	revision := g.Operator().Policy().Revision()
	broken := gateway.Policy{Options: policy.Options{Packs: []string{"no-such-pack"}}}
	for says, tt := range map[string]struct {
		profile, server string
		secrets         clean.SecretRules
		p               *gateway.Policy
		approvals       *approval.Options
	}{
		`unknown profile "loose"`:      {profile: "loose"},
		`unknown profile "looser"`:     {profile: "strict", server: "looser"},
		"secrets":                      {profile: "strict", secrets: clean.SecretRules{Skip: []string{"no-such-rule"}}},
		"no-such-pack":                 {profile: "strict", p: &broken},
		"approvals cannot be switched": {profile: "strict", approvals: &approval.Options{}},
	} {
		next, _ := configured("two", tt.profile, tt.server)
		next.Sanitize.Secrets, next.Approvals, next.Limits.Body = tt.secrets, tt.approvals, 1
		if err := g.Reconfigure(t.Context(), next, tt.p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		if _, err := call(g, "f__t", `{"text":"a <script>b</script>"}`); err != nil {
			t.Error(err)
		}
	}
	for _, got := range seen.all {
		if want := "one: policy " + revision + ", 1 changed"; got != want {
			t.Errorf("recorded %q, want %q", got, want)
		}
	}
}

// TestListsAreMadeSafeAnew when texts are: of servers and of tools in the process.
func TestListsAreMadeSafeAnew(t *testing.T) {
	own := tool("t", nil)
	own.Definition = own.Definition.With("description", []byte(`"see https://evil.example/?q=1 ![x](https://evil.example/i.png)"`))
	cfg, p := configured("one", "text", "")
	cfg.Recorder, cfg.Policy, cfg.Functions = new(records), *p, map[string][]options.LocalTool{"f": {own}}
	g := start(t, cfg)
	described := func() string { return g.Fleet().Tools(t.Context())[0].Definition.Get("description").Text() }
	before := described()
	next, _ := configured("two", "text", "")
	next.Sanitize.Links = []string{"https://evil.example"}
	if err := g.Reconfigure(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	if after := described(); after == before {
		t.Errorf("listed as before: %q", after)
	}
}

// TestApprovalOverChanges: an approval holds over a change of what it is not bound to, and
// not over one of its tool's module or server.
func TestApprovalOverChanges(t *testing.T) {
	g, _ := startAsking(t, approval.Options{Node: "n1", Hold: -1})
	send := func() error { _, err := call(g, "mail__send", `{"text":"hi"}`); return err }
	if err := send(); gate.Code(err) != "refused_approve" {
		t.Fatal(err)
	}
	if _, err := g.Approvals().Decide(t.Context(), pending(t, g).ID, gate.Approved, "cli:local", ""); err != nil {
		t.Fatal(err)
	}
	other := gateway.Config{Snapshot: "other", Limits: gateway.Limits{Session: 7}, Approvals: &approval.Options{Hold: -1, Expire: time.Hour}}
	if err := g.Reconfigure(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	if err := send(); err != nil {
		t.Errorf("after a change of limits: %v", err)
	}

	none := other
	none.Approvals = &approval.Options{Channels: []approval.Channel{}}
	if err := g.Reconfigure(t.Context(), none, nil); err != nil {
		t.Fatal(err)
	}
	if err := send(); g.Approvals() != nil || err == nil || !strings.Contains(err.Error(), "no way to ask") {
		t.Errorf("no question is open: %v", err)
	}
	if err := g.Reconfigure(t.Context(), other, nil); err != nil || g.Approvals() == nil {
		t.Errorf("somebody is asked again: %v", err)
	}
}

// TestToolsNameTheirConfiguration, for approvals: what its server is run with, and nothing
// else of it.
func TestToolsNameTheirConfiguration(t *testing.T) {
	var made []string
	for _, change := range []func(*options.Endpoint){
		func(*options.Endpoint) {},
		func(e *options.Endpoint) { e.CallTimeout = time.Minute },
		func(e *options.Endpoint) { e.Env = []string{"A=1"} },
		func(e *options.Endpoint) { e.Methods = []string{"acme/x"} },
	} {
		e := counted("far", new(atomic.Int32))
		change(&e)
		g := start(t, gateway.Config{Recorder: new(records), Policy: granting("*"), Servers: []options.Endpoint{e}})
		if err := g.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		made = append(made, g.Fleet().Tools(t.Context())[0].Config)
	}
	if made[0] != made[1] || made[0] == made[2] || made[0] == made[3] || slices.Contains(made, "") {
		t.Errorf("%q", made)
	}
}

// TestReconfigurePinsAndJobs: both come, change and go while clients stay connected, and records
// name what held. A lockfile that cannot be read leaves all as it was.
func TestReconfigurePinsAndJobs(t *testing.T) {
	dir := t.TempDir()
	pins := func(mode options.PinMode) *options.Pins {
		return &options.Pins{Mode: mode, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")}
	}
	l := newLiar(&mcp.Tool{Name: "a", InputSchema: map[string]any{"type": "object"}})
	cfg := gateway.Config{
		Recorder: new(records), Policy: granting("s__*"), Servers: []options.Endpoint{{Server: "s", Dial: l.dial}},
		Pins: pins(options.PinOff), Jobs: new(gateway.Jobs),
	}
	g := start(t, cfg)
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds := func(what, code string, jobs bool) {
		t.Helper()
		if _, err := call(g, "s__a", "{}"); gate.Code(err) != code {
			t.Errorf("%s: a call ends with %q, want %q", what, gate.Code(err), code)
		}
		offered, err := g.Operator().Tools(t.Context(), gate.Local())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(offered, func(t *gate.Tool) bool { return t.Name.Server == product.JobsServer }); got != jobs {
			t.Errorf("%s: the tools of jobs are offered: %v", what, got)
		}
		if _, err := g.Operator().Pins(); (err == nil) != (cfg.Pins.Mode != options.PinOff) {
			t.Errorf("%s: pins: %v", what, err)
		}
	}
	holds("at first", gate.Code(nil), false)
	for _, tt := range []struct {
		mode  options.PinMode
		offer bool
		code  string
	}{{options.PinStrict, true, "refused_pin"}, {options.PinTrustFirst, false, gate.Code(nil)}, {options.PinOff, true, gate.Code(nil)}, {options.PinStrict, true, "refused_pin"}} {
		cfg.Pins, cfg.Jobs = pins(tt.mode), &gateway.Jobs{Offer: tt.offer}
		if err := g.Reconfigure(t.Context(), cfg, nil); err != nil {
			t.Fatal(err)
		}
		holds(string(tt.mode), tt.code, tt.offer)
	}
	if err := os.WriteFile(filepath.Join(dir, lock.FileName), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Pins, other.Jobs = pins(options.PinTrustFirst), new(gateway.Jobs)
	if err := g.Reconfigure(t.Context(), other, nil); err == nil {
		t.Error("a lockfile that cannot be read is taken over")
	}
	holds("after a lockfile that cannot be read", "refused_pin", true)
}

// TestReconfigureName: new clients get the gateway's name as it was configured last.
func TestReconfigureName(t *testing.T) {
	cfg := gateway.Config{Recorder: new(records), Policy: granting("s__*")}
	g := start(t, cfg)
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	for _, name := range []string{"", "office", "school"} {
		cfg.Name = name
		if err := g.Reconfigure(t.Context(), cfg, nil); err != nil {
			t.Fatal(err)
		}
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			if got, want := connect(t, srv.URL+"/mcp", revision).InitializeResult().ServerInfo.Name, cmp.Or(name, "wasmgate"); got != want {
				t.Errorf("%s: the gateway is %q, want %q", revision, got, want)
			}
		}
	}
}
