package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// An Agent is one whose hooks the gateway answers, see `wasmgate hook`. Its name is reserved:
// no server may have it.
type Agent struct {
	ID            string `key:"*"`
	As            string `key:"as"`                     // the principal whose calls its calls are; empty is local
	MCP           string `key:"mcp"`                    // the name under which it knows the gateway; empty is wasmgate
	RequireHook   bool   `key:"require_hook"`           // its calls of the gateway's tools need a hook that announced them
	TrustHeadless bool   `key:"trust_headless_prompts"` // its prompts vouch for values when nobody sits at it, too
}

// agentNames are those whose hooks are understood.
var agentNames = []string{"claude-code", "codex", "gemini-cli", "opencode"}

func (a *Agent) named(d *decoder, f tree.Field, path string) {
	if !slices.Contains(agentNames, f.Key) {
		d.fail(&tree.Node{Line: f.Line}, path, "is not an agent whose hooks wasmgate understands%s; it understands: %s", spelling.Suggest(f.Key, agentNames), strings.Join(agentNames, ", "))
	}
}

// checkAgents reports servers that have the name of an agent, at both lines, and agents that
// act for nobody.
func (d *decoder) checkAgents(root *tree.Node, c *Config) {
	agents := root.Get("agents")
	for i, a := range c.Agents {
		f := agents.Fields[i]
		if a.As != "" && a.As != "local" && !slices.ContainsFunc(c.Principals, func(p Principal) bool { return p.ID == a.As }) {
			d.fail(&tree.Node{Line: f.Line}, tree.Join(tree.Join("agents", f.Key), "as"), "there is no principal %q", a.As)
		}
		for _, of := range []string{"servers", "tools"} {
			for j, id := range c.serversOf(of) {
				if id == a.ID {
					at := root.Get(of).Fields[j]
					d.fail(&tree.Node{Line: at.Line}, tree.Join(of, at.Key), "%s", fmt.Sprintf("%s is the name of the agent in line %d: choose another", a.ID, f.Line))
				}
			}
		}
	}
}

// serversOf returns the servers that the entries below servers or tools make.
func (c *Config) serversOf(key string) (ids []string) {
	if key == "servers" {
		for _, s := range c.Servers {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for _, m := range c.Tools {
		ids = append(ids, m.Server)
	}
	return ids
}
