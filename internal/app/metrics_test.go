package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// get returns what an address answers.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	return getAs(t, url, "")
}

func getAs(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// measured starts a gateway with metrics, and returns where they are.
func measured(t *testing.T, more string) (a *app.App, cfg *config.Config, metrics string) {
	t.Helper()
	cfg = load(t, "version: 1\ntelemetry: {metrics: {listen: \"127.0.0.1:0\"}}\n"+more)
	a = start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	timelimit.Wait(t, "metrics", func() bool { metrics = a.Overview.Status().Metrics; return metrics != "" })
	return a, cfg, metrics
}

// TestMetrics has Prometheus' own tools look at a gateway that runs: promtool at the form,
// a server at the numbers.
func TestMetrics(t *testing.T) {
	unraced.Long(t)
	a, _, metrics := measured(t, "")
	const canary = "canary-in-arguments"
	for range 3 {
		if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: `{"text":"` + canary + `"}`}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "canary_tool", Args: hello}); err == nil {
		t.Fatal("a tool that is none was called")
	}
	status, body := get(t, metrics)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	for _, want := range []string{
		`wasmgate_calls_total{action="tools/call",code="ok",effect="allow",server="local",tool="hash"} 3`,
		`server="_other",tool="_other"} 1`, "wasmgate_healthy 1", "wasmgate_build_info{version=", "wasmgate_policy_info{revision=", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "canary") {
		t.Error("a word of a client's is in the metrics")
	}
	if status, _ := get(t, strings.TrimSuffix(metrics, "/metrics")+"/mcp"); status != http.StatusNotFound {
		t.Errorf("/mcp beside the metrics answers %d", status)
	}
	if status, _ := get(t, strings.TrimSuffix(a.Overview.Status().URL, "/mcp")+"/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics beside MCP answers %d", status)
	}
	t.Run("promtool", func(t *testing.T) {
		toolchain.Need(t, "promtool")
		cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(body)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("prometheus", func(t *testing.T) {
		p := newPrometheus(t, metrics)
		for query, want := range map[string]string{
			`sum(wasmgate_calls_total{code="ok"})`: "3",
			`up`:                                   "1",
			`sum(mcp_server_operation_duration_seconds_count{gen_ai_tool_name="local__hash"})`:                                    "3",
			`histogram_quantile(1, sum by (le) (mcp_client_operation_duration_seconds_bucket{wasmgate_server="local"})) > bool 0`: "1",
		} {
			timelimit.Wait(t, query, func() bool { return p.value(t, query) == want })
		}
	})
}

// prometheus is a Prometheus that scrapes one target.
type prometheus struct{ url string }

// newPrometheus starts one. The test skips if it does not work on this machine.
func newPrometheus(t *testing.T, metrics string, rules ...string) prometheus {
	t.Helper()
	toolchain.Need(t, "prometheus")
	target, err := url.Parse(metrics)
	if err != nil {
		t.Fatal(err)
	}
	files, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(
		"global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: %s\nscrape_configs: [{job_name: wasmgate, static_configs: [{targets: [%q]}]}]\n", files, target.Host))
	address := freeport.Address(t)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	p := prometheus{"http://" + address}
	timelimit.Wait(t, "Prometheus", func() bool { status, _ := get(t, p.url+"/-/ready"); return status == http.StatusOK })
	return p
}

// value returns what a query of one value answers, "" if that is nothing.
func (p prometheus) value(t *testing.T, query string) string {
	t.Helper()
	status, body := get(t, p.url+"/api/v1/query?query="+url.QueryEscape(query))
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", query, status, err, body)
	}
	if len(answer.Data.Result) == 0 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}

// TestMetricsOfAnotherHost: a web page whose name resolves to this machine reads nothing.
func TestMetricsOfAnotherHost(t *testing.T) {
	_, _, metrics := measured(t, "")
	for host, want := range map[string]int{"localhost:9464": 200, "[::1]:9464": 200, "127.0.0.1": 200, "evil.example": 403, "127.0.0.1.evil.example:9464": 403} {
		if got, _ := getAs(t, metrics, host); got != want {
			t.Errorf("host %s: status %d, want %d", host, got, want)
		}
	}
}

// TestMetricsChange while the gateway runs, and an address that somebody has is said, and
// taken when it is free.
func TestMetricsChange(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	if m := a.Overview.Status().Metrics; m != "" {
		t.Fatalf("metrics at %s, though nobody asked for them", m)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	write(t, cfg.File, "version: 1\ntelemetry: {metrics: {listen: '"+ln.Addr().String()+"'}}\n")
	timelimit.Wait(t, "a problem", func() bool { return strings.Contains(strings.Join(a.Overview.Status().Problems, "\n"), "metrics: ") })
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Error(err)
	}
	ln.Close()
	timelimit.Wait(t, "metrics", func() bool { return a.Overview.Status().Metrics != "" })
	s := a.Overview.Status()
	if status, body := get(t, s.Metrics); status != http.StatusOK || !strings.Contains(body, `wasmgate_calls_total{action="tools/call",code="ok"`) || len(s.Problems) > 0 {
		t.Errorf("status %d, problems %q", status, s.Problems)
	}
	write(t, cfg.File, "version: 1\n")
	timelimit.Wait(t, "no metrics", func() bool { return a.Overview.Status().Metrics == "" })
}

// TestFailedBundles: a bundle that cannot be used any more is counted until it can, while the last
// good one is in use.
func TestFailedBundles(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\n")
	folder := filepath.Join(filepath.Dir(cfg.File), "bundle")
	if err := os.MkdirAll(filepath.Join(folder, "own"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, ".manifest"), `{"roots": ["own"], "revision": "one"}`)
	write(t, filepath.Join(folder, "own", "own.rego"), "package own\n\nx := 2\n")
	cfg = reload(t, cfg.File, "version: 1\npolicy: {bundles: [{name: b, path: bundle}]}\ntelemetry: {metrics: {listen: \"127.0.0.1:0\"}}\n")
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	timelimit.Wait(t, "metrics", func() bool { return a.Overview.Status().Metrics != "" })
	counts := func(n string) func() bool {
		return func() bool {
			_, body := get(t, a.Overview.Status().Metrics)
			return strings.Contains(body, "\nwasmgate_bundles_failed "+n+"\n")
		}
	}
	timelimit.Wait(t, "none", counts("0"))
	write(t, filepath.Join(folder, "own", "own.rego"), "package own\n\nx :=\n")
	timelimit.Wait(t, "one", counts("1"))
	write(t, filepath.Join(folder, "own", "own.rego"), "package own\n\nx := 1\n")
	timelimit.Wait(t, "none again", counts("0"))
}
