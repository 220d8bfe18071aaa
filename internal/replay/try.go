package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// A Trial is a hypothetical call.
type Trial struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // {} without
	Principal string          `json:"principal"` // local without
	Labels    []string        `json:"labels"`    // what the session has read
}

// Tried is the policy's decision on a trial.
type Tried struct {
	Arguments   json.RawMessage    `json:"arguments"` // as the policy sees them, coerced
	Explanation *study.Explanation `json:"explanation"`
}

var (
	// ErrNoTool says that there is no such tool.
	ErrNoTool = errors.New("the gateway has no tool of this name")
	// ErrArguments says that arguments are no JSON object.
	ErrArguments = errors.New("the arguments are not a JSON object")
)

// Try returns the policy's decision on a call of who, with the reasons.
func (x Explainer) Try(ctx context.Context, who *gate.Principal, t Trial) (*Tried, error) {
	args, err := gate.ParseDoc([]byte(cmp.Or(strings.TrimSpace(string(t.Arguments)), "{}")))
	if err != nil || args.Kind() != doc.Object {
		return nil, errors.Join(ErrArguments, err)
	}
	tool, err := x.tool(ctx, t.Tool)
	if err != nil {
		return nil, err
	}
	if by := InputSchema(tool.Definition); by != nil {
		args, _ = by.Coerce(args)
	}
	engine, err := policy.Load(ctx, x.Policy.Files, x.Policy.Options)
	if err != nil {
		return nil, err
	}
	const session = "tried"
	q := gate.Query{
		Call: &gate.Call{Action: gate.CallTool, Name: t.Tool, Args: args, Who: who, Session: gate.SessionKey{Owner: who.Owner, ID: session}},
		Tool: tool, Session: gate.Session{Labels: gate.NewLabels(t.Labels...)},
	}
	const nowhere = "where the values of a call come from that is only tried"
	why, err := study.Explain(ctx, engine, study.Case{Query: q, Unknown: map[string]string{
		"input.provenance": nowhere, "input.carried": nowhere, "input.values": nowhere, "input.principal.claims": "claims of a call that is only tried",
	}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExplain, err)
	}
	return &Tried{args.Raw(), &why}, nil
}

// tool returns the tool of a name as policies see it.
func (x Explainer) tool(ctx context.Context, name string) (*gate.Tool, error) {
	tools, err := x.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		if t.Name != name {
			continue
		}
		if described, err := t.Described(); err != nil || described != nil {
			return described, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoTool, name)
}

// Test writes the decision on a recorded call as a test of the policy in Rego, as wasmgate policy
// test runs it.
func Test(e audit.Entry) string {
	input := map[string]any{
		"action": e.Action, "principal": map[string]any{"id": e.Principal, "roles": append([]string{}, e.Roles...)},
		"tool": map[string]any{"name": e.Tool, "server": e.Server}, "session": map[string]any{"labels": append([]string{}, e.LabelsBefore...)},
	}
	lacking := ""
	if len(e.Arguments) > 0 {
		input["arguments"] = json.RawMessage(e.Arguments)
	} else {
		lacking = "\n# The log does not have its arguments: put in \"arguments\" what the rule is about."
	}
	b, err := json.MarshalIndent(input, "\t", "\t")
	if err != nil {
		return "" // arguments are JSON in a log
	}
	name := strings.ReplaceAll(e.ID, "-", "_")
	in := escaped.JSON(b)
	return fmt.Sprintf("package wasmgate_test\n\nimport data.wasmgate\n%s\ntest_call_%s if {\n\twasmgate.decision.effect == %q with input as %s\n}\n", lacking, name, cmp.Or(e.Effect, gate.Deny), in)
}
