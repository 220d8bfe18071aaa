package gateway_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
)

// TestAppCallsAreReplayed: the audit log holds what policies see of apps, so that recorded calls
// are decided and explained as they were, whatever opened the app.
func TestAppCallsAreReplayed(t *testing.T) {
	const rego = `package wasmgate
deny contains "an app of another server is open" if {
	count(input.app.open) > 0
	not input.tool.server in input.app.open
}
deny contains "the page calls a tool for models" if {
	input.app.own_name
	not input.app.only
}
deny contains "untrusted" if {
	"untrusted" in input.session.labels
	input.tool.name == "c2__show"
	not input.app
}`
	rules := gateway.Policy{Files: fstest.MapFS{"apps.rego": {Data: []byte(rego)}}, Options: policy.Options{
		Timeout: patience, Packs: []string{"grants"}, Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"c1", "c2"}}},
	}}
	for opens, open := range map[string]func(*appHost) gate.Doc{
		"a read": func(h *appHost) gate.Doc { return h.read("ui://c1/shared/app.html") },
		"a call": func(h *appHost) gate.Doc { return h.call("c1__show") },
	} {
		t.Run(opens, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "audit.jsonl")
			g, _, _ := twoApps(t, func(c *gateway.Config) {
				c.Recorder, c.Audit, c.AuditOptions.Record, c.Policy = nil, log, "full", rules
			})
			host, plain := newAppHost(t, g, rig.Old, true), newAppHost(t, g, rig.Old, false)
			host.call("c1__refresh") // no app is open
			open(host)
			for _, name := range []string{"refresh", "c1__refresh", "show", "c1__show", "c2__show"} {
				host.call(name)
			}
			plain.read("ui://shared/app.html")
			plain.call("c2__show")
			stop(t, g)

			engine, err := policy.Load(t.Context(), rules.Files, rules.Options)
			if err != nil {
				t.Fatal(err)
			}
			c, err := replay.Compare(t.Context(), engine, replay.Log{File: log}, func(replay.Comparison, int) {})
			if err != nil || c.Decided < 6 || c.Unknown > 0 || len(c.Differences) > 0 {
				t.Errorf("compared: %+v, %v", c, err)
			}
			x := replay.Explainer{Log: log, Policy: rules, Tools: func(context.Context) ([]inventory.Tool, error) { return nil, errors.New("no gateway runs") }}
			denied := 0
			for e, err := range audit.Read(t.Context(), log, audit.Filter{}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Event != gate.Done || e.Action != gate.CallTool || e.Effect == "" {
					continue
				}
				if why, err := x.Explain(t.Context(), e); err != nil || why.Effect != e.Effect {
					t.Errorf("%s %+v with %v: was %s for %q, is explained as %s, %v", e.Tool, e.App, e.LabelsBefore, e.Effect, e.Reasons, why.Effect, err)
				}
				if e.Effect == gate.Deny {
					denied++
				}
			}
			if denied < 3 {
				t.Errorf("only %d calls were denied", denied)
			}
		})
	}
}
