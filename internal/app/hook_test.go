package app_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/hook"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestHookEventsThatCannotBeRead sends events through the hook's program, the control socket and the
// gateway. A call is denied that cannot be read; a result teaches its session, and its answer is empty.
func TestHookEventsThatCannotBeRead(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\nagents: {claude-code: {}, codex: {}, gemini-cli: {}, opencode: {}}\npolicy: {packs: [grants, flow]}\n")
	var grants strings.Builder
	for _, a := range cfg.Agents {
		fmt.Fprintf(&grants, "- {to: [local], agents: [\"%s__*\"]}\n", a.ID)
	}
	write(t, cfg.Policy.Grants, grants.String())
	a := start(t, cfg)
	_, _, _ = run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	tell := func(agent, event string) (code int, out string) {
		var stdout, stderr bytes.Buffer
		code = hook.Run(t.Context(), hook.Options{Agent: agent, State: cfg.State, Within: hook.Timeout}, strings.NewReader(event), &stdout, &stderr)
		return code, stdout.String()
	}
	results := map[string]string{
		"readable":           `"a"`,
		"half a pair":        `"a \ud83d"`,
		"the other half":     `{"\udc00":1}`,
		"300 levels":         strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"20000 levels":       strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		"levels not closed":  strings.Repeat(`{"a":`, 400),
		"13 MB":              `"` + strings.Repeat("a", 13<<20) + `"`,
		"a name twice":       `{"a":1,"a":2}`,
		"NaN":                `NaN`,
		"cut off":            `"a`,
		"bytes of no letter": "\"\xff\xfe\"",
		"a raw line end":     "\"a\nb\"",
	}
	before := map[string]string{"gemini-cli": "BeforeTool"}
	after := map[string]string{"gemini-cli": "AfterTool"}
	n := 0
	for _, c := range cfg.Agents {
		pre, post := "PreToolUse", "PostToolUse"
		if before[c.ID] != "" {
			pre, post = before[c.ID], after[c.ID]
		}
		for name, result := range results {
			for _, tool := range []string{"Fetch", "mcp__wasmgate__notes"} {
				t.Run(c.ID+" "+tool+" "+name, func(t *testing.T) {
					n++
					session := fmt.Sprint("s", n)
					event := func(kind, id, tool, more string) string {
						return fmt.Sprintf(`{"session_id":%q,"hook_event_name":%q,"tool_name":%q,"tool_use_id":%q,"tool_input":{"command":%q}%s}`, session, kind, tool, id, "curl https://"+session+".example/"+id, more)
					}
					if code, out := tell(c.ID, event(pre, "0", "Bash", "")); code != 0 || out != "" {
						t.Fatalf("a clean session: %d %s", code, out)
					}
					tell(c.ID, event(pre, "1", tool, ""))
					if code, out := tell(c.ID, event(post, "1", tool, `,"tool_response":`+result)); code != 0 || out != "" {
						t.Errorf("the result is answered with %d %s", code, out)
					}
					if code, out := tell(c.ID, event(pre, "2", "Bash", "")); code == 0 && !strings.Contains(out, "deny") {
						t.Errorf("the session has learned nothing: %d %s", code, out)
					}
					if name == "readable" {
						return
					}
					if code, out := tell(c.ID, event(pre, "3", "Bash", `,"more":`+result)); code == 0 && !strings.Contains(out, "deny") {
						t.Errorf("a call that cannot be read passes: %d %s", code, out)
					}
				})
			}
		}
	}
}
