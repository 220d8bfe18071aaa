package gate

// ToolLabels are what the operator says of a tool: what its results are, what it
// does, and by which arguments somebody could turn it against the user.
type ToolLabels struct {
	Result  ResultKind
	Private bool // results hold what is not for everybody
	// Kind says what the texts of results are; "" leaves that to the names of the files that
	// a call reads.
	Kind    TextKind
	Effects []ToolEffect
	// Control are JSON Pointers into the arguments: to whom, or on what, the tool
	// acts. Each stands for all below it. Nil means that all arguments are.
	Control []string
	// Content are JSON Pointers to arguments that the tool gives to others. Nil
	// means all that are not in Control.
	Content []string
}

// A ResultKind says who may have written a tool's results. The zero ResultKind is
// ResultUntrusted.
type ResultKind string

// The kinds of results.
const (
	ResultUntrusted ResultKind = "untrusted" // somebody outside may have
	ResultTrusted   ResultKind = "trusted"   // nobody outside could
	ResultEcho      ResultKind = "echo"      // it says what it was told
)

// A ToolEffect is something that a tool does.
type ToolEffect string

// The effects of tools.
const (
	EffectRead        ToolEffect = "read"        // nothing changes
	EffectLocal       ToolEffect = "local"       // changes what the user has on the machine
	EffectInternal    ToolEffect = "internal"    // changes what the user has elsewhere
	EffectExternal    ToolEffect = "external"    // reaches other people
	EffectDestructive ToolEffect = "destructive" // what is lost is lost
	EffectEgress      ToolEffect = "egress"      // sends data to an address
	EffectCredential  ToolEffect = "credential"  // changes who has access
)

// ToolEffects returns all effects of tools.
func ToolEffects() []ToolEffect {
	return []ToolEffect{EffectRead, EffectLocal, EffectInternal, EffectExternal, EffectDestructive, EffectEgress, EffectCredential}
}

// Teaches returns the labels that a session gets from a result. That of a tool
// which says what it was told teaches nothing that the session has not read.
func (l ToolLabels) Teaches() Labels {
	var names []string
	switch l.Result {
	case ResultTrusted, ResultEcho:
	default:
		names = append(names, Untrusted)
	}
	if l.Private {
		names = append(names, Private)
	}
	return NewLabels(names...)
}
