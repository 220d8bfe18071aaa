package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// internal is in every text that a client must not read: the words of collaborators' errors and
// panics.
const internal = "internal-detail"

var errInternal = errors.New(internal)

// A rig is all collaborators of a gate in one. Left alone they let a call pass;
// a test replaces the one that it is about. It serves one call at a time.
type rig struct {
	hides    bool // nothing is visible
	tool     *gate.Tool
	decide   func(gate.Query) gate.Decision
	admit    func(gate.Session, gate.Labels) (gate.Session, error)
	invoke   func(context.Context, *gate.Call) (gate.Result, error)
	hosted   func(context.Context, gate.Permit) (gate.Result, error) // instead of invoke
	input    func(gate.Doc) error
	output   func(gate.Doc) error
	sanitize func(gate.Text) (string, []gate.Finding)
	// at is asked at each method's begin, by its name; its error is what the
	// method fails with.
	at func(method string) error

	trace   []string // methods in the order in which they were called
	records []gate.Record
	session gate.Session // what View answers
	learned []gate.Doc
	taught  gate.Labels
}

func newRig() *rig {
	r := new(rig)
	r.tool = &gate.Tool{
		Name: gate.ToolName{Server: "files", Tool: "read"}, Local: "read", Offered: "files__read",
		Input:   schemaFunc(func(d gate.Doc) error { return r.check("input", r.input, d) }),
		Output:  schemaFunc(func(d gate.Doc) error { return r.check("output", r.output, d) }),
		Teaches: gate.NewLabels(provenance.Untrusted),
	}
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }
	r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
		s.Labels = s.Labels.Join(l)
		return s, nil
	}
	r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
		return answer(`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"a":1}}`), nil
	}
	return r
}

type schemaFunc func(gate.Doc) error

func (f schemaFunc) Validate(d gate.Doc) error { return f(d) }

func (r *rig) parts() gate.Parts {
	return gate.Parts{Upstream: r, Authorizer: r, Sessions: r, Limiter: r, Sanitizer: r, Recorder: r, Snapshot: "s1"}
}

// newGate returns a gate of the parts.
func newGate(t testing.TB, p gate.Parts) *gate.Gate {
	t.Helper()
	g, err := gate.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (r *rig) do(t testing.TB, c gate.Call) (gate.Result, error) {
	t.Helper()
	return r.doContext(t, t.Context(), c)
}

func (r *rig) doContext(t testing.TB, ctx context.Context, c gate.Call) (gate.Result, error) {
	t.Helper()
	g := newGate(t, r.parts())
	return g.Do(ctx, c)
}

// newCall returns a call that the rig lets pass.
func newCall() gate.Call {
	return gate.Call{
		ID: "c1", Action: gate.CallTool, Name: "files__read", Args: gate.MustDoc(`{"path":"/a"}`),
		Who: gate.Local(), Session: gate.SessionKey{Owner: gate.Local().Owner, ID: "s"},
	}
}

func answer(s string) gate.Result {
	d := gate.MustDoc(s)
	return gate.Result{Doc: d, IsError: d.Get("isError").True()}
}

func (r *rig) step(method string) error {
	r.trace = append(r.trace, method)
	if r.at != nil {
		return r.at(method)
	}
	return nil
}

// count returns how often a method was called.
func (r *rig) count(method string) int {
	n := 0
	for _, m := range r.trace {
		if m == method {
			n++
		}
	}
	return n
}

func (r *rig) events() []gate.Event {
	var events []gate.Event
	for _, rec := range r.records {
		events = append(events, rec.Event)
	}
	return events
}

// done returns the Done record, which must be the last.
func (r *rig) done(t testing.TB) gate.Record {
	t.Helper()
	if len(r.records) == 0 || r.records[len(r.records)-1].Event != gate.Done {
		t.Fatalf("events = %v, want done as the last", r.events())
	}
	return r.records[len(r.records)-1]
}

func (r *rig) Lookup(context.Context, gate.Action, string) (*gate.Tool, error) {
	if err := r.step("lookup"); err != nil {
		return nil, err
	}
	return r.tool, nil
}

func (r *rig) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	if err := r.step("invoke"); err != nil {
		return gate.Result{}, err
	}
	c, tool, ok := p.Open()
	if !ok || tool != r.tool {
		return gate.Result{}, fmt.Errorf("permit opens to %v, %t", tool, ok)
	}
	if r.hosted != nil {
		return r.hosted(ctx, p)
	}
	return r.invoke(ctx, c)
}

func (r *rig) Features(context.Context, gate.Feature) []*gate.Tool {
	r.step("tools")
	return []*gate.Tool{r.tool}
}

func (r *rig) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	if err := r.step("authorize"); err != nil {
		return gate.Decision{Effect: gate.Allow}, err // the error must win
	}
	return r.decide(q), nil
}

func (r *rig) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return slices.Repeat([]bool{!r.hides}, len(tools)), r.step("visible")
}

func (r *rig) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

func (r *rig) View(context.Context, gate.SessionKey) (gate.Session, error) {
	return r.session, r.step("view")
}

func (r *rig) Admit(_ context.Context, s gate.Session, _ *gate.Call, l gate.Labels) (gate.Session, error) {
	if err := r.step("admit"); err != nil {
		return gate.Session{}, err
	}
	return r.admit(s, l)
}

func (r *rig) Learn(_ context.Context, _ gate.SessionKey, l gate.Lesson) error {
	if err := r.step("learn"); err != nil {
		return err
	}
	r.learned, r.taught = append(r.learned, l.From), r.taught.Join(l.Labels)
	return nil
}

func (r *rig) Enter(context.Context, gate.Entry) (gate.Slot, error) {
	if err := r.step("enter"); err != nil {
		return nil, err
	}
	return &slot{
		charge: func(gate.Charges) error { return r.step("take") }, release: func(int64) { r.step("release") },
		work: func() { r.step("work") },
	}, nil
}

// A slot is one that sets no limits. Its functions may be nil; release is called once.
type slot struct {
	charge  func(gate.Charges) error
	release func(int64)
	work    func()
}

func (s *slot) Charge(_ context.Context, c gate.Charges) error {
	if s.charge == nil {
		return nil
	}
	return s.charge(c)
}

func (s *slot) Work(context.Context, int) error {
	if s.work != nil {
		s.work()
	}
	return nil
}

func (s *slot) Rest(context.Context) error         { return nil }
func (s *slot) Pause() func(context.Context) error { return nil }

func (s *slot) Release(bytes int64) {
	if release := s.release; release != nil {
		s.release = nil
		release(bytes)
	}
}

func (r *rig) Sanitize(t gate.Text) (string, []gate.Finding) {
	r.step("sanitize")
	if r.sanitize == nil {
		return t.Text, nil
	}
	return r.sanitize(t)
}

func (r *rig) Record(_ context.Context, rec *gate.Record) error {
	if err := r.step("record " + string(rec.Event)); err != nil {
		return err
	}
	r.records = append(r.records, *rec)
	return nil
}

func (r *rig) check(method string, f func(gate.Doc) error, d gate.Doc) error {
	if err := r.step(method); err != nil || f == nil {
		return err
	}
	return f(d)
}

// on returns an at that fails one method.
func on(method string, err error) func(string) error {
	return func(m string) error {
		if m == method {
			return err
		}
		return nil
	}
}

// replace returns a sanitizer that replaces one word and says so.
func replace(old, clean string) func(gate.Text) (string, []gate.Finding) {
	return func(t gate.Text) (string, []gate.Finding) {
		n := strings.Count(t.Text, old)
		if n == 0 {
			return t.Text, nil
		}
		return strings.ReplaceAll(t.Text, old, clean), []gate.Finding{{Rule: "word", Count: n, Removed: true}}
	}
}

// A codedError is an error of an upstream.
type codedError string

func (e codedError) Error() string { return internal }
func (e codedError) Code() string  { return string(e) }

// allCodes is the closed set of contracts: what logs, metrics and exit codes know.
var allCodes = strings.Fields(`ok tool_error
	refused_parse refused_lookup refused_authorize refused_validate_input refused_limit refused_busy refused_credential refused_approve
	refused_pin refused_app refused_store refused_record refused_validate_output refused_sanitize
	spawn_failed transport protocol not_connected timeout cancelled
	trap_fuel trap_memory trap_deadline trap_guest trap_denied`)
