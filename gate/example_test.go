package gate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// greeter is a server with one tool.
type greeter struct{ tool *gate.Tool }

func (g greeter) Lookup(_ context.Context, _ gate.Action, name string) (*gate.Tool, error) {
	if name != g.tool.Name.String() {
		return nil, gate.ErrUnknown
	}
	return g.tool, nil
}

func (g greeter) Invoke(_ context.Context, p gate.Permit) (gate.Result, error) {
	call, _, ok := p.Open()
	if !ok {
		return gate.Result{}, fmt.Errorf("a call without a permit")
	}
	return gate.Result{Doc: gate.Doc{}.With("hello", call.Args.Get("name").Raw())}, nil
}

func (g greeter) Features(context.Context, gate.Feature) []*gate.Tool { return []*gate.Tool{g.tool} }

// onlyAlice lets alice call everything, and no one else anything.
type onlyAlice struct{}

func (onlyAlice) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	if q.Call.Who.ID == "alice" {
		return gate.Decision{Effect: gate.Allow}, nil
	}
	return gate.Decision{Effect: gate.Deny, Reasons: []string{"only alice may"}}, nil
}

func (onlyAlice) Visible(_ context.Context, who *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	visible := make([]bool, len(tools))
	for i := range visible {
		visible[i] = who.ID == "alice"
	}
	return visible, nil
}

func (onlyAlice) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

// forgetful keeps nothing of a session.
type forgetful struct{}

func (forgetful) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	return gate.Session{Key: k}, nil
}

func (forgetful) Admit(_ context.Context, s gate.Session, _ *gate.Call, _ gate.Labels) (gate.Session, error) {
	return s, nil
}

func (forgetful) Learn(context.Context, gate.SessionKey, gate.Lesson) error {
	return nil
}

// noBells removes the control character that rings.
type noBells struct{}

func (noBells) Sanitize(t gate.Text) (string, []gate.Finding) {
	n := strings.Count(t.Text, "\a")
	if n == 0 {
		return t.Text, nil
	}
	return strings.ReplaceAll(t.Text, "\a", ""), []gate.Finding{{Rule: "bell", Count: n, Removed: true}}
}

// printer shows the records of calls.
type printer struct{}

func (printer) Record(_ context.Context, r *gate.Record) error {
	fmt.Printf("record: %s %s %q\n", r.Event, r.Call.Who.ID, r.Code)
	return nil
}

type anything struct{}

func (anything) Validate(gate.Doc) error { return nil }

func Example() {
	g, err := gate.New(gate.Parts{
		Upstream: greeter{&gate.Tool{
			Name: gate.ToolName{Server: "local", Tool: "greet"}, Input: anything{},
		}},
		Authorizer: onlyAlice{}, Sessions: forgetful{}, Sanitizer: noBells{}, Recorder: printer{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, who := range []string{"alice", "mallory"} {
		res, err := g.Do(context.Background(), gate.Call{
			Action: gate.CallTool,
			Name:   "local__greet",
			Args:   gate.MustDoc(`{"name":"world\u0007"}`),
			Who:    &gate.Principal{Owner: gate.Owner{ID: who}},
		})
		fmt.Println(gate.Code(err), err)
		fmt.Println(res.Doc)
	}
	// Output:
	// record: granted alice ""
	// record: done alice "ok"
	// ok <nil>
	// {"hello":"world","_meta":{"io.github.wasmgate/findings":[{"rule":"bell","at":"/hello","count":1,"removed":true}]}}
	// record: done mallory "refused_authorize"
	// refused_authorize local__greet refused at authorize: only alice may
	//
}
