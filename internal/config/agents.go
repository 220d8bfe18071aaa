package config

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// An Agent is one whose hooks the gateway answers, see `wasmgate hook`. Its name is reserved:
// no server may have it.
type Agent struct {
	ID            string `key:"*"`
	As            string `key:"as"`                     // the principal whose calls its calls are; empty is local
	MCP           string `key:"mcp"`                    // the name under which it knows the gateway; empty is wasmgate
	RequireHook   bool   `key:"require_hook"`           // its calls of the gateway's tools need a hook that announced them
	TrustHeadless bool   `key:"trust_headless_prompts"` // its prompts vouch for values even when no one sits at it
}

// agentNames are those whose hooks are understood.
var agentNames = []string{"claude-code", "codex", "gemini-cli", "opencode"}

// Named implements [decode.Named].
func (a *Agent) Named(f decode.Field) {
	if !slices.Contains(agentNames, f.Key) {
		f.At.Fail("is not an agent whose hooks wasmgate understands%s; it understands: %s", spelling.Suggest(f.Key, agentNames), strings.Join(agentNames, ", "))
	}
}
