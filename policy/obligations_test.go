package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/policy"
)

// obliges decides on a call under the given obligations.
func obliges(t *testing.T, obligations ...string) (gate.Decision, error) {
	t.Helper()
	rules := "allow contains \"all\" if input.action == \"tools/call\"\n"
	for _, o := range obligations {
		rules += "\nobligations contains " + o + " if input.action == \"tools/call\"\n"
	}
	e := load(t, user(rules), policy.Options{Packs: []string{}})
	return e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local()}, Tool: newTool("a__b")})
}

func TestObligationsOfOneMember(t *testing.T) {
	minute := obligation.Rate{Key: []obligation.RateKey{obligation.ByPrincipal, obligation.ByTool}, Calls: 10, Bytes: 1e6, Per: time.Minute, Burst: 5}
	tests := map[string]struct {
		obligations []string
		want        []obligation.Obligation
	}{
		"redact": {
			[]string{`{"redact": {"arguments": ["/b", "/a/0", "/b"], "result": {"/structuredContent/ssn", "/content/0/text"}}}`},
			[]obligation.Obligation{obligation.Redact{Arguments: []string{"/a/0", "/b"}, Result: []string{"/content/0/text", "/structuredContent/ssn"}}},
		},
		"redact arguments alone": {[]string{`{"redact": {"arguments": ["/~0~1"]}}`}, []obligation.Obligation{obligation.Redact{Arguments: []string{"/~0~1"}}}},
		"redact twice: both hold": {
			[]string{`{"redact": {"arguments": ["/a"]}}`, `{"redact": {"arguments": ["/b"]}}`},
			[]obligation.Obligation{obligation.Redact{Arguments: []string{"/a"}}, obligation.Redact{Arguments: []string{"/b"}}},
		},
		"rate": {[]string{`{"rate": {"key": ["tool", "principal"], "calls": 10, "bytes": 1000000, "per": "1m", "burst": 5}}`}, []obligation.Obligation{minute}},
		"two rates: both hold": {
			[]string{`{"rate": {"calls": 1, "per": "1s"}}`, `{"rate": {"name": "x", "calls": 1, "per": "1s"}}`},
			[]obligation.Obligation{obligation.Rate{Name: "x", Calls: 1, Per: time.Second}, obligation.Rate{Calls: 1, Per: time.Second}},
		},
		"record":  {[]string{`{"record": "full"}`}, []obligation.Obligation{obligation.RecordFull{}}},
		"approve": {[]string{`{"approve": true}`}, []obligation.Obligation{obligation.Approve{}}},
		"approve by": {
			[]string{`{"approve": {"by": ["role:lead", "acme/ann"], "not_self": true}}`},
			[]obligation.Obligation{obligation.Approve{By: []string{"acme/ann", "role:lead"}, NotSelf: true}},
		},
		"several of a kind, the strictest": {
			[]string{`{"type": "timeout", "after": "5s"}`, `{"type": "timeout", "after": "1s"}`, `{"record": "full"}`},
			[]obligation.Obligation{obligation.Timeout{After: time.Second}, obligation.RecordFull{}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := obliges(t, tt.obligations...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.Obligations); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is not understood whole denies the call: half of it would not be met.
func TestObligationsThatAreNotUnderstood(t *testing.T) {
	tests := map[string]struct{ obligation, says string }{
		"redact: nothing":                   {`{"redact": {}}`, "an object of arguments, result or both"},
		"redact: a list":                    {`{"redact": ["/a"]}`, "an object of arguments, result or both"},
		"redact: no pointer":                {`{"redact": {"arguments": []}}`, "redact.arguments: expected at least one JSON Pointer"},
		"redact: a name":                    {`{"redact": {"arguments": ["ssn"]}}`, "begins with /"},
		"redact: all arguments":             {`{"redact": {"arguments": [""]}}`, "begins with /"},
		"redact: a bad escape":              {`{"redact": {"arguments": ["/a~2"]}}`, "~ is written ~0"},
		"redact: an escape at the end":      {`{"redact": {"arguments": ["/a~"]}}`, "~ is written ~0"},
		"redact: no text":                   {`{"redact": {"arguments": [7]}}`, "expected strings"},
		"redact: a whole result":            {`{"redact": {"result": ["/structuredContent"]}}`, "begins with /structuredContent/ or /content/"},
		"redact: what no one reads":         {`{"redact": {"result": ["/_meta/x"]}}`, "begins with /structuredContent/ or /content/"},
		"redact: an unknown member":         {`{"redact": {"arguments": ["/a"], "headers": ["/b"]}}`, "redact.headers: unknown member of the obligation; check its spelling"},
		"redact: too many":                  {`{"redact": {"arguments": [p | some i in numbers.range(1, 65); p := sprintf("/%d", [i])]}}`, "more than 64"},
		"redact beside something":           {`{"redact": {"arguments": ["/a"]}, "record": "full"}`, "unknown type of obligation"},
		"rate: nothing":                     {`{"rate": {"per": "1m"}}`, "expected calls, bytes or both"},
		"rate: no time":                     {`{"rate": {"calls": 1}}`, "rate.per: missing"},
		"rate: no calls at all":             {`{"rate": {"calls": 0, "per": "1m"}}`, "rate.calls: expected a whole number from 1"},
		"rate: half a call":                 {`{"rate": {"calls": 0.5, "per": "1m"}}`, "rate.calls: expected a whole number from 1"},
		"rate: no number":                   {`{"rate": {"bytes": "1MiB", "per": "1m"}}`, "rate.bytes: expected a whole number from 1"},
		"rate: too large a number":          {`{"rate": {"calls": 1e30, "per": "1m"}}`, "rate.calls: expected a whole number from 1"},
		"rate: a time without a unit":       {`{"rate": {"calls": 1, "per": 60}}`, "rate.per: expected a duration"},
		"rate: no time at all":              {`{"rate": {"calls": 1, "per": "0s"}}`, "rate.per: expected a duration"},
		"rate: a burst of bytes":            {`{"rate": {"bytes": 1, "burst": 1, "per": "1m"}}`, "rate.burst: expected calls, too"},
		"rate: a key that no one knows":     {`{"rate": {"key": ["ip"], "calls": 1, "per": "1m"}}`, "rate.key: "},
		"rate: an unknown member":           {`{"rate": {"cals": 1, "calls": 1, "per": "1m"}}`, "rate.cals: unknown member of the obligation; check its spelling"},
		"record: anything else":             {`{"record": "digest"}`, `expected record, the text "full"`},
		"approve: false":                    {`{"approve": false}`, "expected approve, true or an object"},
		"approve: by no one":                {`{"approve": {"by": []}}`, "name principals, role:NAME"},
		"approve: not_self: false":          {`{"approve": {"not_self": false}}`, "expected true"},
		"an obligation no one has heard of": {`{"encrypt": true}`, "unknown type of obligation"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := obliges(t, tt.obligation)
			if err == nil || !strings.Contains(err.Error(), tt.says) || d.Effect == gate.Allow {
				t.Errorf("decision %+v, error %v, want one with %q", d, err, tt.says)
			}
		})
	}
}
