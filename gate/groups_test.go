package gate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

func TestGroups(t *testing.T) {
	for name, tt := range map[string]struct {
		offered gate.Groups
		of      []string
		relay   bool
		has     bool
	}{
		"no groups narrow nothing":                   {nil, nil, false, true},
		"a tool in the group":                        {gate.Groups{{"a"}}, []string{"a", "b"}, false, true},
		"a tool in one of them":                      {gate.Groups{{"a", "b"}}, []string{"b"}, false, true},
		"a tool in another group":                    {gate.Groups{{"a"}}, []string{"b"}, false, false},
		"a tool in no group":                         {gate.Groups{{"a"}}, nil, false, false},
		"each list narrows":                          {gate.Groups{{"a"}, {"b"}}, []string{"a"}, false, false},
		"a tool that both lists have":                {gate.Groups{{"a"}, {"b"}}, []string{"a", "b"}, false, true},
		"a list that names nothing offers nothing":   {gate.Groups{{}}, []string{"a"}, false, false},
		"what carries out other calls is in each":    {gate.Groups{{"a"}}, nil, true, true},
		"narrowing by nothing is not a narrowing":    {gate.Groups(nil).Within(nil), nil, false, true},
		"narrowing twice keeps what narrowed before": {gate.Groups{{"a"}}.Within([]string{"b"}), []string{"b"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.offered.Has(&gate.Tool{Groups: tt.of, Relay: tt.relay}); got != tt.has {
				t.Errorf("has = %t", got)
			}
		})
	}
}

// TestGroupsHide has a tool outside of the offered groups be as unknown as one that
// does not exist, when it is listed and when it is called.
func TestGroupsHide(t *testing.T) {
	for name, tt := range map[string]struct {
		who, client gate.Groups
		offered     bool
	}{
		"the principal is not offered it": {gate.Groups{{"other"}}, nil, false},
		"the client is not offered it":    {nil, gate.Groups{{"other"}}, false},
		"both are offered it":             {gate.Groups{{"docs"}}, gate.Groups{{"docs", "other"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Groups = []string{"docs"}
			c := newCall()
			c.Who.Groups, c.Groups = tt.who, tt.client
			_, err := r.do(t, c)
			if tt.offered {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			unknown := newRig()
			unknown.at = on("lookup", gate.ErrUnknown)
			_, want := unknown.do(t, newCall())
			if gate.Code(err) != gate.Code(want) || reason(err) != reason(want) || gate.Code(err) != "refused_lookup" {
				t.Errorf("refused by %v, want as %v", err, want)
			}
			if r.count("authorize") > 0 {
				t.Error("the policy was asked about it")
			}
			if got := r.done(t); got.Tool != nil || got.Err == nil {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestGroupsNarrowListings(t *testing.T) {
	r := newRig()
	r.tool.Groups = []string{"docs"}
	g := newGate(t, r.parts())
	for group, want := range map[string]int{"docs": 1, "other": 0} {
		who := gate.Local()
		who.Groups = gate.Groups{{group}}
		tools, err := g.Tools(t.Context(), who)
		if err != nil || len(tools) != want {
			t.Errorf("%s: %v, %v", group, tools, err)
		}
	}
}

// TestGroupsHoldWhileAPersonIsAsked has a tool that has left the group meanwhile not
// be called.
func TestGroupsHoldWhileAPersonIsAsked(t *testing.T) {
	r := newRig()
	r.tool.Groups = []string{"docs"}
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Ask} }
	p := r.parts()
	p.Approver = approverFunc(func(context.Context, gate.Question) (gate.Approval, error) {
		moved := *r.tool
		moved.Groups = []string{"other"}
		r.tool = &moved
		return gate.Approval{ID: "a1", By: "test"}, nil
	})
	g := newGate(t, p)
	c := newCall()
	c.Groups = gate.Groups{{"docs"}}
	if _, err := g.Do(t.Context(), c); gate.Code(err) != "refused_approve" || slices.Contains(r.trace, "invoke") {
		t.Errorf("err = %v, trace %v", err, r.trace)
	}
}
