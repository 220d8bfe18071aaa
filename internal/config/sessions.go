package config

import "time"

// Sessions says how sessions are kept.
type Sessions struct {
	// Scope is connection, where each MCP session is one, or principal, where all
	// calls of a principal are in one.
	Scope string        `key:"scope connection|principal" default:"connection" restart:"yes"`
	TTL   time.Duration `key:"ttl 1m..1000h" default:"1h"` // without use, after which a session begins anew
	// TrustPrompt takes io.github.wasmgate/prompt in a call's _meta for the user's
	// own words.
	TrustPrompt bool `key:"trust_prompt"`
}
