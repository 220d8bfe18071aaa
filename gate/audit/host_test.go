package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// fetcher is a sandboxed tool that makes a host call, is denied another, and
// runs out of fuel. It is all of a gate but the recorder.
type fetcher struct{ tool *gate.Tool }

// A trap is an error of the sandbox.
type trap struct{}

func (trap) Error() string { return "sandbox: tool fetch: fuel: used more than 1000 instructions" }
func (trap) Code() string  { return "trap_fuel" }

func (f fetcher) Lookup(context.Context, gate.Action, string) (*gate.Tool, error) { return f.tool, nil }
func (f fetcher) Features(context.Context, gate.Feature) []*gate.Tool             { return []*gate.Tool{f.tool} }

func (fetcher) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	for _, host := range []string{"api.example.com", "other.example.com"} {
		request := gate.MustDoc(fmt.Sprintf(`{"method":"GET","scheme":"https","host":%q,"port":443,"path":"/"}`, host))
		if err := p.HostCall(ctx, actions.SandboxHTTP, request); (err == nil) != (host == "api.example.com") {
			return gate.Result{}, fmt.Errorf("%s: %v", host, err)
		}
	}
	return gate.Result{Usage: gate.Usage{Fuel: 1000, MemoryPeak: 65536}}, trap{}
}

func (fetcher) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	if q.Call.Action == actions.SandboxHTTP && q.Call.Args.Get("host").Text() != "api.example.com" {
		return gate.Decision{Effect: gate.Deny, Reasons: []string{"not there"}, Revision: "p1"}, nil
	}
	return gate.Decision{Effect: gate.Allow, Reasons: []string{"granted"}, Revision: "p1"}, nil
}

func (fetcher) Visible(context.Context, *gate.Principal, []*gate.Tool) ([]bool, error) {
	return []bool{true}, nil
}

func (fetcher) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

func (fetcher) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	return gate.Session{Key: k}, nil
}

func (fetcher) Admit(_ context.Context, s gate.Session, _ *gate.Call, _ gate.Labels) (gate.Session, error) {
	return s, nil
}

func (fetcher) Learn(context.Context, gate.SessionKey, gate.Lesson) error {
	return nil
}

func (fetcher) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

func (fetcher) Validate(gate.Doc) error { return nil }

func TestHostCallsAreRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Record = "full"
	l := mustOpen(t, path, o)
	var f fetcher
	f.tool = &gate.Tool{Name: gate.ToolName{Server: "local", Tool: "fetch"}, Digest: "d1", Input: f, Sandboxed: true}
	g, err := gate.New(gate.Parts{Upstream: f, Authorizer: f, Sessions: f, Sanitizer: f, Recorder: l, Snapshot: "sn1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2"} {
		c := gate.Call{ID: id, Action: gate.CallTool, Name: "local__fetch", Who: gate.Local()}
		if _, err := g.Do(t.Context(), c); gate.Code(err) != "trap_fuel" {
			t.Fatal(err)
		}
	}

	var got []string
	seen := map[string]bool{}
	for e, err := range audit.Read(t.Context(), path, audit.Filter{Call: "c2"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %q %d %d %s", e.Event, e.Action, e.Effect, e.Code, e.Reasons, e.HostCalls, e.Fuel, e.Error))
		if e.Event != gate.HostCall {
			continue
		}
		request := gate.MustDoc(string(e.Arguments))
		if e.Parent != "c2" || seen[e.ID] || len(e.ID) != 36 || e.ArgsSHA256 != request.Digest() || request.Get("port").String() != "443" ||
			e.Tool != "local__fetch" || e.Principal != "local" || e.Snapshot != "sn1" || e.PolicyRevision != "p1" {
			t.Errorf("line %s", e.Raw)
		}
		seen[e.ID] = true
	}
	want := []string{
		`granted tools/call allow  ["granted"] 0 0 `,
		`host_call sandbox/http allow ok ["granted"] 0 0 `,
		`host_call sandbox/http deny refused_authorize ["not there"] 0 0 local__fetch refused at authorize: not there`,
		`done tools/call allow trap_fuel ["granted"] 2 1000 sandbox: tool fetch: fuel: used more than 1000 instructions`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if n := verified(t, path).Records; n != 9 {
		t.Errorf("%d records verify, want an opened one and four of each call", n)
	}

	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), "other.example.com", "api.example.com", 1)
	if _, err := audit.Verify(strings.NewReader(changed)); err == nil {
		t.Error("the request of a host call was changed, and the log verifies")
	}
	for line := range strings.Lines(string(b)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %s", line)
		}
	}
}
