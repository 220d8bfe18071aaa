package policy_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// TestTheFirstRule: the rule of docs/how-to/rules.md does what the page says, however a call names its
// files, lets harmless calls pass, and gives no cause for a warning.
func TestTheFirstRule(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```rego\n")
	rule, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the page has no rule")
	}
	files := fstest.MapFS{"team.rego": {Data: []byte(rule)}}
	o := policy.Options{Packs: []string{"grants", "paths"}, Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"files"}}}}
	if problems, err := policy.Check(files, o); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	e := load(t, files, o)
	for args, want := range map[string]gate.Effect{
		`{"path":"/srv/docs/a.txt"}`: gate.Allow,
		`{"path":"/srv/docs"}`:       gate.Allow,
		`{}`:                         gate.Allow, // list_allowed_directories
		`{"paths":["/srv/docs/a","/srv/docs/b"]}`:                                     gate.Allow,
		`{"source":"/srv/docs/a","destination":"/srv/docs/b"}`:                        gate.Allow,
		`{"path":"/srv/docs/../src/a.txt"}`:                                           gate.Deny,
		`{"path":"/srv/docs-old/a.txt"}`:                                              gate.Deny,
		`{"path":"a.txt"}`:                                                            gate.Deny,
		`{"path":["/etc/passwd"]}`:                                                    gate.Deny,
		`{"paths":["/srv/docs/a","/etc/passwd"]}`:                                     gate.Deny,
		`{"paths":["/etc/passwd"],"path":"/srv/docs/x"}`:                              gate.Deny,
		`{"source":"/etc/passwd","destination":"/srv/docs/b"}`:                        gate.Deny,
		`{"source":"/srv/docs/a","destination":"/home/x/.bashrc","path":"/srv/docs"}`: gate.Deny,
	} {
		if d, err := e.Authorize(t.Context(), query("files__tool", args)); err != nil || d.Effect != want {
			t.Errorf("%s: %s (%q, %v), want %s", args, d.Effect, d.Reasons, err, want)
		}
	}
}
