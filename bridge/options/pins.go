package options

// Pins say which definitions of servers count as approved, and where that is kept.
type Pins struct {
	Mode PinMode // "" means PinTrustFirst
	File string  // path of the lockfile, which need not exist; required
	Dir  string  // folder for what is trusted first, and for the last listings of servers; required
}

// A PinMode says what is approved of servers that the lockfile does not have.
type PinMode string

// The modes.
const (
	// PinTrustFirst trusts what a server declares when it is first seen.
	PinTrustFirst PinMode = "trust-first"
	// PinStrict trusts nothing.
	PinStrict PinMode = "strict"
	// PinOff approves of everything, and keeps nothing.
	PinOff PinMode = "off"
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
