package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// actionsOf are the actions by which each feature is used. The first is the one that a
// listing is for.
var actionsOf = map[gate.Feature][]gate.Action{
	gate.FeatureTool:     {gate.CallTool},
	gate.FeaturePrompt:   {gate.GetPrompt, gate.Complete},
	gate.FeatureResource: {gate.ReadResource, gate.Subscribe},
	gate.FeatureTemplate: {gate.ReadResource, gate.Subscribe, gate.Complete},
	gate.FeatureSkill:    {gate.GetSkill, gate.ReadDirectory},
	gate.FeatureAgent:    {actions.AgentCall},
}

// decides reports whether there are decisions on such a query.
func decides(q gate.Query) bool {
	if actions.IsPeerRequest(q.Call.Action) {
		return true
	}
	if actions.IsHostCall(q.Call.Action) {
		return q.Tool.Feature == gate.FeatureTool
	}
	return slices.Contains(actionsFor(q.Tool), q.Call.Action)
}

// Within reports whether an action is done within a call that was allowed, by the tool
// or for its server.
func Within(a gate.Action) bool { return actions.IsHostCall(a) || actions.IsPeerRequest(a) }

// actionsFor returns the actions by which t is used.
func actionsFor(t *gate.Tool) []gate.Action {
	if t.Feature == gate.FeatureMethod {
		return []gate.Action{gate.Action(t.Local)}
	}
	return actionsOf[t.Feature]
}

// Unknowns are the parts of the input that are not known before a call is made.
// What a client says of itself is one of them: one client of a principal may list, and
// another one call.
var Unknowns = []*ast.Term{
	ast.MustParseTerm("input.arguments"), ast.MustParseTerm("input.session"), ast.MustParseTerm("input.provenance"), ast.MustParseTerm("input.carried"), ast.MustParseTerm("input.values"),
	ast.MustParseTerm("input.principal.client.name"), ast.MustParseTerm("input.principal.client.version"), ast.MustParseTerm("input.app"),
}

// templateUnknowns are what is not known of a template.
var templateUnknowns = append(slices.Clip(Unknowns), ast.MustParseTerm("input.resource.uri"))

// UnknownOf returns options that say what else is not known of a template.
func UnknownOf(t *gate.Tool) []rego.EvalOption {
	if t.Feature != gate.FeatureTemplate {
		return nil
	}
	return []rego.EvalOption{rego.EvalParsedUnknowns(templateUnknowns)}
}

// ListingInput returns what is known of a use of t before it is made.
func (e *Engine) ListingInput(who *ast.Term, t *gate.Tool) ast.Value {
	return e.Inputs.Listing(actionsFor(t)[0], who, t)
}
