package gate

import (
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/internal/redaction"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// sent returns the call as the upstream gets it under the obligations, and c
// itself if they change nothing.
func sent(c *Call, obligations []obligation.Obligation) *Call {
	var pointers []string
	for _, o := range obligations {
		if r, ok := o.(obligation.Redact); ok {
			pointers = append(pointers, r.Arguments...)
		}
	}
	args, taken := doc.Replace(c.Args, pointers, redaction.Mark)
	if len(taken) == 0 {
		return c
	}
	changed := *c
	changed.Args = args
	return &changed
}

// redactResult returns a result without what o takes out of it, and what that was; nil takes out
// nothing.
func redactResult(d Doc, o *obligation.Redact) (Doc, []Finding, error) {
	if o == nil {
		return d, nil, nil
	}
	d, places, err := redaction.Result(d, o.Result)
	var found []Finding
	for _, p := range places {
		found = append(found, Finding{Rule: "redacted", At: cut(p.Pointer, maxPointer), Count: p.Count, Removed: true})
	}
	return d, found, err
}
