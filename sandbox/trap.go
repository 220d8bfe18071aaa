package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

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
	// Said is the first line of what the guest wrote to standard error, such as a panic's, or
	// else of the last error that it logged; for the operator and the tool's author, not for
	// who called it.
	Said string
	// Wrote is the beginning of an output that is not what it has to be, for the same readers.
	Wrote string

	final bool // nothing else explains it better
}

func (t *Trap) Error() string {
	s := "sandbox: tool " + t.Tool + ": " + string(t.Kind) + ": " + t.Reason
	if t.Wrote != "" {
		s += "; it wrote: " + quoted(t.Wrote)
	}
	if t.Said != "" {
		s += "; it says: " + quoted(t.Said)
	}
	return s
}

// nuls are of a buffer that was written with what it is empty of.
var nuls = regexp.MustCompile("\x00{3,}")

// quoted is what a guest wrote, in quotes, of many NULs one.
func quoted(text string) string { return strconv.Quote(nuls.ReplaceAllString(text, "\x00...")) }

// Unwrap returns the engine's error.
func (t *Trap) Unwrap() error { return t.Err }

// Code returns the stable, machine-readable code of the trap.
func (t *Trap) Code() string { return "trap_" + string(t.Kind) }

// maxSaid bounds what a trap quotes of a line of its guest, and of its output, in bytes.
const maxSaid = 200

// panics are how a line begins that says why a program of Go or Rust ends; what stands
// before it was written by its work.
var panics = []string{"panic: ", "fatal error: ", "thread '"}

// said is the line of what a guest wrote that says most of why it ended.
func said(text []byte) string {
	first := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if first == "" {
			first = line
		}
		for _, p := range panics {
			if strings.HasPrefix(line, p) {
				return line[:min(len(line), maxSaid)]
			}
		}
	}
	return first[:min(len(first), maxSaid)]
}

// guestTraps are the traps of the WebAssembly specification (Core 2.0, 4.4), in
// the words of the engine. A guest that ran into one stands still, and can be
// put back; "stack overflow" is left out, after which the stack is as large as it
// can get.
var guestTraps = []string{
	"unreachable", "out of bounds memory access", "integer divide by zero", "integer overflow",
	"invalid conversion to integer", "invalid table access", "indirect call type mismatch",
}

func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// A BusyError says that a call ended before its guest began: others of the module, or of
// all, were under way for as long as it could wait.
type BusyError struct {
	Tool   string
	Waited time.Duration
}

func (e *BusyError) Error() string { return "sandbox: tool " + e.Tool + ": " + e.Public() }

// Public returns what a client may read.
func (e *BusyError) Public() string {
	return fmt.Sprintf("too many calls of tools in the sandbox are under way: none ended within %v; try again later", e.Waited)
}

// Code returns the outcome of the call.
func (e *BusyError) Code() string { return "refused_busy" }
