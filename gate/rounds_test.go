package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// rounds makes a call whose server asks the client by its answer.
func rounds(t *testing.T, r *rig, c gate.Call, invoke func(context.Context, gate.Permit) string) (gate.Result, error) {
	t.Helper()
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		return gate.Result{Doc: gate.MustDoc(invoke(ctx, p)), InputRequired: true}, nil
	}
	return r.do(t, c)
}

func TestScreen(t *testing.T) {
	r := newRig()
	r.sanitize = replace("evil", "[removed]")
	c := newCall()
	c.Client = inRounds("")
	res, err := rounds(t, r, c, func(ctx context.Context, p gate.Permit) string {
		params, err := p.Screen(ctx, actions.Elicit, gate.MustDoc(strings.Replace(asksName, "Who", "evil", 1)))
		if err != nil {
			t.Fatal(err)
		}
		return `{"resultType":"input_required","more":"evil","requestState":"evil","inputRequests":{"k":{"method":"elicitation/create","params":` + params.String() + `,"x":1}}}`
	})
	if err != nil || !res.InputRequired {
		t.Fatal(err)
	}
	want := `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":` + strings.Replace(asksName, "Who", "[removed]", 1) + `}},"requestState":"evil"}`
	if res.Doc.String() != want {
		t.Errorf("the client gets %s", res.Doc)
	}
	if diff := cmp.Diff([]gate.Event{gate.Granted, gate.Done, gate.Done}, r.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestScreenRefuses(t *testing.T) {
	able := func(c *gate.Call) { c.Client = inRounds("") }
	screened := func(ctx context.Context, p gate.Permit) error {
		_, err := p.Screen(ctx, actions.Elicit, gate.MustDoc(asksName))
		return err
	}
	asks := func(key, params, state string) string {
		return fmt.Sprintf(`{"inputRequests":{%q:{"method":"elicitation/create","params":%s}},"requestState":%s}`, key, params, state)
	}
	tests := map[string]struct {
		call   func(*gate.Call)
		result string
	}{
		"a client that cannot be asked":                    {func(*gate.Call) {}, asks("k", asksName, `"s"`)},
		"a client that knows no rounds":                    {func(c *gate.Call) { c.Client = answering("") }, asks("k", asksName, `"s"`)},
		"one that knows no rounds, where nothing is asked": {func(c *gate.Call) { c.Client = answering("") }, `{"requestState":"s"}`},
		"what was not screened":                            {able, asks("k", asksPIN, `"s"`)},
		"a method that was not screened":                   {able, strings.Replace(asks("k", asksName, `"s"`), "elicitation/create", "roots/list", 1)},
		"a state that is not text":                         {able, asks("k", asksName, `{}`)},
		"a state that is too large":                        {able, asks("k", asksName, `"`+strings.Repeat("s", gate.RoundState+1)+`"`)},
		"a name with hidden characters":                    {able, asks("k\u202e", asksName, `"s"`)},
		"a name that is too long":                          {able, asks(strings.Repeat("k", 200), asksName, `"s"`)},
		"more requests than a round may have": {able, func() string {
			var b strings.Builder
			for i := range 17 {
				fmt.Fprintf(&b, `,"k%d":{"method":"elicitation/create","params":%s}`, i, asksName)
			}
			return `{"inputRequests":{` + b.String()[1:] + `}}`
		}()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			c := newCall()
			tt.call(&c)
			_, err := rounds(t, r, c, func(ctx context.Context, p gate.Permit) string {
				if err := screened(ctx, p); (err == nil) != c.Reach().Rounds {
					t.Errorf("screened: %v", err)
				}
				return tt.result
			})
			if gate.Code(err) != "refused_validate_output" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What a client brings with a call goes to the server as arguments do.
func TestResponses(t *testing.T) {
	tests := map[string]struct {
		treat     gate.Treatment
		responses string
		state     string
		code      string
		want      string
	}{
		"an answer":              {"", `{"k":{"action":"accept"}}`, "s", "ok", `{"k":{"action":"accept"}}`},
		"a secret":               {"", `{"k":{"content":{"a":"KEY"}}}`, "s", "ok", `{"k":{"content":{"a":"[redacted: word]"}}}`},
		"a secret to be refused": {"refuse", `{"k":{"content":{"a":"KEY"}}}`, "s", "refused_sanitize", ""},
		"no object":              {"", `[]`, "s", "refused_parse", ""},
		"too much":               {"", `{"k":"` + strings.Repeat("k", 4<<20) + `"}`, "s", "refused_parse", ""},
		"too large a state":      {"", `{}`, strings.Repeat("s", gate.RoundState+1), "refused_parse", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			got := ""
			r.invoke = func(_ context.Context, c *gate.Call) (gate.Result, error) {
				got = c.Brought.Responses.String()
				return answer(`{"structuredContent":1}`), nil
			}
			parts := r.parts()
			parts.Secrets = spy{arguments: tt.treat}
			g := newGate(t, parts)
			c := newCall()
			c.Brought = gate.Brought{Responses: gate.MustDoc(tt.responses), State: tt.state}
			if _, err := g.Do(t.Context(), c); gate.Code(err) != tt.code || got != tt.want {
				t.Errorf("the server got %.80s, %v", got, err)
			}
		})
	}
}
