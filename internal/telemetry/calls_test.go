package telemetry_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// ended is the record of a call of a tool that a server has.
func ended(server, tool, code string) *gate.Record {
	return &gate.Record{
		Event: gate.Done, Code: code, Took: 12 * time.Millisecond,
		Call:     &gate.Call{Action: gate.CallTool, Name: server + "__" + tool, Who: gate.Local()},
		Tool:     &gate.Tool{Name: gate.ToolName{Server: server, Tool: tool}, Offered: server + "__" + tool},
		Decision: gate.Decision{Effect: gate.Allow},
		Steps: []step.Time{
			{Step: step.Parse, Took: 10 * time.Microsecond}, {Step: step.Authorize, Took: 90 * time.Microsecond},
			{Step: step.Approve, Took: 2 * time.Millisecond}, {Step: step.Invoke, Took: 9 * time.Millisecond},
		},
	}
}

// exposition returns what Prometheus would read.
func exposition(tb testing.TB, c *telemetry.Calls) []string {
	tb.Helper()
	w := httptest.NewRecorder()
	telemetry.Handler(c.Metrics).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		tb.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var series []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			series = append(series, strings.TrimSpace(line))
		}
	}
	return series
}

// TestCounts holds what is exposed against the names and units of the conventions.
func TestCounts(t *testing.T) {
	c := telemetry.NewCalls(0)
	c.Observe(&gate.Record{Event: gate.Granted, Call: &gate.Call{}}, 0, nil)
	c.Observe(&gate.Record{Event: gate.Granted, Call: &gate.Call{}}, 0, nil)
	c.Observe(ended("files", "read", codes.OK), 30*time.Microsecond, nil)
	c.Observe(ended("files", "read", codes.ToolError), 30*time.Microsecond, nil)
	lost := ended("files", "read", codes.OK)
	lost.Steps = nil
	c.Observe(lost, time.Millisecond, errors.New("the disk is full"))
	unknown := ended("x", "y", "refused_lookup")
	unknown.Tool, unknown.Steps = nil, nil
	c.Observe(unknown, 0, nil)
	found := ended("files", "read", codes.OK)
	found.Steps, found.Findings = nil, []gate.Finding{{Rule: "ansi", Count: 3, Removed: true}}
	c.Observe(found, 0, nil)
	c.Observe(&gate.Record{Event: gate.EventApproval, Call: &gate.Call{}, Approval: gate.ApprovalRecord{State: approval.StateDenied}}, 0, nil)
	c.Observe(&gate.Record{Event: gate.HostCall, Code: codes.OK, Count: 4, Call: &gate.Call{Action: "http/request"}}, 0, nil)
	prompt := ended("files", "summary", codes.OK)
	prompt.Call.Action, prompt.Usage = gate.GetPrompt, gate.Usage{Fuel: 7, MemoryPeak: 2 << 20}
	prompt.Steps = nil
	c.Observe(prompt, 0, nil)

	all := exposition(t, c)
	for _, want := range []string{
		`wasmgate_calls_total{action="tools/call",code="ok",effect="allow",server="files",tool="read"} 2`,
		`wasmgate_calls_total{action="tools/call",code="tool_error",effect="allow",server="files",tool="read"} 1`,
		`wasmgate_calls_total{action="tools/call",code="refused_record",effect="allow",server="files",tool="read"} 1`,
		`wasmgate_calls_total{action="tools/call",code="refused_lookup",effect="allow",server="_other",tool="_other"} 1`,
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_prompt_name="",gen_ai_tool_name="files__read",mcp_method_name="tools/call",le="0.01"} 0`,
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_prompt_name="",gen_ai_tool_name="files__read",mcp_method_name="tools/call",le="0.02"} 2`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_prompt_name="files__summary",gen_ai_tool_name="",mcp_method_name="prompts/get"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="tool_error",mcp_method_name="tools/call",wasmgate_server="files"} 1`,
		`mcp_client_operation_duration_seconds_sum{error_type="",mcp_method_name="tools/call",wasmgate_server="files"} 0.009`,
		`wasmgate_step_duration_seconds_bucket{step="authorize",le="5e-05"} 0`,
		`wasmgate_step_duration_seconds_bucket{step="authorize",le="0.0001"} 2`,
		`wasmgate_overhead_duration_seconds_bucket{action="tools/call",le="0.001"} 2`,
		`wasmgate_approval_wait_seconds_count{action="tools/call"} 2`,
		`wasmgate_findings_total{removed="true",rule="ansi"} 3`,
		`wasmgate_approvals_total{state="denied"} 1`,
		`wasmgate_sandbox_host_calls_total{action="http/request",code="ok"} 4`,
		`wasmgate_sandbox_fuel_total{wasmgate_server="files"} 7`,
		`wasmgate_sandbox_memory_peak_bytes_bucket{wasmgate_server="files",le="1.048576e+06"} 0`,
		`wasmgate_audit_failed_total 1`,
		`wasmgate_inflight 0`,
		`wasmgate_metrics_overflow_total 0`,
	} {
		if !slices.Contains(all, want) {
			t.Errorf("no line\n%s\nin\n%s", want, strings.Join(all, "\n"))
		}
	}
}

// TestHostileNames has a client and a server make names up: the series stay bounded, and no
// call is lost from the sums.
func TestHostileNames(t *testing.T) {
	unraced.Long(t)
	const many = 1_000_000
	c := telemetry.NewCalls(0)
	for i := range many {
		r := ended("files", "read", "refused_lookup")
		r.Call.Name, r.Tool, r.Steps = fmt.Sprintf("canary-%d", i), nil, nil
		r.Call.Who = &gate.Principal{Owner: gate.Owner{ID: r.Call.Name}}
		r.Call.Session.ID = r.Call.Name
		c.Observe(r, 0, nil)
		if i%10 == 0 { // a server without pins
			c.Observe(ended("files", fmt.Sprintf("made_up_%d", i), codes.OK), 0, nil)
		}
		if i%100 == 0 {
			r := ended("files", fmt.Sprintf("canary_%d", i), "refused_pin")
			r.Tool.Quarantine = "nobody has approved it"
			c.Observe(r, 0, nil)
			r = ended("files", "", codes.OK)
			r.Call.Action, r.Call.Name, r.Tool.Offered = gate.ReadResource, fmt.Sprintf("canary://%d", i), ""
			c.Observe(r, 0, nil)
		}
	}
	all := exposition(t, c)
	own, calls := 0, 0.0
	for _, line := range all {
		if strings.Contains(line, "canary") {
			t.Fatalf("a name that a client made up, a quarantined one or a URI: %s", line)
		}
		if strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") || strings.HasPrefix(line, "promhttp_") {
			continue
		}
		own++
		if strings.HasPrefix(line, "wasmgate_calls_total{") {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
				t.Fatal(err)
			}
			calls += n
		}
	}
	if len(all) >= 2000+100 || own >= 2000+20 || own < 1000 {
		t.Errorf("%d series, %d of them ours", len(all), own)
	}
	if want := float64(many + many/10 + many/100*2); calls != want {
		t.Errorf("%v calls in the sums, want %v", calls, want)
	}
	if c.Overflow() == 0 {
		t.Error("nobody is told that there was no room")
	}
}

// TestObserveAllocatesNothing: counting is on the way of every call.
func TestObserveAllocatesNothing(t *testing.T) {
	c := telemetry.NewCalls(0)
	r := ended("files", "read", codes.OK)
	r.Findings = []gate.Finding{{Rule: "ansi", Count: 3, Removed: true}}
	if n := testing.AllocsPerRun(100, func() { c.Observe(r, time.Microsecond, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	c := telemetry.NewCalls(0)
	r := ended("files", "read", codes.OK)
	for _, s := range []step.Step{step.Lookup, step.Pin, step.ValidateInput, step.Limit, step.Record, step.ValidateOutput, step.Sanitize} {
		r.Steps = append(r.Steps, step.Time{Step: s, Took: 40 * time.Microsecond})
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Observe(r, time.Microsecond, nil)
	}
}

// Sessions that have ended are counted by how long they were, and the instrument is there before.
func TestSessions(t *testing.T) {
	c := telemetry.NewCalls(0)
	var nobody *telemetry.Calls
	nobody.Session(time.Second)
	for want := range uint64(3) {
		var got []telemetry.Metric
		for _, m := range c.Metrics() {
			if m.Name == "mcp.server.session.duration" {
				got = append(got, m)
			}
		}
		if len(got) != 1 || len(got[0].Points) != 1 || got[0].Points[0].Count() != want || got[0].Points[0].Sum != 90*float64(want) {
			t.Errorf("after %d sessions: %+v", want, got)
		}
		c.Session(90 * time.Second)
	}
}
