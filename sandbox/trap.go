package sandbox

// TrapKind says why a call was ended. The set is closed.
type TrapKind string

const (
	TrapFuel     TrapKind = "fuel"     // used more instructions than Limits.Fuel
	TrapMemory   TrapKind = "memory"   // failed after it was denied more memory
	TrapDeadline TrapKind = "deadline" // ran longer than Limits.Timeout
	TrapGuest    TrapKind = "guest"    // did what no guest may: trapped, exited, wrote too much, broke the ABI
	TrapDenied   TrapKind = "denied"   // went on asking for what it was denied
)

// A Trap reports that a guest failed or exceeded a limit. A tool error that
// the guest itself reports is none: it is a [Result] with IsError.
type Trap struct {
	Kind   TrapKind
	Tool   string
	Reason string // in words of the sandbox alone
	Err    error  // the engine's error, for the operator; may be nil, may quote names from the module

	final bool // nothing else explains it better
}

func (t *Trap) Error() string {
	return "sandbox: tool " + t.Tool + ": " + string(t.Kind) + ": " + t.Reason
}

// Unwrap returns the engine's error.
func (t *Trap) Unwrap() error { return t.Err }

// Code returns the stable, machine-readable code of the trap.
func (t *Trap) Code() string { return "trap_" + string(t.Kind) }
