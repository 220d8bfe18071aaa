package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/wasmgate/wasmgate/gate"
)

// actionsOf are the actions by which each feature is used. The first is the one that a
// listing is for.
var actionsOf = map[gate.Feature][]gate.Action{
	gate.FeatureTool:     {gate.CallTool},
	gate.FeaturePrompt:   {gate.GetPrompt, gate.Complete},
	gate.FeatureResource: {gate.ReadResource, gate.Subscribe},
	gate.FeatureTemplate: {gate.ReadResource, gate.Subscribe, gate.Complete},
}

// decides reports whether there are decisions on such a query.
func decides(q gate.Query) bool {
	if q.Call.Action.IsPeerRequest() {
		return true
	}
	if q.Call.Action.IsHostCall() {
		return q.Tool.Feature == gate.FeatureTool
	}
	return slices.Contains(actionsOf[q.Tool.Feature], q.Call.Action)
}

// featureInput returns what the input has of a use of a prompt or a resource: never
// a tool.
func featureInput(q gate.Query) [][2]*ast.Term {
	c, t := q.Call, q.Tool
	if t.Feature == gate.FeatureResource || t.Feature == gate.FeatureTemplate && c.Action != gate.Complete {
		return [][2]*ast.Term{resourceTerm(t, &c.Name)}
	}
	subject := resourceTerm(t, nil)
	if t.Feature == gate.FeaturePrompt {
		subject = promptTerm(t)
	}
	return [][2]*ast.Term{subject, {keyArguments, docOrObject(c.Args)}}
}

// featureListing returns what is known of a use before it is made. The URI of a
// template is not: see [unknownOf].
func featureListing(who *ast.Term, t *gate.Tool) ast.Value {
	subject := promptTerm(t)
	switch t.Feature {
	case gate.FeatureResource:
		subject = resourceTerm(t, &t.Local)
	case gate.FeatureTemplate:
		subject = resourceTerm(t, nil)
	}
	return ast.NewObject([2]*ast.Term{keyAction, ast.InternedTerm(string(actionsOf[t.Feature][0]))}, [2]*ast.Term{keyPrincipal, who}, subject)
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

func promptTerm(t *gate.Tool) [2]*ast.Term {
	return pair("prompt", ast.ObjectTerm(
		[2]*ast.Term{keyName, ast.StringTerm(t.Name.String())},
		pair("server", ast.StringTerm(t.Name.Server)),
		pair("groups", stringArray(t.Groups)),
	))
}

// resourceTerm is {uri, server, mime_type, groups}, and the template that the URI was found
// by, if it is not listed.
func resourceTerm(t *gate.Tool, uri *string) [2]*ast.Term {
	members := [][2]*ast.Term{pair("server", ast.StringTerm(t.Name.Server)), pair("mime_type", ast.StringTerm(t.MIME)), pair("groups", stringArray(t.Groups))}
	if uri != nil && t.Feature == gate.FeatureResource {
		uri = &t.Local // the client may know it by another
	}
	if uri != nil {
		members = append(members, pair("uri", ast.StringTerm(*uri)))
	}
	if t.Feature == gate.FeatureTemplate {
		members = append(members, pair("template", ast.StringTerm(t.Local)))
	}
	return pair("resource", ast.ObjectTerm(members...))
}
