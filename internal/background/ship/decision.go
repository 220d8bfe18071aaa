package ship

import (
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/forms"
)

// A Decision is a record of a decision in OPA's format (openpolicyagent.org, "Decision Logs"), as far
// as its terms mean the same here. Everything else that the audit log knows is under custom.
type Decision struct {
	Labels     map[string]string        `json:"labels"` // id: node/boot of the gateway
	DecisionID string                   `json:"decision_id"`
	Bundles    map[string]bundleVersion `json:"bundles"` // the whole policy is one, named wasmgate
	Path       string                   `json:"path"`
	Input      map[string]any           `json:"input"`
	Result     *decisionResult          `json:"result,omitempty"` // absent if the policy came to none
	Erased     []string                 `json:"erased,omitempty"` // what policies saw and the log does not hold, by JSON Pointer
	Error      *decisionError           `json:"error,omitempty"`
	Timestamp  time.Time                `json:"timestamp"` // when the call came
	Metrics    map[string]int64         `json:"metrics,omitempty"`
	Custom     map[string]any           `json:"custom"`
}

type bundleVersion struct {
	Revision string `json:"revision"`
}

type decisionResult struct {
	Effect  gate.Effect `json:"effect"`
	Reasons []string    `json:"reasons"`
}

type decisionError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// DecisionOf returns the decision in a record. There is none in records of other events, in those of
// calls that were refused before they were decided on, and in granted records: their decision is in the
// record of the call's end. Relays reports whether a server's tools carry out other tools.
func DecisionOf(e audit.Entry, relays func(server string) bool) (Decision, bool) {
	failed := e.Effect == "" && e.Code == "refused_authorize"
	if e.Event != gate.Done && e.Event != gate.HostCall || e.Effect == "" && !failed {
		return Decision{}, false
	}
	d := Decision{
		Labels: map[string]string{"id": e.Log}, DecisionID: e.ID,
		Bundles: map[string]bundleVersion{"wasmgate": {e.PolicyRevision}},
		Path:    "wasmgate/decision", Timestamp: e.Time.Add(-time.Duration(e.TookUS) * time.Microsecond),
		Metrics: decisionMetrics(e), Custom: customOf(e),
	}
	d.Input, d.Erased = inputOf(e, relays)
	if failed {
		d.Error = &decisionError{e.Code, e.Error}
		return d, true
	}
	d.Result = &decisionResult{e.Effect, append([]string{}, e.Reasons...)}
	d.Erased = append(d.Erased, "/result/obligations", "/result/labels")
	return d, true
}

// inputOf returns the input as far as it is recorded, and what is not. Arguments are
// with audit.record: full; where values came from, what a tool declares and what an
// identity provider claims never are.
func inputOf(e audit.Entry, relays func(string) bool) (input map[string]any, erased []string) {
	server, local, _ := strings.Cut(e.Tool, "__")
	input = map[string]any{
		"action": e.Action,
		"principal": map[string]any{
			"id": e.Principal, "tenant": e.Tenant, "roles": append([]string{}, e.Roles...), "client": e.Client,
		},
		"session": map[string]any{"id": e.Session, "labels": append([]string{}, e.LabelsBefore...)},
		"tool":    map[string]any{"name": e.Tool, "server": server, "local_name": local, "relay": relays(server)},
	}
	if e.Client == (audit.Client{}) {
		delete(input["principal"].(map[string]any), "client")
	}
	erased = []string{
		"/input/principal/auth", "/input/principal/claims", "/input/tool/annotations", "/input/tool/labels",
		"/input/tool/groups", "/input/tool/sandboxed", "/input/tool/capabilities", "/input/tool/pinned", "/input/tool/findings",
	}
	if uses(e.Action) {
		return inputOfUse(e, input)
	}
	document := "arguments"
	switch {
	case actions.IsPeerRequest(e.Action):
		return inputOfRequest(e, input, erased)
	case e.Event == gate.HostCall:
		document = "request"
	default:
		erased = append(erased, "/input/provenance", "/input/carried", "/input/values")
	}
	if len(e.Arguments) == 0 {
		return input, append(erased, "/input/"+document)
	}
	input[document] = e.Arguments
	return input, erased
}

// inputOfRequest makes the input of what a server asked of the client of that of a call.
func inputOfRequest(e audit.Entry, input map[string]any, erased []string) (map[string]any, []string) {
	input["server"] = e.Server
	switch {
	case strings.Contains(e.Tool, ":"): // a URI, as no name of a tool is
		delete(input, "tool")
		input["resource"] = map[string]any{"uri": e.Tool, "server": e.Server}
	case actions.IsMethod(actions.OfMethod(e.Tool)):
		delete(input, "tool")
		input["method"] = map[string]any{"name": e.Tool, "server": e.Server}
	}
	request, err := gate.ParseDoc(e.Arguments)
	if err != nil || request.Kind() != doc.Object {
		return input, append(erased, "/input/request")
	}
	input["request"] = request.With("secret", strconv.AppendBool(nil, forms.AsksSecret(e.Action, request)))
	return input, erased
}

// uses reports whether an action uses a prompt, a resource or a method that MCP does not
// have, and no tool.
func uses(a gate.Action) bool {
	return a == gate.GetPrompt || a == gate.ReadResource || a == gate.Subscribe || a == gate.Complete || actions.IsMethod(a)
}

// inputOfUse makes the input of the use of a prompt, a resource or a method of that of a
// call.
func inputOfUse(e audit.Entry, input map[string]any) (map[string]any, []string) {
	delete(input, "tool")
	erased := []string{"/input/principal/auth", "/input/principal/claims"}
	switch {
	case actions.IsMethod(e.Action):
		input["method"], input["server"] = map[string]any{"name": e.Tool, "server": e.Server}, e.Server
		erased = append(erased, "/input/method/groups")
	case strings.Contains(e.Tool, ":"): // a URI, as no name of a prompt is
		input["resource"] = map[string]any{"uri": e.Tool, "server": e.Server}
		erased = append(erased, "/input/resource/mime_type", "/input/resource/template")
	default:
		input["prompt"] = map[string]any{"name": e.Tool, "server": e.Server}
	}
	switch {
	case e.Action == gate.ReadResource, e.Action == gate.Subscribe:
	case len(e.Arguments) == 0:
		erased = append(erased, "/input/arguments")
	default:
		input["arguments"] = e.Arguments
	}
	return input, erased
}

// decisionMetrics returns the times in OPA's units. The time of the step authorize includes looking at
// the session, not only the evaluation.
func decisionMetrics(e audit.Entry) map[string]int64 {
	m := map[string]int64{"timer_server_handler_ns": e.TookUS * 1000}
	for _, s := range e.Steps {
		if s.Step == step.Authorize {
			m["timer_rego_query_eval_ns"] += s.Took.Nanoseconds()
		}
	}
	return m
}

func customOf(e audit.Entry) map[string]any {
	custom := map[string]any{"event": e.Event, "seq": e.Seq, "code": e.Code}
	for name, text := range map[string]string{
		"parent": e.Parent, "tool_digest": e.ToolDigest, "snapshot": e.Snapshot,
		"args_sha256": e.ArgsSHA256, "result_sha256": e.ResultSHA256,
	} {
		if text != "" {
			custom[name] = text
		}
	}
	return custom
}
