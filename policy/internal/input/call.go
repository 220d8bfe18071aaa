package input

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/forms"
)

// caller are the members that the input of all calls has.
var caller = members[*query]{
	has("action", text, "what is done", func(q *query) *ast.Term { return ast.InternedTerm(string(q.Call.Action)) }),
	has("principal", principalMembers.shape(), "for whom", func(q *query) *ast.Term {
		return q.principal(claimant{q.Call.Who, q.Call.ClientName, q.Call.ClientVersion})
	}),
	has("session", sessionMembers.shape(), "in which session", func(q *query) *ast.Term { return sessionMembers.term(q) }),
}

var (
	ofTool = has("tool", toolMembers.shape(), "what is called", func(q *query) *ast.Term { return q.tool(q.Tool) })

	named      = namedMembers.shape()
	ofPrompt   = has("prompt", named, "the prompt", func(q *query) *ast.Term { return namedMembers.term(q.Tool) })
	ofMethod   = has("method", named, "the method, by the name `server__method`", func(q *query) *ast.Term { return namedMembers.term(q.Tool) })
	resources  = resourceMembers.shape()
	ofResource = has("resource", resources, "the resource, or the template", func(q *query) *ast.Term {
		uri := q.Call.URI(q.Tool) // the client may know it by another
		return resourceMembers.term(resource{q.Tool, &uri})
	})
	ofSkill   = has("skill", skillMembers.shape(), "the skill (MCP Skills)", func(q *query) *ast.Term { return skillMembers.term(q.Tool) })
	ofServer  = has("server", text, "the server's id in the configuration", func(q *query) *ast.Term { return server(q.Tool) })
	arguments = has("arguments", open, "the arguments, as the tool, the prompt or the method has them", func(q *query) *ast.Term { return docOrObject(q.Call.Args) })
)

// when leaves a member out of what is used by another feature.
func when(m member[*query], features ...gate.Feature) member[*query] {
	value := m.value
	m.Optional = true
	m.value = func(q *query) *ast.Term {
		if !slices.Contains(features, q.Tool.Feature) {
			return nil
		}
		return value(q)
	}
	return m
}

// A form is the input of some actions.
type form struct {
	actions []gate.Action
	about   string // the actions in words, if they have no names of their own
	members members[*query]
	shape   *Shape
}

// formed completes a form.
func formed(about string, of []gate.Action, more ...member[*query]) *form {
	f := &form{actions: of, about: about, members: slices.Concat(caller, more)}
	f.shape = f.members.shape()
	return f
}

func formOf(action gate.Action, more ...member[*query]) *form {
	return formed("", []gate.Action{action}, more...)
}

// request is the member of a host call.
func request(fields ...Field) member[*query] {
	return has("request", objectOf(fields...), "what the module asks for", func(q *query) *ast.Term { return docOrObject(q.Call.Args) })
}

// askedFields are the gate's own word, and the parameters that MCP has. A server may send
// others.
var askedFields = []Field{
	field("secret", truth, "whether a form asks for a secret, by the gate's own rules"),
	param("message"), param("mode"), param("url"), param("elicitationId"), param("requestedSchema"),
	param("messages"), param("systemPrompt"), param("modelPreferences"), param("includeContext"), param("maxTokens"), param("temperature"),
	param("stopSequences"), param("tools"), param("toolChoice"), param("metadata"), param("_meta"),
}

// asked is the request of a server to the client: the parameters, with what the gate says
// of them.
var asked = has("request", &Shape{Kind: Object, Open: true, Fields: askedFields},
	"what the server asks the client, the parameters as the client would see them", func(q *query) *ast.Term {
		secret := []byte("false")
		if forms.AsksSecret(q.Call.Action, q.Call.Args) {
			secret = []byte("true")
		}
		r := q.Call.Args
		if r.Kind() != doc.Object {
			r = gate.Doc{}
		}
		return Doc(r.With("secret", secret))
	})

var (
	toolCalls = formed("", []gate.Action{gate.CallTool, actions.AgentCall}, ofTool, arguments,
		has("provenance", mapOf(texts), "by JSON Pointers, where each value of the arguments was met; empty unless a rule looks at it", func(q *query) *ast.Term { met, _ := q.sources(); return met }),
		has("carried", mapOf(mapOf(texts)), "by JSON Pointers, the addresses in each text of the arguments, and where they were met; empty unless a rule looks at it", func(q *query) *ast.Term { _, carried := q.sources(); return carried }),
		mayHave("app", appMembers.shape(), "of a call of a client that shows apps (MCP Apps): what the gateway knows of them", func(q *query) *ast.Term {
			if !q.Call.Renders {
				return nil
			}
			return appMembers.term(q)
		}),
		mayHave("values", mapOf(valueMembers.shape()), "by JSON Pointers, more of each value of the arguments", values))
	promptGets    = formOf(gate.GetPrompt, ofPrompt, arguments)
	completions   = formOf(gate.Complete, when(ofPrompt, gate.FeaturePrompt), when(has("resource", resources, ofResource.About, func(q *query) *ast.Term { return resourceMembers.term(resource{q.Tool, nil}) }), gate.FeatureTemplate), arguments)
	resourceReads = formed("", []gate.Action{gate.ReadResource, gate.Subscribe}, ofResource, mayHave("skill", ofSkill.Shape, "of a file of a skill (MCP Skills): the skill", func(q *query) *ast.Term {
		if q.Tool.Skill == nil {
			return nil
		}
		return skillMembers.term(q.Tool)
	}))
	skillUses    = formed("", []gate.Action{gate.GetSkill, gate.ReadDirectory}, ofSkill)
	methodCalls  = formed("a method that MCP does not have", nil, ofMethod, ofServer, arguments)
	peerRequests = formed("", []gate.Action{actions.Elicit, actions.Sample, actions.ListRoots},
		when(ofTool, gate.FeatureTool, gate.FeatureAgent), when(ofPrompt, gate.FeaturePrompt), when(ofMethod, gate.FeatureMethod),
		when(has("resource", resources, ofResource.About, peerResource), gate.FeatureResource, gate.FeatureTemplate), ofServer, asked)
	httpRequests = formOf(actions.SandboxHTTP, ofTool, request(
		field("method", text, "such as `GET`"), field("scheme", text, "`http` or `https`"), field("host", text, "an IPv6 address without brackets"),
		field("port", &Shape{Kind: Number}, "also where it is the scheme's own"), field("path", text, "escaped, in one spelling; begins with /"), field("names", texts, "in the path, as lenient origins read it")))
	secretUses = formOf(actions.SandboxSecret, ofTool, request(field("name", text, "of the secret"), field("origin", text, "to which it is sent")))
	keyUses    = formOf(actions.SandboxKV, ofTool, request(field("op", text, "`get`, `set`, `delete` or `list`"), field("key", text, "the key, or the beginning of those that are listed")))
	fileUses   = formOf(actions.SandboxFile, ofTool, request(field("op", text, "`read`, or another that changes something"), field("path", text, "absolute, written with /")))
	adminUses  = &form{actions: []gate.Action{"admin/read", "admin/approve", "admin/pin", "admin/grant"}, shape: adminMembers.shape()}
)

// peerResource is what was used when the server asks: a template whose argument is completed
// by its own name.
func peerResource(q *query) *ast.Term {
	uri := q.Call.URI(q.Tool) // the client may know it by another
	if q.Call.Name == q.Tool.Offered {
		uri = q.Tool.Local
	}
	return resourceMembers.term(resource{q.Tool, &uri})
}

// all are the forms of input.
var all = []*form{
	toolCalls, promptGets, completions, resourceReads, skillUses, methodCalls, peerRequests, httpRequests, secretUses, keyUses, fileUses, adminUses,
}

// form returns the form of the input for a query.
func (q *query) form() *form {
	for _, f := range all {
		if slices.Contains(f.actions, q.Call.Action) {
			return f
		}
	}
	return methodCalls
}

// Input returns the document that the policy decides on.
func (b *Builder) Input(q gate.Query) ast.Value {
	one := &query{Builder: b, Query: q}
	return one.form().members.object(one)
}

// Listing returns what is known of the use of a tool, a prompt, a resource or a method before
// it is used. The URI of a template is not.
func (b *Builder) Listing(action gate.Action, who *ast.Term, t *gate.Tool) ast.Value {
	members := [][2]*ast.Term{{caller[0].key, ast.InternedTerm(string(action))}, {caller[1].key, who}}
	switch t.Feature {
	case gate.FeaturePrompt:
		members = append(members, [2]*ast.Term{ofPrompt.key, namedMembers.term(t)})
	case gate.FeatureMethod:
		members = append(members, [2]*ast.Term{ofMethod.key, namedMembers.term(t)}, [2]*ast.Term{ofServer.key, server(t)})
	case gate.FeatureSkill:
		members = append(members, [2]*ast.Term{ofSkill.key, skillMembers.term(t)})
	case gate.FeatureResource:
		members = append(members, [2]*ast.Term{ofResource.key, resourceMembers.term(resource{t, &t.Local})})
	case gate.FeatureTemplate:
		members = append(members, [2]*ast.Term{ofResource.key, resourceMembers.term(resource{t, nil})})
	default:
		members = append(members, [2]*ast.Term{ofTool.key, b.tool(t)})
	}
	return ast.NewObject(members...)
}

// Admin is what somebody who runs the gateway would do.
type Admin struct {
	Who        *gate.Principal
	Action     gate.Action
	Op, Object string
	Operator   bool // of this machine
}

var adminDetails = members[Admin]{
	has("op", text, "what is done, such as `calls.read`", func(a Admin) *ast.Term { return ast.StringTerm(a.Op) }),
	has("object", text, "the id of the call, approval, server or session that it is about; may be empty", func(a Admin) *ast.Term { return ast.StringTerm(a.Object) }),
	has("operator", truth, "whether it is the operator of this machine", func(a Admin) *ast.Term { return ast.BooleanTerm(a.Operator) }),
}

var adminMembers = members[Admin]{
	has("action", text, caller[0].About, func(a Admin) *ast.Term { return ast.StringTerm(string(a.Action)) }),
	has("principal", caller[1].Shape, caller[1].About, func(a Admin) *ast.Term { return Principal(a.Who) }),
	has("admin", adminDetails.shape(), "what a person does with the gateway itself", func(a Admin) *ast.Term { return adminDetails.term(a) }),
}

// ForAdmin returns the input for what somebody who runs the gateway would do.
func ForAdmin(a Admin) ast.Value { return adminMembers.object(a) }
