package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
)

// actionsOf are the actions by which each feature is used. The first is the one that a
// listing is for.
var actionsOf = map[gate.Feature][]gate.Action{
	gate.FeatureTool:     {gate.CallTool},
	gate.FeaturePrompt:   {gate.GetPrompt, gate.Complete},
	gate.FeatureResource: {gate.ReadResource, gate.Subscribe},
	gate.FeatureTemplate: {gate.ReadResource, gate.Subscribe, gate.Complete},
	gate.FeatureAgent:    {actions.AgentCall},
}

// asTool reports whether policies see what is used as input.tool.
func asTool(f gate.Feature) bool { return f == gate.FeatureTool || f == gate.FeatureAgent }

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

// actionsFor returns the actions by which t is used.
func actionsFor(t *gate.Tool) []gate.Action {
	if t.Feature == gate.FeatureMethod {
		return []gate.Action{gate.Action(t.Local)}
	}
	return actionsOf[t.Feature]
}

// featureInput returns what the input has of a use of a prompt or a resource: never
// a tool.
func featureInput(q gate.Query) [][2]*ast.Term {
	c, t := q.Call, q.Tool
	if t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate && c.Action != gate.Complete {
		uri := c.URI(t) // the client may know it by another
		return [][2]*ast.Term{resourceTerm(t, &uri)}
	}
	args := [2]*ast.Term{keyArguments, docOrObject(c.Args)}
	switch t.Feature {
	case gate.FeaturePrompt:
		return [][2]*ast.Term{promptTerm(t), args}
	case gate.FeatureMethod:
		return [][2]*ast.Term{methodTerm(t), serverTerm(t), args}
	default:
		return [][2]*ast.Term{resourceTerm(t, nil), args}
	}
}

// featureListing returns what is known of a use before it is made. The URI of a
// template is not: see [unknownOf].
func featureListing(who *ast.Term, t *gate.Tool) ast.Value {
	subjects := [][2]*ast.Term{promptTerm(t)}
	switch t.Feature {
	case gate.FeatureResource:
		subjects[0] = resourceTerm(t, &t.Local)
	case gate.FeatureTemplate:
		subjects[0] = resourceTerm(t, nil)
	case gate.FeatureMethod:
		subjects = [][2]*ast.Term{methodTerm(t), serverTerm(t)}
	}
	input := [][2]*ast.Term{{keyAction, ast.InternedTerm(string(actionsFor(t)[0]))}, {keyPrincipal, who}}
	return ast.NewObject(append(input, subjects...)...)
}

// templateUnknowns are what is not known of a template.
var templateUnknowns = append(slices.Clip(unknowns), ast.MustParseTerm("input.resource.uri"))

// unknownOf says what is not known of a template beside what never is.
func unknownOf(t *gate.Tool) []rego.EvalOption {
	if t.Feature != gate.FeatureTemplate {
		return nil
	}
	return []rego.EvalOption{rego.EvalParsedUnknowns(templateUnknowns)}
}

func promptTerm(t *gate.Tool) [2]*ast.Term { return namedTerm("prompt", t) }

func methodTerm(t *gate.Tool) [2]*ast.Term { return namedTerm("method", t) }

// namedTerm is {name, server, groups}.
func namedTerm(kind string, t *gate.Tool) [2]*ast.Term {
	return pair(kind, ast.ObjectTerm(
		[2]*ast.Term{keyName, ast.StringTerm(t.Name.String())},
		serverTerm(t),
		pair("groups", stringArray(t.Groups)),
	))
}

func serverTerm(t *gate.Tool) [2]*ast.Term { return pair("server", ast.StringTerm(t.Name.Server)) }

// resourceTerm is {uri, server, mime_type, groups}, and the template that the URI was found
// by, if it is not listed.
func resourceTerm(t *gate.Tool, uri *string) [2]*ast.Term {
	members := [][2]*ast.Term{pair("server", ast.StringTerm(t.Name.Server)), pair("mime_type", ast.StringTerm(t.MIME)), pair("groups", stringArray(t.Groups))}
	if uri != nil {
		members = append(members, pair("uri", ast.StringTerm(*uri)))
	}
	if t.Feature == gate.FeatureTemplate {
		members = append(members, pair("template", ast.StringTerm(t.Local)))
	}
	return pair("resource", ast.ObjectTerm(members...))
}
