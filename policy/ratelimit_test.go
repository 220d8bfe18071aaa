package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// TestRatesAreThoseOfASearch compares the index of rate limits with a search through
// all of them.
func TestRatesAreThoseOfASearch(t *testing.T) {
	unraced.Long(t)
	r := seed.Rand(t)
	some, none := 0, 0
	for range 60 {
		grants := randomGrants(r, r.IntN(6))
		limits := make([]policy.RateLimit, len(grants))
		for i, g := range grants {
			limits[i] = policy.RateLimit{To: g.To, Tools: g.Tools, Servers: g.Servers, Except: g.Except, Calls: int64(i + 1), Per: "1m"}
			if r.IntN(4) == 0 {
				limits[i].Tools, limits[i].Servers, grants[i].Tools, grants[i].Servers = nil, nil, []string{"*"}, nil
			}
		}
		e := load(t, user(`allow contains "all" if input.action == "tools/call"`), policy.Options{Packs: []string{"ratelimit"}, RateLimits: limits})
		for _, who := range []*gate.Principal{
			{Owner: gate.Owner{ID: "alice"}}, {Owner: gate.Owner{ID: "bob"}, Roles: []string{"ops", "dev"}},
			{Owner: gate.Owner{ID: "role:dev"}}, {Owner: gate.Owner{ID: "*"}, Roles: []string{"*", "alice"}},
		} {
			for _, name := range []string{"a__x", "a__y", "a__y1", "a__y1long", "b__x", "c__z", "d__x"} {
				d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who}, Tool: newTool(name)})
				if err != nil {
					t.Fatal(err)
				}
				var got, want []int64
				for _, o := range d.Obligations {
					got = append(got, o.(obligation.Rate).Calls)
				}
				slices.Sort(got)
				for i := range grants {
					if granted(grants[i:i+1], who, name) {
						want = append(want, int64(i+1))
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s for %+v: %v, want %v\n%+v", name, who, got, want, limits)
				}
				if want == nil {
					none++
				} else {
					some++
				}
			}
		}
	}
	if some == 0 || none == 0 {
		t.Errorf("%d limited, %d not: the test says nothing", some, none)
	}
}

// Entries that say the same of others have buckets of their own, and an entry keeps
// its own when another is added to the file.
func TestRatesHaveNames(t *testing.T) {
	names := func(limits ...policy.RateLimit) []string {
		e := load(t, user(`allow contains "all" if input.action == "tools/call"`), policy.Options{Packs: []string{"ratelimit"}, RateLimits: limits})
		d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local()}, Tool: newTool("a__b")})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, o := range d.Obligations {
			all = append(all, o.(obligation.Rate).Name)
		}
		return all
	}
	a := policy.RateLimit{To: []string{"*"}, Tools: []string{"a__b"}, Calls: 1, Per: "1m"}
	b := policy.RateLimit{To: []string{"*"}, Tools: []string{"a__*"}, Calls: 1, Per: "1m"}
	both := names(b, a)
	if len(both) != 2 || both[0] == both[1] || !slices.Contains(both, names(a)[0]) || !slices.Contains(both, names(b)[0]) {
		t.Errorf("names %v, %v, %v", both, names(a), names(b))
	}
}

func TestCheckRateLimits(t *testing.T) {
	tests := map[string]struct {
		limit policy.RateLimit
		want  string
	}{
		"nobody":          {policy.RateLimit{Calls: 1, Per: "1m"}, "ratelimit[0].to: missing"},
		"an empty role":   {policy.RateLimit{To: []string{"role:"}, Calls: 1, Per: "1m"}, "ratelimit[0].to[0]: "},
		"no tool":         {policy.RateLimit{To: []string{"*"}, Tools: []string{"a"}, Calls: 1, Per: "1m"}, "ratelimit[0].tools[0]: "},
		"no server":       {policy.RateLimit{To: []string{"*"}, Servers: []string{"A"}, Calls: 1, Per: "1m"}, "ratelimit[0].servers[0]: "},
		"a * inside":      {policy.RateLimit{To: []string{"*"}, Except: []string{"a*b"}, Calls: 1, Per: "1m"}, "ratelimit[0].except[0]: "},
		"no limit":        {policy.RateLimit{To: []string{"*"}, Per: "1m"}, "ratelimit[0]: rate: expected calls, bytes or both"},
		"no time":         {policy.RateLimit{To: []string{"*"}, Calls: 1}, "ratelimit[0]: rate.per: "},
		"a negative rate": {policy.RateLimit{To: []string{"*"}, Calls: -1, Per: "1m"}, "ratelimit[0]: rate.calls: "},
		"an unknown key":  {policy.RateLimit{To: []string{"*"}, Key: []string{"ip"}, Calls: 1, Per: "1m"}, "ratelimit[0]: rate.key: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := policy.CheckRateLimits([]policy.RateLimit{tt.limit})
			if len(got) != 1 || !strings.HasPrefix(got[0].Error(), tt.want) {
				t.Errorf("problems %v, want %s", got, tt.want)
			}
			if _, err := policy.Load(t.Context(), nil, policy.Options{RateLimits: []policy.RateLimit{tt.limit}}); err == nil {
				t.Error("it loads")
			}
		})
	}
}

// A rate that does not depend on the call leaves its decision fixed.
func TestRatesLeaveDecisionsFixed(t *testing.T) {
	e := load(t, nil, policy.Options{
		Packs:      []string{"grants", "ratelimit"},
		Grants:     []policy.Grant{{To: []string{"*"}, Tools: []string{"a__b"}}},
		RateLimits: []policy.RateLimit{{To: []string{"*"}, Calls: 1, Per: "1m"}},
	})
	for range 3 {
		d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local()}, Tool: newTool("a__b")})
		if err != nil || len(d.Obligations) != 1 {
			t.Fatalf("%+v, error %v", d, err)
		}
	}
	if e.Fixed() == 0 {
		who := gate.Local()
		tool := newTool("a__b")
		for range 3 {
			if _, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who}, Tool: tool}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e.Fixed() == 0 {
		t.Error("no decision is fixed")
	}
}
