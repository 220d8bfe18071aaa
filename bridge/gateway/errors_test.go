package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/gate/step"
)

// coded is an error of a part that names its outcome.
type coded string

func (c coded) Error() string { return "secret cause" }
func (c coded) Code() string  { return string(c) }

// TestErrorCodes takes every code that a call can end with.
func TestErrorCodes(t *testing.T) {
	retry, once := true, false
	tests := map[string]struct {
		code  gateway.ErrorCode
		again bool
	}{
		"spawn_failed": {gateway.ConnectionFailed, retry}, "transport": {gateway.TransportError, once},
		"not_connected": {gateway.NotConnected, retry}, "timeout": {gateway.TimedOut, once}, "cancelled": {gateway.TimedOut, once},
		"protocol": {gateway.ProtocolError, once}, "tool_error": {gateway.ServerError, once},
		"trap_fuel": {gateway.ServerError, once}, "trap_memory": {gateway.ServerError, once}, "trap_deadline": {gateway.TimedOut, once},
		"trap_guest": {gateway.ServerError, once}, "trap_denied": {gateway.ServerError, once},
		"refused_parse": {gateway.InvalidParameters, once}, "refused_lookup": {gateway.ToolNotFound, once},
		"refused_authorize": {gateway.ServerError, once}, "refused_validate_input": {gateway.InvalidParameters, once},
		"refused_limit": {gateway.ServerError, once}, "refused_busy": {gateway.ServerError, retry}, "refused_approve": {gateway.ServerError, once},
		"refused_pin": {gateway.ServerError, once}, "refused_record": {gateway.ServerError, retry},
		"refused_app": {gateway.ServerError, once}, "refused_store": {gateway.ServerError, retry},
		"refused_validate_output": {gateway.ProtocolError, once}, "refused_sanitize": {gateway.ServerError, once},
	}
	if len(tests) != 25 {
		t.Errorf("%d codes; gate.Code documents 25 beside ok", len(tests))
	}
	for code, want := range tests {
		t.Run(code, func(t *testing.T) {
			if got := gate.Code(coded(code)); got != code {
				t.Fatalf("the gate does not know the code: %s", got)
			}
			e := gateway.AsError(gate.Call{ID: "7", Action: gate.CallTool, Name: "files__read"}, coded(code))
			if e.Code != want.code || e.Retryable() != want.again {
				t.Errorf("%s, again %v; want %s, %v", e.Code, e.Retryable(), want.code, want.again)
			}
			if e.Outcome != gateway.Outcome(code) || e.Record != "7" || e.Details["outcome"] != code || e.Details["record"] != "7" || e.Server != "files" || e.Tool != "files__read" {
				t.Errorf("it says too little: %+v", e)
			}
			if gate.Code(e) != code || !strings.Contains(e.Error(), "secret cause") {
				t.Errorf("the cause is lost: %v", e)
			}
			b, err := json.Marshal(e)
			if err != nil || strings.Contains(string(b), "secret cause") {
				t.Errorf("JSON shows the cause: %s, %v", b, err)
			}
		})
	}
}

// TestOutcomes: programs compare with constants, which are what the gate says.
func TestOutcomes(t *testing.T) {
	for step, want := range map[step.Step]gateway.Outcome{
		step.Parse: gateway.RefusedParse, step.Lookup: gateway.RefusedLookup, step.Pin: gateway.RefusedPin, step.App: gateway.RefusedApp, step.Store: gateway.RefusedStore,
		step.Authorize: gateway.RefusedAuthorize, step.ValidateInput: gateway.RefusedValidateInput, step.Approve: gateway.RefusedApprove,
		step.Limit: gateway.RefusedLimit, step.Busy: gateway.RefusedBusy, "credential": gateway.RefusedCredential, step.Record: gateway.RefusedRecord,
		step.ValidateOutput: gateway.RefusedValidateOutput, step.Sanitize: gateway.RefusedSanitize,
	} {
		if e := gateway.AsError(gate.Call{Action: gate.CallTool, Name: "s__t"}, &gate.Refusal{Step: step}); e.Outcome != want {
			t.Errorf("a refusal of step %s is %s, want %s", step, e.Outcome, want)
		}
	}
	made := &gateway.Error{Code: gateway.ServerError, Outcome: gateway.RefusedAuthorize} // as a test's fake makes one
	if gate.Code(made) != "refused_authorize" {
		t.Errorf("a program's own error is %s to the gate", gate.Code(made))
	}
	if busy := (&gateway.Error{Code: gateway.ServerError, Outcome: gateway.RefusedBusy}); made.Retryable() || !busy.Retryable() {
		t.Error("whether a program's own error can be tried again does not go by its outcome")
	}
}

func TestErrorsOfCalls(t *testing.T) {
	call := func(a gate.Action) gate.Call { return gate.Call{ID: "1", Action: a, Name: "s__x"} }
	hidden := &gate.Refusal{Step: step.Authorize, Hidden: true, Reason: "no such prompt"}
	tests := map[string]struct {
		call gate.Call
		err  error
		want string
	}{
		"an unknown tool":               {call(gate.CallTool), &gate.Refusal{Step: step.Lookup, Reason: "no such tool"}, "tool_not_found false false"},
		"a hidden prompt":               {call(gate.GetPrompt), hidden, "prompt_not_found false false"},
		"an unknown resource":           {call(gate.ReadResource), &gate.Refusal{Step: step.Lookup}, "resource_not_found false false"},
		"over a rate":                   {call(gate.CallTool), &gate.Refusal{Step: step.Limit, RetryAfter: time.Second}, "server_error true false"},
		"waits for a person":            {call(gate.CallTool), &gate.Refusal{Step: step.Approve, Err: &gate.Pending{ID: "a"}}, "server_error true false"},
		"a server that is gone":         {call(gate.CallTool), &fault.Fault{Kind: "not_connected", Server: "s", Err: errors.New("x")}, "not_connected true true"},
		"a connection, before the call": {call(gate.CallTool), &fault.Fault{Kind: "transport", Server: "s", Err: errors.New("x")}, "transport_error true false"},
		"a connection, in the call":     {call(gate.CallTool), &fault.Fault{Kind: "transport", Server: "s", Err: errors.New("x"), MayHaveRun: true}, "transport_error false false"},
		"a server that is late":         {call(gate.CallTool), &fault.Fault{Kind: "timeout", Server: "s", Err: errors.New("x"), MayHaveRun: true}, "timeout false false"},
		"a gateway that ends":           {call(gate.CallTool), gateway.ErrDraining, "session_error true true"},
		"a session that is gone":        {gate.Call{}, fmt.Errorf("reset: %w", session.ErrUnknown), "session_error true true"},
		"a caller that has left":        {call(gate.CallTool), fmt.Errorf("x: %w", context.Canceled), "timeout false false"},
		"a wrong module":                {gate.Call{}, &gateway.ModuleError{Module: "m", Err: coded("trap_guest")}, "config_error false false"},
		"a configuration":               {gate.Call{}, errors.New("gateway: set Audit or Recorder"), "config_error false false"},
		"a server to connect":           {gate.Call{}, &fault.Fault{Kind: "spawn_failed", Server: "s", Err: errors.New("x")}, "connection_failed true false"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := gateway.AsError(tt.call, tt.err)
			if got := fmt.Sprint(e.Code, " ", e.Retryable(), " ", e.NeedsReconnect()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if !errors.Is(e, tt.err) || gateway.AsError(gate.Call{}, e) != e {
				t.Error("it does not wrap its cause, or does not stay what it is")
			}
		})
	}
	if gateway.AsError(call(gate.CallTool), nil) != nil {
		t.Error("nil is an error")
	}
	b, err := json.Marshal(gateway.AsError(call(gate.CallTool), &gate.Refusal{Step: step.Limit, Reason: "too many", RetryAfter: 1500 * time.Millisecond, Remedy: "wasmgate grant"}))
	want := `{"code":"server_error","message":"refused: too many","server":"s","tool":"s__x","retryable":true,"details":{"outcome":"refused_limit","record":"1","retry_after_ms":1500}}`
	if diff := cmp.Diff(want, string(b)); diff != "" || err != nil {
		t.Errorf("JSON (-want +got), %v:\n%s", err, diff)
	}
}

// A call that was carried out, and cannot be recorded, is not one to be tried again.
func TestErrorOfWhatWasCarriedOut(t *testing.T) {
	c := gate.Call{ID: "1", Action: gate.CallTool, Name: "s__x"}
	for invoked, want := range map[bool]string{
		false: `{"code":"server_error","message":"refused: the log is full","server":"s","tool":"s__x","retryable":true,"details":{"outcome":"refused_record","record":"1"}}`,
		true:  `{"code":"server_error","message":"the log is full","server":"s","tool":"s__x","retryable":false,"details":{"invoked":true,"outcome":"refused_record","record":"1"}}`,
	} {
		e := gateway.AsError(c, &gate.Refusal{Step: step.Record, Reason: "the log is full", Invoked: invoked})
		if b, err := json.Marshal(e); err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
}

// full is a recorder that cannot write the records of one event.
type full gate.Event

func (f full) Record(_ context.Context, r *gate.Record) error {
	if r.Event == gate.Event(f) && r.Call.Action == gate.CallTool {
		return errors.New("no space")
	}
	return nil
}

// What a client reads of a call that could not be recorded says whether it was carried out.
func TestClientsReadWhatWasCarriedOut(t *testing.T) {
	for event, want := range map[gate.Event]string{
		gate.Granted: "refused: the audit log cannot be written <nil>",
		gate.Done:    "the call was carried out, and its result is withheld because the audit log cannot be written; see what it has done before you call again true",
	} {
		_, srv := grouped(t, func(c *gateway.Config) { c.Recorder = full(event) })
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			res, err := connect(t, srv.URL+"/mcp", revision).CallTool(t.Context(), &mcp.CallToolParams{Name: "files__read", Arguments: map[string]any{"text": "hi"}})
			if err != nil {
				t.Fatal(err)
			}
			refusal, _ := res.Meta[gate.MetaRefusal].(map[string]any)
			if got := fmt.Sprint(res.Content[0].(*mcp.TextContent).Text, " ", refusal["invoked"]); got != want || refusal["code"] != "refused_record" {
				t.Errorf("%s, %s: %s, %v", event, revision, got, refusal)
			}
		}
	}
}
