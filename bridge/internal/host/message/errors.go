package message

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Codes of JSON-RPC errors in addition to those of JSON-RPC itself.
const (
	// CodeNoResource is of MCP up to 2025-11-25 (server/resources, "Error Handling");
	// later revisions say it by invalid parameters.
	CodeNoResource = -32002
	// CodeRefused is the gateway's own, of a use that the gate refuses or a server
	// fails: what is no tool has no result that could say so.
	CodeRefused = -32010
	// CodeLacksCapability is the error of a server that needs what the client has not
	// declared (MCP 2026-07-28, basic, "Capability negotiation"). It is about the client,
	// not the tool, so that the client gets it as it is.
	CodeLacksCapability = -32021
)

var ErrNoMethod = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}

// ErrDraining refuses a request because the gateway is about to end.
var ErrDraining = &mcp.Error{Code: mcp.CodeInternal, Message: "the gateway is shutting down"}

// NoMethod says that a client of its revision has no such method.
func NoMethod(method string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
}

// Unsupported is the error that a revision is not spoken.
func Unsupported(why string, supported []string, requested string) *mcp.Error {
	data := struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{supported, requested}
	return &mcp.Error{Code: mcp.CodeUnsupported, Message: why, Data: mcp.MustJSON(data)}
}

// Duplicate refuses a request with the id of one that is under way.
func Duplicate(id gate.Doc) error {
	return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "duplicate in-flight request ID " + idText(id)}
}

// ErrorOf returns the error that a client gets for err.
func ErrorOf(err error) *mcp.Error {
	if rpc, ok := errors.AsType[*mcp.Error](err); ok {
		return rpc
	}
	return &mcp.Error{Code: mcp.CodeInternal, Message: "the request was cancelled"} // the client has stopped waiting
}

// ServerError gives a client the JSON-RPC error that a server answered with. The gate has already
// seen its text: see [mcp.MetaError].
func ServerError(res gate.Doc) error {
	e := res.Get("_meta").Get(mcp.MetaError)
	code, err := strconv.ParseInt(e.Get("code").String(), 10, 64)
	if err != nil || code < math.MinInt32 || code > math.MaxInt32 {
		code = mcp.CodeInternal
	}
	return &mcp.Error{Code: code, Message: res.At("/content/0/text").Text(), Data: e.Get("data").Raw()}
}

func LacksCapability(res gate.Doc) bool {
	return res.Get("_meta").Get(mcp.MetaError).Get("code").String() == strconv.Itoa(CodeLacksCapability)
}

// RefusalResult is the result of a call that was refused, or that its server
// failed: the model that made the call reads why.
func RefusalResult(call string, err error) gate.Doc {
	return FailureResult(Public(err), RefusalOf(call, err))
}

func FailureResult(text string, refusal map[string]any) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
		"_meta":   map[string]any{gate.MetaRefusal: refusal},
	})))
}

// RefusalOf tells a client why a call was not carried out: see [gate.MetaRefusal]. The words are in the
// text of the result: there are clients that show all of this to their models.
func RefusalOf(call string, err error) map[string]any {
	refusal := map[string]any{"code": gate.Code(err), "record_id": gate.RecordID(call, err)}
	r, ok := errors.AsType[*gate.Refusal](err)
	if ok && r.RetryAfter > 0 {
		refusal["retry_after_ms"] = max(1, r.RetryAfter.Milliseconds())
	}
	if ok && r.Invoked {
		refusal["invoked"] = true
	}
	if gate.Retryable(err) {
		refusal["retryable"] = true
	}
	if at := BrokenAt(err); at != nil {
		refusal["violations"] = at
	}
	return refusal
}

// BrokenAt returns where arguments break their schema that were refused for that, at most 20
// places, those of more than 200 bytes left out.
func BrokenAt(err error) (at []string) {
	if r, ok := errors.AsType[*gate.Refusal](err); !ok || r.Step != step.ValidateInput {
		return nil
	}
	broken, _ := errors.AsType[doc.Violations](err)
	for _, v := range broken[:min(len(broken), 20)] {
		if len(v.Pointer) <= 200 {
			at = append(at, v.Pointer)
		}
	}
	return at
}

// Public returns what a client may read of the error of a call.
func Public(err error) string {
	var r *gate.Refusal
	switch {
	case !errors.As(err, &r):
	case r.Invoked: // no word that reads as if it had never left
		return r.Reason
	default:
		return "refused: " + r.Reason
	}
	var public interface{ Public() string }
	if errors.As(err, &public) {
		return public.Public()
	}
	switch code := gate.Code(err); code {
	case codes.Cancelled:
		return "the call was cancelled"
	case codes.Timeout:
		return "the call took too long"
	default:
		return "the call could not be carried out (" + code + ")"
	}
}

// LacksTasks refuses a request about tasks of a client that does not say that it knows of
// them.
func LacksTasks() *mcp.Error {
	data := `{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`
	return &mcp.Error{Code: CodeLacksCapability, Message: "the request does not declare the extension " + mcp.ExtensionTasks, Data: []byte(data)}
}
