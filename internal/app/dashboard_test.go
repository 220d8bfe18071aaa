package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

const (
	dashboard = "../../deploy/grafana/wasmgate.json"
	alerts    = "../../deploy/prometheus/alerts.yaml"
)

// queries returns the expressions of a dashboard, by the titles of their panels.
func queries(t *testing.T, name string) map[string][]string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, name)), &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$instance", ".*", "$server", ".*", "$tool", ".*", "$__rate_interval", "1m", "$__range", "1h")
	all := make(map[string][]string)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: a variable that is not known here: %s", p.Title, expr)
			}
			all[p.Title] = append(all[p.Title], expr)
		}
	}
	return all
}

var metricNames = regexp.MustCompile(`\b(?:wasmgate|mcp)_[a-z_]+`)

// ofSeveral are metrics of gateways that share a database.
var ofSeveral = regexp.MustCompile(`^wasmgate_(store|homes|forward|lease|peers|skew)`)

// labels are words of the expressions that look like metrics.
var labels = []string{"wasmgate_server", "mcp_method_name"}

// TestDashboard asks a Prometheus that scrapes a live gateway for every expression of the
// dashboard and of the alerts: each is understood, and every metric in it is there.
func TestDashboard(t *testing.T) {
	unraced.Long(t)
	dead := freeport.Address(t) // where nothing takes what is sent
	cfg := load(t, "version: 1\n")
	write(t, filepath.Join(filepath.Dir(cfg.File), "ask.rego"), "package wasmgate\n\nask contains \"it is asked about\" if input.arguments.text == \"asked\"\n")
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"*\"]}\n")
	cfg = reload(t, cfg.File, `version: 1
servers: {gone: {command: no-such-program}}
telemetry: {metrics: {listen: "127.0.0.1:0"}, otlp: {endpoint: "http://`+dead+`"}, ship: {siem: {to: http, url: "http://`+dead+`"}}}
policy: {packs: [grants], paths: [ask.rego]}
approvals: {channels: [cli], hold: 1s}
`)
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	_, _ = a.Calls.Call(t.Context(), calls.Request{Tool: "none__such", Args: hello})
	_, _ = a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: `{"text":"asked","algorithm":"sha256"}`})
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "metrics", func() bool { return a.Overview.Status().Metrics != "" })
	metrics := a.Overview.Status().Metrics
	_, body := get(t, metrics)

	exprs := queries(t, dashboard)
	for _, line := range regexp.MustCompile(`(?m)^        expr: (?:\|\n((?:          .*\n)+)|(.*)\n)`).FindAllStringSubmatch(readText(t, alerts), -1) {
		exprs["alert"] = append(exprs["alert"], line[1]+line[2])
	}
	if len(exprs["alert"]) != strings.Count(readText(t, alerts), "- alert:") || len(exprs) < 20 {
		t.Fatalf("%d panels, %d alerts", len(exprs), len(exprs["alert"]))
	}
	for title, all := range exprs {
		for _, expr := range all {
			for _, name := range metricNames.FindAllString(expr, -1) {
				if ofSeveral.MatchString(name) { // which the end-to-end test of several gateways looks for
					continue
				}
				if !slices.Contains(labels, name) && !strings.Contains(body, "\n"+name+"{") && !strings.Contains(body, "\n"+name+" ") {
					t.Errorf("%s: no metric %s on the gateway: %s", title, name, expr)
				}
			}
		}
	}
	t.Run("prometheus", func(t *testing.T) {
		rules, err := filepath.Abs(alerts)
		if err != nil {
			t.Fatal(err)
		}
		p := newPrometheus(t, metrics, rules)
		timelimit.Wait(t, "a scrape", func() bool { return p.value(t, "up") == "1" })
		for title, all := range exprs {
			for _, expr := range all {
				if status, body := get(t, p.url+"/api/v1/query?query="+url.QueryEscape(expr)); status != http.StatusOK {
					t.Errorf("%s: %s: %s", title, expr, body)
				}
			}
		}
		var firing struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, State string }
				}
			}
		}
		timelimit.Wait(t, "the alerts", func() bool {
			_, body := get(t, p.url+"/api/v1/rules")
			if err := json.Unmarshal([]byte(body), &firing); err != nil || len(firing.Data.Groups) != 1 {
				return false
			}
			return !slices.ContainsFunc(firing.Data.Groups[0].Rules, func(r struct{ Name, Health, State string }) bool {
				return r.Health == "unknown" || r.Name == "WasmgateServerDown" && r.State != "pending"
			})
		})
		for _, r := range firing.Data.Groups[0].Rules {
			if r.Health != "ok" || r.Name == "WasmgateAuditFailing" && r.State != "inactive" {
				t.Errorf("alert %s: %s, %s", r.Name, r.Health, r.State)
			}
		}
	})
	t.Run("promtool", func(t *testing.T) {
		toolchain.Need(t, "promtool")
		if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", alerts).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestUnit has systemd look at the unit.
func TestUnit(t *testing.T) {
	toolchain.Need(t, "systemd-analyze")
	unit := readText(t, "../../deploy/systemd/wasmgate.service")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "wasmgate.service")
	write(t, name, strings.Replace(unit, "/usr/local/bin/wasmgate", `"`+self+`"`, 1))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", name).CombinedOutput(); err != nil || strings.Contains(string(out), "wasmgate.service:") {
		t.Errorf("%v: %s", err, out)
	}
	// How much of the machine it is left, from 0 to 10: 4.0 now.
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=41", "--no-pager", name).CombinedOutput(); err != nil && !strings.Contains(string(out), "option") { // which systemd before 250 does not know
		t.Errorf("the unit is less safe than it was: %v: %s", err, out)
	}
}
