package config

import "time"

// Sessions says how sessions are kept.
type Sessions struct {
	// Scope is connection, where each MCP session is one, or principal, where all
	// calls of a principal are in one, whose labels outlive the gateway.
	Scope string
	TTL   time.Duration // without use, after which a session begins anew
	// TrustPrompt takes io.github.wasmgate/prompt in a call's _meta for the user's
	// own words.
	TrustPrompt bool
}

func (d *decoder) sessions(to *Sessions, n *node, path string) {
	d.table(n, path, map[string]reader{
		"scope": d.one(&to.Scope, "connection", "principal"), "ttl": d.duration(&to.TTL, time.Minute, 1000*time.Hour), "trust_prompt": d.flag(&to.TrustPrompt),
	})
}
