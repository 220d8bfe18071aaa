package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Refusal reports that the gate refused a call, and at which step.
type Refusal struct {
	Step   step.Step
	Call   string // ID of the call
	Name   string // what was asked for
	Reason string // safe to show to the client
	Hidden bool   // the client must not learn whether the tool exists
	Remedy string // what would allow the call, for the operator: see [Decision]
	// Scopes are those that the caller's access token lacks for the call: see [Decision].
	Scopes []string
	// RetryAfter is when it is worth trying again; zero if that is not known.
	RetryAfter time.Duration
	// Invoked says that the upstream has had the call, and may have carried it out: only
	// the record of its end is missing. To repeat it could do twice what is done once.
	Invoked bool
	Err     error // cause, for the operator; may be nil
}

// Error returns the text for the operator: what was refused at which step, the reason, and the
// cause. A client gets only the Reason.
func (e *Refusal) Error() string {
	name := e.Name
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name) // a client chose it
	}
	s := fmt.Sprintf("%s refused at %s: %s", name, e.Step, e.Reason)
	if e.Err != nil && !strings.Contains(e.Reason, e.Err.Error()) {
		s += fmt.Sprintf(": %v", e.Err)
	}
	return s
}

// Unwrap returns the cause, or nil.
func (e *Refusal) Unwrap() error { return e.Err }

// Code returns the stable, machine-readable code of the refusal.
func (e *Refusal) Code() string { return "refused_" + string(e.Step) }

// failures are the codes that an error can have.
var failures = func() map[string]bool {
	m := make(map[string]bool)
	for _, code := range strings.Fields(`tool_error cancelled timeout
		refused_parse refused_lookup refused_authorize refused_validate_input refused_limit refused_busy refused_credential refused_approve
		refused_pin refused_app refused_store refused_record refused_validate_output refused_sanitize
		spawn_failed transport protocol not_connected
		trap_fuel trap_memory trap_deadline trap_guest trap_denied`) {
		m[code] = true
	}
	return m
}()

// Code returns the stable word for the outcome of a call: "ok" for nil, what
// the error's own Code method says, "cancelled" or "timeout" for the end of a
// context, and "protocol" for anything else. The set is closed:
//
//	ok tool_error cancelled timeout
//	refused_{parse,lookup,authorize,validate_input,limit,busy,credential,approve,pin,app,store,record,validate_output,sanitize}
//	spawn_failed transport protocol not_connected
//	trap_{fuel,memory,deadline,guest,denied}
func Code(err error) string {
	var coded interface{ Code() string }
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &coded):
		if code := coded.Code(); failures[code] {
			return code
		}
		return codes.Protocol
	case errors.Is(err, context.Canceled):
		return codes.Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.Timeout
	default:
		return codes.Protocol
	}
}
