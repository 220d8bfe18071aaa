package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Names of the agents whose hooks are understood.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	GeminiCLI  = "gemini-cli"
	OpenCode   = "opencode"
)

// readTool is by which an agent reads the files that a prompt names.
var readTool = map[string]string{ClaudeCode: "Read", Codex: "Bash", GeminiCLI: "read_file", OpenCode: "read"}

// clientNames are what agents say they are to an MCP server.
var clientNames = map[string]string{ClaudeCode: "claude-code", Codex: "codex-mcp-client", GeminiCLI: "gemini-cli-mcp-client", OpenCode: "opencode"}

// kind is what an event is about.
type kind int

const (
	other  kind = iota // nothing that counts
	before             // a call
	after
	failed
	prompted
	stopped
	ended // the session
)

// kinds are what the names of events mean: those of Claude Code, which Codex and our plugin
// for OpenCode use too, and those of Gemini CLI.
var kinds = map[string]kind{
	"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": failed, "UserPromptSubmit": prompted, "Stop": stopped, "SessionEnd": ended,
	"BeforeTool": before, "AfterTool": after, "BeforeAgent": prompted, "AfterAgent": stopped,
}

// nameless are those whose MCP clients send no id with a call.
var nameless = map[string]bool{GeminiCLI: true, OpenCode: true}

// event is what a hook reports, in the same form for every agent.
type event struct {
	kind       kind
	session    string
	call       string // the agent's id of it
	unnamed    bool   // the agent has none, and call was made up
	subagent   string
	tool       string
	ours       string // the tool of this gateway that is called, as its clients know it; "" if it is none
	input      gate.Doc
	result     gate.Doc
	prompt     string
	headless   bool
	background bool
	scheduled  []string // prompts that the model has scheduled
}

// read parses the event that an agent's hook reports. If the hook is one of a call, an error denies the
// call.
func read(agent string, raw gate.Doc, r options.Agent, headless bool) (event, error) {
	if raw.Kind() != doc.Object {
		return event{}, errors.New("the agent's hook event is not a JSON object")
	}
	name := raw.Get("hook_event_name").Text()
	e := event{
		kind: kinds[name], session: raw.Get("session_id").Text(), subagent: raw.Get("agent_id").Text(), headless: headless,
		tool: raw.Get("tool_name").Text(), input: raw.Get("tool_input"), call: raw.Get("tool_use_id").Text(),
		result: raw.Get("tool_response"), prompt: raw.Get("prompt").Text(), background: len(slices.Collect(raw.Get("background_tasks").Elements())) > 0,
	}
	switch {
	case name == "":
		return e, errors.New("the agent's hook event has no hook_event_name")
	case e.session == "" && e.kind != other:
		return e, fmt.Errorf("%s has no session_id", name)
	}
	for one := range raw.Get("session_crons").Elements() {
		e.scheduled = append(e.scheduled, one.Get("prompt").Text())
	}
	if e.kind == failed {
		e.result = raw.Get("error")
	}
	if e.kind != before && e.kind != after && e.kind != failed {
		return e, nil
	}
	if e.input.IsZero() {
		e.input = gate.MustDoc("{}")
	}
	if e.tool == "" || e.input.Kind() != doc.Object {
		return e, fmt.Errorf("%s has no tool_name, or its tool_input is not an object", name)
	}
	e.ours = ours(agent, raw, e.tool, r.MCP)
	if e.call == "" {
		if agent != GeminiCLI {
			return e, fmt.Errorf("%s has no tool_use_id", name)
		}
		e.unnamed, e.call = true, gate.NewID()
	}
	return e, nil
}

// ours returns which tool of this gateway an agent calls, by the name under which it has it.
func ours(agent string, raw gate.Doc, tool, mcp string) string {
	switch agent {
	case GeminiCLI:
		if in := raw.Get("mcp_context"); in.Get("server_name").Text() == mcp {
			return in.Get("tool_name").Text()
		}
		return ""
	case OpenCode:
		return cut(tool, mcp+"_")
	default:
		return cut(tool, "mcp__"+mcp+"__")
	}
}

// cut returns what follows a prefix; "" if s does not begin with it.
func cut(s, prefix string) string {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return ""
	}
	return rest
}

// text is a document that is one string.
func text(s string) gate.Doc {
	d, err := gate.ParseDoc([]byte(quote(s)))
	if err != nil {
		return gate.MustDoc(`""`)
	}
	return d
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
