package gate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// validateInput refuses arguments that break the tool's input schema, as the client sent them or as
// the policy leaves them, and an answer that is not acceptable. Again says that what the client
// sent has been found valid before.
func (w *way) validateInput(ctx context.Context, q Query, sent *Call, again bool) error {
	if again && sent == q.Call {
		return nil
	}
	w.next(step.ValidateInput)
	if q.Tool.Input == nil {
		return w.fail(ctx, "the tool has no usable input schema", nil)
	}
	if !again {
		if err := w.checkInput(ctx, q.Tool, q.Call.Args, "the arguments"); err != nil {
			return err
		}
	}
	if sent != q.Call {
		if err := w.checkInput(ctx, q.Tool, sent.Args, "the arguments, after the policy's redaction,"); err != nil {
			return err
		}
	}
	if a := q.Call.Brought.Approval; a != nil && a.Err != nil {
		w.next(step.Approve)
		return w.fail(ctx, "the answer that came with the call is not acceptable; call again without it", a.Err)
	}
	return nil
}

// checkInput refuses arguments that break the tool's input schema, or notes that they do.
func (w *way) checkInput(ctx context.Context, t *Tool, args Doc, what string) error {
	err := t.Input.Validate(args)
	if err == nil {
		return nil
	}
	if w.inputMode(t) == warnInput && t.Feature == FeatureTool {
		w.found(Finding{Rule: ruleInput, At: inArguments, Count: 1})
		return nil
	}
	return w.fail(ctx, publicViolations(t, what, err), err)
}

// maxViolations bounds the violations that a caller is shown: a schema can find one in each element
// of an array.
const maxViolations = 20

// publicViolations tells a caller what is wrong with what it sent.
func publicViolations(t *Tool, what string, err error) string {
	declared := "the tool's input schema"
	if t.Feature != FeatureTool {
		declared = "what the prompt or template declares"
	}
	var v doc.Violations
	if errors.As(err, &v) {
		more := ""
		if len(v) > maxViolations {
			more = fmt.Sprintf("; and %d more", len(v)-maxViolations)
			v = v[:maxViolations]
		}
		return what + " break " + declared + ": " + cut(v.Error(), maxReason) + more + takes(t)
	}
	return what + " cannot be checked against " + declared
}

// takes says what a tool would take.
func takes(t *Tool) string {
	if schema, ok := t.Input.(Coercer); ok && t.Feature == FeatureTool {
		if s := schema.Takes(); s != "" {
			return "; it takes " + s
		}
	}
	return ""
}

// validateOutput refuses a result that is larger than the decision allows, or that
// breaks what its tool declares.
func (w *way) validateOutput(ctx context.Context, p *permitted, res Result) error {
	w.next(step.ValidateOutput)
	if int64(len(res.Doc.Raw())) > p.duty.maxResult {
		return w.fail(ctx, fmt.Sprintf("the result is larger than %d bytes; ask for less of it", p.duty.maxResult), nil)
	}
	err := checkOutput(p.tool, res)
	if err != nil && p.tool.OutputWarn {
		w.rec.Err = err
		w.rec.Findings = append(w.rec.Findings, Finding{Rule: "schema/output", At: "/structuredContent", Count: 1})
		return nil
	}
	if err != nil {
		return w.fail(ctx, "the result breaks the output schema that the tool declares"+brokenAt(p.tool.Definition.Get("outputSchema"), err)+"; the server has carried out the call", err)
	}
	return nil
}

// brokenAt names the first places at which a result breaks its schema.
func brokenAt(schema Doc, err error) string {
	var v doc.Violations
	if !errors.As(err, &v) {
		return ""
	}
	var at []string
	for _, one := range v[:min(len(v), 3)] {
		at = append(at, cmp.Or(declared(schema, one.Pointer), "(root)"))
	}
	return cut(", at "+strings.Join(slices.Compact(at), ", "), maxReason)
}

// declared returns a pointer as far as the schema has its names: others are words of the server that
// nothing has sanitized.
func declared(schema Doc, pointer string) string {
	known := ""
	for _, part := range strings.Split(pointer, "/")[1:] {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if _, err := strconv.ParseUint(part, 10, 32); err != nil && !bytes.Contains(schema.Raw(), doc.AppendString(nil, name)) {
			break
		}
		known += "/" + part
	}
	return known
}

// checkOutput holds a result against the tool's declaration. A failure that the
// tool reports has no structured content to check (MCP 2025-11-25, server/tools,
// "Output Schema").
func checkOutput(t *Tool, res Result) error {
	if t.Output == nil || res.IsError {
		return nil
	}
	content := res.Doc.Get("structuredContent")
	if content.IsZero() {
		return doc.Violations{{Pointer: "", Message: "the tool declares an output schema and returned no structured content"}}
	}
	return t.Output.Validate(content)
}

// Retryable reports whether it is safe to make the same call again, and the call can succeed
// then although nothing but time has passed. A call that may have been carried out is safe if
// its tool says so: an error of a connection that broke, or of a server that was late, has a
// method Repeatable that knows.
func Retryable(err error) bool {
	if r, ok := errors.AsType[*Refusal](err); ok {
		if r.Invoked {
			return false
		}
		if r.RetryAfter > 0 {
			return true
		}
	}
	if _, waits := errors.AsType[*Pending](err); waits {
		return true
	}
	switch Code(err) {
	case "refused_limit": // of anything else than the gate it is the size of what the call returns
		_, ours := errors.AsType[*Refusal](err)
		return ours
	case "spawn_failed", "not_connected", "refused_busy", "refused_store", "refused_record":
		return true
	case "transport", codes.Timeout:
		knows, ok := errors.AsType[interface {
			error
			Repeatable() bool
		}](err)
		return ok && knows.Repeatable()
	default:
		return false
	}
}
