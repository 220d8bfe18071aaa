package gate

// The members that the gate adds to a result's _meta.
const (
	// MetaFindings lists what was found in a result: values of [Finding].
	MetaFindings = "io.github.wasmgate/findings"
	// MetaRefusal is {code, record_id} in the result of a refused call, whose text has the reason; retryable,
	// true, if the same call can succeed later; violations, JSON Pointers into the arguments,
	// if they break the schema; and
	// retry_after_ms if it is known when trying again is worth it; and invoked, true, if
	// the call may have been carried out: see [Refusal].
	MetaRefusal = "io.github.wasmgate/refusal"
)

// MetaPrompt is the member of a request's _meta in which a host application gives the user's
// own words, a string. See [Parts].TrustPrompt.
const MetaPrompt = "io.github.wasmgate/prompt"
