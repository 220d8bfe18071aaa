package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/policy"
)

// An ErrorCode is the kind of failure of an [Error], for programs that embed a gateway. The set is
// closed. It is coarser than that of [gate.Code], which is for operators: what the gate says is in
// the error's details.
type ErrorCode string

// The codes of errors.
const (
	ConnectionFailed   ErrorCode = "connection_failed"       // the server could not be started or reached
	TransportError     ErrorCode = "transport_error"         // the connection to the server broke
	NotConnected       ErrorCode = "not_connected"           // the call's server is not there, or the client was closed
	SessionError       ErrorCode = "session_error"           // the session, or the gateway itself, has ended
	TimedOut           ErrorCode = "timeout"                 // there was no answer before the call's end: its time was up, or the caller has left
	ProtocolError      ErrorCode = "protocol_error"          // the server's answer is not valid
	ServerError        ErrorCode = "server_error"            // the server, a sandboxed tool, or the gate answered with a failure
	InvalidParameters  ErrorCode = "invalid_parameters"      // the arguments break what the tool declares, or are no JSON
	ToolNotFound       ErrorCode = "tool_not_found"          // or hidden from the caller; also a method
	ResourceNotFound   ErrorCode = "resource_not_found"      // likewise
	PromptNotFound     ErrorCode = "prompt_not_found"        // likewise; also of completion
	ConfigError        ErrorCode = "config_error"            // the gateway cannot be built as it is configured
	SchemaIncompatible ErrorCode = "schema_conversion_error" // a tool cannot be described in the form that was asked for
)

// An Outcome is how a call has ended, as [gate.Code] and the audit log say it. The gate's refusals
// have constants; others are what [gate.Code] lists, such as transport and trap_fuel.
type Outcome string

// The refusals of the gate, one for each of its checks: nothing was carried out, but where
// [Error].Details say invoked. docs/reference/library.md says what to do of each.
const (
	RefusedParse          Outcome = "refused_parse"           // the arguments are no JSON object
	RefusedLookup         Outcome = "refused_lookup"          // there is no such tool, or it is hidden
	RefusedPin            Outcome = "refused_pin"             // the definition as it is now is not approved
	RefusedApp            Outcome = "refused_app"             // the tool is only for its server's app, and none is open
	RefusedAuthorize      Outcome = "refused_authorize"       // the policy denies the call, or nothing grants it
	RefusedValidateInput  Outcome = "refused_validate_input"  // the arguments break the schema
	RefusedApprove        Outcome = "refused_approve"         // a person has denied the call, has not answered ([Error].Approval), or cannot be asked
	RefusedLimit          Outcome = "refused_limit"           // there were too many such calls lately ([Error].RetryAfter), or the result is too large
	RefusedBusy           Outcome = "refused_busy"            // too many calls are under way
	RefusedCredential     Outcome = "refused_credential"      // the caller has to log in at the server first
	RefusedStore          Outcome = "refused_store"           // the database that several gateways share cannot be used
	RefusedRecord         Outcome = "refused_record"          // the audit log cannot be written
	RefusedValidateOutput Outcome = "refused_validate_output" // the result breaks the schema
	RefusedSanitize       Outcome = "refused_sanitize"        // the result could not be sanitized
)

// outcomes maps each code of [gate.Code] to the code of an error. Again is what
// [gate.Retryable] says of it.
//
//	gate                                               error               again
//	spawn_failed                                       connection_failed   yes
//	transport                                          transport_error     if it is safe
//	not_connected                                      not_connected       yes
//	timeout                                            timeout             if it is safe
//	trap_deadline, cancelled                           timeout             no
//	protocol, refused_validate_output                  protocol_error      no
//	tool_error, trap_{fuel,memory,guest,denied}        server_error        no
//	refused_{authorize,approve,app,pin,sanitize}       server_error        no
//	refused_credential                                 server_error        no
//	refused_{limit,busy,store,record}                  server_error        yes
//	refused_parse, refused_validate_input              invalid_parameters  no
//	refused_lookup, and what is hidden                 {tool,prompt,resource}_not_found  no
//
// A call that waits for a person can succeed later, too. config_error and
// schema_conversion_error are of no call.
var outcomes = map[Outcome]ErrorCode{
	"spawn_failed":  ConnectionFailed,
	"transport":     TransportError,
	"not_connected": NotConnected,
	codes.Timeout:   TimedOut,
	"trap_deadline": TimedOut,
	codes.Cancelled: TimedOut,
	codes.Protocol:  ProtocolError,
	codes.ToolError: ServerError,
	"trap_fuel":     ServerError,
	"trap_memory":   ServerError,
	"trap_guest":    ServerError,
	"trap_denied":   ServerError,

	RefusedAuthorize:      ServerError,
	RefusedApprove:        ServerError,
	RefusedApp:            ServerError,
	RefusedPin:            ServerError,
	RefusedSanitize:       ServerError,
	RefusedLimit:          ServerError,
	RefusedBusy:           ServerError,
	RefusedCredential:     ServerError,
	RefusedStore:          ServerError,
	RefusedRecord:         ServerError,
	RefusedParse:          InvalidParameters,
	RefusedValidateInput:  InvalidParameters,
	RefusedValidateOutput: ProtocolError,
	RefusedLookup:         ToolNotFound,
}

// An Error is a failure in the words of a client library: its kind, its server and tool, and
// whether trying again can help. Its text is for operators; Message and the JSON form may be shown
// to a model.
type Error struct {
	Code    ErrorCode
	Message string
	Server  string // "" if no server is concerned
	Tool    string // as it was asked for: a tool, a prompt or a URI; "" if the error is of no call
	// Outcome is the code of [gate.Code], finer than Code; "" if the error is of no call.
	Outcome Outcome
	// Record is the call's ID in the audit log; Approval the ID of the question that a person has
	// to answer first, "" if there is none.
	Record, Approval string
	// RetryAfter is after how long to try again; zero if that is not known.
	RetryAfter time.Duration
	// Details say the same to programs that read JSON, as "outcome", "record", "approval" and
	// "retry_after_ms", and more: "invoked", true if the call was carried out, or may
	// have been; "candidates", the tools that a name could mean; "violations", where arguments break
	// the schema, as JSON Pointers.
	Details map[string]any

	again bool
	err   error
}

// Error implements error. It holds the cause.
func (e *Error) Error() string {
	if e.err == nil {
		return string(e.Code) + ": " + e.Message
	}
	return string(e.Code) + ": " + e.err.Error()
}

// Unwrap returns the cause, so that [gate.Code] and [errors.Is] work: errors.Is(err,
// context.Canceled) holds when the caller has left. If a program has made the Error itself, such as
// a test's fake, the cause is its Outcome.
func (e *Error) Unwrap() error {
	if e.err == nil && e.Outcome != "" {
		return bare(e.Outcome)
	}
	return e.err
}

// bare is an outcome without any other cause.
type bare Outcome

func (b bare) Error() string { return string(b) }
func (b bare) Code() string  { return string(b) }

// Retryable reports whether it is safe to make the same call again, and the call can succeed
// then: see [gate.Retryable].
func (e *Error) Retryable() bool {
	return e.again || e.err == nil && e.Outcome != "" && gate.Retryable(e.Unwrap())
}

// NeedsReconnect reports whether nothing will succeed before somebody connects
// again: the server, or this client.
func (e *Error) NeedsReconnect() bool {
	return e.Code == SessionError || e.Code == NotConnected && e.again
}

// MarshalJSON returns {"code", "message", "retryable"} with server, tool and details
// where there are any, and no cause.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code      ErrorCode      `json:"code"`
		Message   string         `json:"message"`
		Server    string         `json:"server,omitempty"`
		Tool      string         `json:"tool,omitempty"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details,omitempty"`
	}{e.Code, e.Message, e.Server, e.Tool, e.Retryable(), e.Details})
}

// AsError makes an Error of what [Gateway.Do] or [New] returned: of the call c, or of no call if
// that is zero. Nil stays nil, and an Error stays as it is.
func AsError(c gate.Call, err error) *Error {
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[*Error](err); ok {
		return already
	}
	if errors.Is(err, ErrDraining) || errors.Is(err, session.ErrUnknown) {
		return &Error{Code: SessionError, Message: err.Error(), Tool: c.Name, again: true, err: err}
	}
	if c.Action == "" {
		return ofNoCall(err)
	}
	if several, ok := errors.AsType[*find.AmbiguousError](err); ok {
		return &Error{
			Code: InvalidParameters, Message: err.Error(), Tool: c.Name, err: err,
			Details: map[string]any{"candidates": several.Candidates},
		}
	}
	outcome := Outcome(gate.Code(err))
	e := &Error{
		Code: outcomes[outcome], Message: message.Public(err), Server: serverOf(c, err), Tool: c.Name, again: gate.Retryable(err), err: err,
		Outcome: outcome, Record: gate.RecordID(c.ID, err), Details: map[string]any{"outcome": string(outcome)},
	}
	if r, ok := errors.AsType[*gate.Refusal](err); ok {
		e.refused(c, r)
	}
	if _, ok := errors.AsType[*recording.MissingError](err); ok {
		e.again = false // a recording gets no other
	}
	if at := message.BrokenAt(err); at != nil {
		e.Details["violations"] = at
	}
	if p, ok := errors.AsType[*gate.Pending](err); ok {
		e.Approval = p.ID
		e.Details["approval"] = p.ID
	}
	if e.Record != "" {
		e.Details["record"] = e.Record
	}
	return e
}

// refused adds what a refusal says.
func (e *Error) refused(c gate.Call, r *gate.Refusal) {
	if e.Record == "" {
		e.Record = r.Call
	}
	if e.RetryAfter = r.RetryAfter; r.RetryAfter > 0 {
		e.Details["retry_after_ms"] = max(1, r.RetryAfter.Milliseconds())
	}
	if r.Invoked {
		e.Details["invoked"] = true
	}
	if r.Step != step.Lookup && !r.Hidden {
		return
	}
	e.Server = "" // whether there is one is not to be learnt
	switch {
	case c.Action == gate.GetPrompt, c.Action == gate.Complete:
		e.Code = PromptNotFound
	case c.Action == gate.CallTool, actions.IsMethod(c.Action):
		e.Code = ToolNotFound
	default:
		e.Code = ResourceNotFound
	}
}

// ofNoCall tells a configuration that cannot be from a server that cannot be
// reached.
func ofNoCall(err error) *Error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		e := AsError(gate.Call{Action: gate.CallTool}, f)
		e.Tool, e.err = "", err
		return e
	}
	e := &Error{Code: ConfigError, Message: err.Error(), err: err}
	_, module := errors.AsType[*ModuleError](err)
	_, rego := errors.AsType[*policy.CompileError](err)
	_, pins := errors.AsType[*lock.SyntaxError](err)
	if code := gate.Code(err); !module && !rego && !pins && code != codes.Protocol { // protocol stands for any error
		e.Code, e.again = outcomes[Outcome(code)], gate.Retryable(err)
	}
	return e
}

// serverOf returns the server that a failure is of.
func serverOf(c gate.Call, err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Server
	}
	if c.Action == gate.CallTool || c.Action == gate.GetPrompt || actions.IsMethod(c.Action) {
		if server, _, ok := strings.Cut(c.Name, "__"); ok {
			return server
		}
	}
	return ""
}

// incompatible says that a tool cannot be described as it was asked for.
func incompatible(t *gate.Tool, format string, args ...any) *Error {
	return &Error{Code: SchemaIncompatible, Message: fmt.Sprintf(format, args...), Server: t.Name.Server, Tool: t.Offered}
}
