package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// A denial says which scopes would lift it if each rule that denies names some, however often
// it is decided; and such a tool stays in lists.
func TestScopesThatWouldDo(t *testing.T) {
	const allowed = "allow contains \"x\"\n\n"
	for name, tt := range map[string]struct {
		rules, scopes string
		reasons       int
		visible       bool
	}{
		"of one":            {`deny contains {"reason": "r", "scopes": ["b", "a"]} if input.tool.server == "files"`, "a b", 1, true},
		"of two":            {"deny contains {\"reason\": \"r\", \"scopes\": [\"b\"]}\n\ndeny contains {\"reason\": \"s\", \"scopes\": {\"a\", \"b\"}}", "a b", 2, true},
		"another denies":    {"deny contains {\"reason\": \"r\", \"scopes\": [\"b\"]}\n\ndeny contains \"s\"", "", 2, false},
		"by the arguments":  {`deny contains {"reason": "r", "scopes": ["b"]} if not input.arguments.mild`, "b", 1, true},
		"of nobody's token": {`deny contains "r" if not input.arguments.mild`, "", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(allowed+tt.rules), policy.Options{Packs: []string{}})
			tool := newTool("files__read")
			who := gate.Local()
			for range 4 { // then what was proved of it decides
				d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who, Args: gate.MustDoc("{}")}, Tool: tool})
				if err != nil || d.Effect != gate.Deny || len(d.Reasons) != tt.reasons || strings.Join(d.Scopes, " ") != tt.scopes || d.Hidden == tt.visible {
					t.Fatalf("decided %+v, %v", d, err)
				}
			}
			seen, err := e.Visible(t.Context(), who, []*gate.Tool{tool})
			if err != nil || !slices.Equal(seen, []bool{tt.visible}) {
				t.Errorf("visible: %v, %v", seen, err)
			}
			if v, _, err := study.VerdictOf(t.Context(), e, who, tool); err != nil || (v == study.Never) == tt.visible {
				t.Errorf("verdict: %v, %v", v, err)
			}
		})
	}
}

func TestScopesAreStrict(t *testing.T) {
	for name, rule := range map[string]string{
		"no scopes":        `deny contains {"reason": "r", "scopes": []}`,
		"no list":          `deny contains {"reason": "r", "scopes": "a"}`,
		"two in one":       `deny contains {"reason": "r", "scopes": ["a b"]}`,
		"no reason":        `deny contains {"scopes": ["a"]}`,
		"an empty reason":  `deny contains {"reason": "", "scopes": ["a"]}`,
		"more than that":   `deny contains {"reason": "r", "scopes": ["a"], "url": "x"}`,
		"a rule of allow":  `allow contains {"reason": "r", "scopes": ["a"]}`,
		"a rule of ask":    "allow contains \"x\"\n\nask contains {\"reason\": \"r\", \"scopes\": [\"a\"]}",
		"allow, with more": "allow contains \"x\"\n\nallow contains {\"reason\": \"r\", \"scopes\": [\"a\"]}",
	} {
		e := load(t, user(rule), policy.Options{Packs: []string{}})
		d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local(), Args: gate.MustDoc("{}")}, Tool: newTool("files__read")})
		if err == nil {
			t.Errorf("%s: decided %+v", name, d)
		}
	}
}
