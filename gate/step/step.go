package step

import "time"

// A Step is one step of the way through the gate.
type Step string

// The steps, in the order in which a call takes them. Limit and Busy are one
// step with two outcomes: over a limit, and over it for the moment. Store is where a call needs
// what several gateways share: at the latest when it is admitted, and once more for its result.
const (
	Parse          Step = "parse"
	Lookup         Step = "lookup"
	Pin            Step = "pin"
	App            Step = "app"
	Authorize      Step = "authorize"
	ValidateInput  Step = "validate_input"
	Approve        Step = "approve"
	Limit          Step = "limit"
	Busy           Step = "busy"
	Store          Step = "store"
	Record         Step = "record"
	Invoke         Step = "invoke"
	ValidateOutput Step = "validate_output"
	Sanitize       Step = "sanitize"
)

// Time is the time that one step of a call took.
type Time struct {
	Step Step
	Took time.Duration
}
