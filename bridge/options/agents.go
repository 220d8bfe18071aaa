package options

import (
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// An Agent is what the operator says of one agent. The zero Agent is the usual one.
type Agent struct {
	// MCP is the name under which the agent knows this gateway. Empty means wasmgate.
	MCP string
	// RequireHook refuses calls of clients that say they are the agent if no hook has
	// announced them.
	RequireHook bool
	// TrustHeadless lets the prompts of runs without a person at the terminal vouch for
	// values, too. Only trusted people may write the prompts of such runs.
	TrustHeadless bool
}

// A Hook is what the hook of an agent reports, as it came.
type Hook struct {
	Agent string   // the agent's name, as in the configuration
	Event gate.Doc // as the agent wrote it
	// Unreadable says why Event is only what could be made out of the event; nil if it is whole.
	Unreadable error
	// Headless says that no person sits at the agent.
	Headless bool
	// Observe decides and records, and lets everything pass.
	Observe bool
	// Hold is how long the hook may take, so that a person can be asked meanwhile.
	Hold time.Duration
}

// A HookAnswer is what the hook of an agent prints, and its exit status. The zero HookAnswer has
// the agent go on as it would without a hook.
type HookAnswer struct {
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	Exit   int    `json:"exit,omitempty"`
}
