package policy

import (
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/forms"
	"github.com/wasmgate/wasmgate/internal/recent"
)

// The names of the input. Interned: a term is made once for the process.
var (
	keyAction     = ast.InternedTerm("action")
	keyPrincipal  = ast.InternedTerm("principal")
	keySession    = ast.InternedTerm("session")
	keyTool       = ast.InternedTerm("tool")
	keyArguments  = ast.InternedTerm("arguments")
	keyRequest    = ast.InternedTerm("request")
	keyProvenance = ast.InternedTerm("provenance")
	keyCarried    = ast.InternedTerm("carried")
	keyValues     = ast.InternedTerm("values")
	keyID         = ast.InternedTerm("id")
	keyName       = ast.InternedTerm("name")
	keyLabels     = ast.InternedTerm("labels")
	emptyObject   = ast.ObjectTerm()
	emptyArray    = ast.ArrayTerm()
)

// terms turns what policies see into their values, and keeps those that many
// calls share. Principals and tools are immutable, so they are known by their
// address.
type terms struct {
	principals *recent.Cache[claimant, *ast.Term]
	tools      *recent.Cache[*gate.Tool, *ast.Term]
	labels     labelling
	tracks     bool // whether a rule may look at where values came from
	origins    bool // whether one may look at more of values than their sources
}

// A claimant is a principal and what its client says of itself.
type claimant struct {
	who                       *gate.Principal
	clientName, clientVersion string
}

const (
	keptPrincipals = 512  // half of what is kept; about 2 KiB each
	keptTools      = 2048 // half of what is kept; about 2 KiB each
)

func newTerms(labels []Label, src *source) *terms {
	tracks, origins := src.tracks()
	return &terms{
		recent.New[claimant, *ast.Term](keptPrincipals), recent.New[*gate.Tool, *ast.Term](keptTools),
		newLabelling(labels), tracks, origins,
	}
}

// input returns the document that the policy decides on.
func (t *terms) input(q gate.Query) ast.Value {
	c := q.Call
	session := ast.ObjectTerm(
		[2]*ast.Term{keyID, ast.StringTerm(c.Session.ID)},
		[2]*ast.Term{keyLabels, stringArray(q.Session.Labels)},
	)
	input := [][2]*ast.Term{
		{keyAction, ast.InternedTerm(string(c.Action))},
		{keyPrincipal, t.principal(claimant{c.Who, c.ClientName, c.ClientVersion})},
		{keySession, session},
	}
	if actions.IsPeerRequest(c.Action) {
		return ast.NewObject(append(input, t.peerInput(q)...)...)
	}
	if !asTool(q.Tool.Feature) {
		return ast.NewObject(append(input, featureInput(q)...)...)
	}
	input = append(input, [2]*ast.Term{keyTool, t.tool(q.Tool)})
	if actions.IsHostCall(c.Action) {
		input = append(input, [2]*ast.Term{keyRequest, docOrObject(c.Args)})
	} else {
		values, carried := emptyObject, emptyObject
		if t.tracks {
			values, carried = valueSources(q)
		}
		input = append(input, [2]*ast.Term{keyArguments, docOrObject(c.Args)},
			[2]*ast.Term{keyProvenance, values}, [2]*ast.Term{keyCarried, carried})
		if t.origins {
			input = append(input, [2]*ast.Term{keyValues, t.values(q)})
		}
	}
	return ast.NewObject(input...)
}

// listing returns what is known of a call of the tool before it is made.
func (t *terms) listing(who *ast.Term, tool *gate.Tool) ast.Value {
	if !asTool(tool.Feature) {
		return featureListing(who, tool)
	}
	return ast.NewObject(
		[2]*ast.Term{keyAction, ast.InternedTerm(string(actionsFor(tool)[0]))},
		[2]*ast.Term{keyPrincipal, who},
		[2]*ast.Term{keyTool, t.tool(tool)},
	)
}

func (t *terms) principal(c claimant) *ast.Term {
	if term, ok := t.principals.Get(c); ok {
		return term
	}
	term := newPrincipal(c)
	t.principals.Put(c, term)
	return term
}

func newPrincipal(c claimant) *ast.Term {
	return ast.ObjectTerm(
		[2]*ast.Term{keyID, ast.StringTerm(c.who.ID)},
		pair("tenant", ast.StringTerm(c.who.Tenant)),
		pair("auth", ast.StringTerm(c.who.Auth)),
		pair("roles", stringArray(c.who.Roles)),
		pair("claims", docOrObject(c.who.Claims)),
		pair("client", ast.ObjectTerm(
			[2]*ast.Term{keyID, ast.StringTerm(c.who.Client)},
			[2]*ast.Term{keyName, ast.StringTerm(c.clientName)},
			pair("version", ast.StringTerm(c.clientVersion)),
		)),
	)
}

func (t *terms) tool(tool *gate.Tool) *ast.Term {
	if term, ok := t.tools.Get(tool); ok {
		return term
	}
	term := ast.ObjectTerm(
		[2]*ast.Term{keyName, ast.StringTerm(tool.Name.String())},
		pair("server", ast.StringTerm(tool.Name.Server)),
		pair("local_name", ast.StringTerm(tool.Local)),
		pair("annotations", docOrObject(tool.Annotations)),
		[2]*ast.Term{keyLabels, t.labels.term(tool)},
		pair("groups", stringArray(tool.Groups)),
		pair("sandboxed", ast.BooleanTerm(tool.Sandboxed)),
		pair("capabilities", docOrObject(tool.Capabilities)),
		pair("origin", docOrObject(tool.Origin)),
		pair("relay", ast.BooleanTerm(tool.Relay)),
		pair("pinned", ast.BooleanTerm(tool.Pinned)),
		pair("findings", stringArray(tool.Findings)),
	)
	t.tools.Put(tool, term)
	return term
}

func pair(name string, v *ast.Term) [2]*ast.Term { return [2]*ast.Term{ast.InternedTerm(name), v} }

func stringArray(list []string) *ast.Term {
	if len(list) == 0 {
		return emptyArray
	}
	a := make([]*ast.Term, len(list))
	for i, s := range list {
		a[i] = ast.StringTerm(s)
	}
	return ast.ArrayTerm(a...)
}

func docOrObject(d gate.Doc) *ast.Term {
	if d.IsZero() {
		return emptyObject
	}
	return docTerm(d)
}

// docTerm returns the value of a document that is not absent. Numbers keep all
// of their digits.
func docTerm(d gate.Doc) *ast.Term {
	switch d.Kind() {
	case doc.Bool:
		return ast.InternedTerm(d.True())
	case doc.Number:
		return ast.NumberTerm(json.Number(d.Raw()))
	case doc.String:
		return ast.StringTerm(d.Text())
	case doc.Array:
		var a []*ast.Term
		for e := range d.Elements() {
			a = append(a, docTerm(e))
		}
		return ast.ArrayTerm(a...)
	case doc.Object:
		var m [][2]*ast.Term
		for k, v := range d.Members() {
			m = append(m, [2]*ast.Term{ast.StringTerm(k), docTerm(v)})
		}
		return ast.ObjectTerm(m...)
	default:
		return ast.NullTerm()
	}
}

// peerInput returns what the input has of a request of a server to the client: what was
// used when it asks, the server, and the request, with what the gate says of it.
func (t *terms) peerInput(q gate.Query) [][2]*ast.Term {
	subject := [2]*ast.Term{keyTool, nil}
	switch q.Tool.Feature {
	case gate.FeatureTool:
		subject[1] = t.tool(q.Tool)
	case gate.FeaturePrompt:
		subject = promptTerm(q.Tool)
	case gate.FeatureMethod:
		subject = methodTerm(q.Tool)
	default:
		uri := q.Call.URI(q.Tool) // the client may know it by another
		if q.Call.Name == q.Tool.Offered {
			uri = q.Tool.Local // a template whose argument is completed
		}
		subject = resourceTerm(q.Tool, &uri)
	}
	secret := []byte("false")
	if forms.AsksSecret(q.Call.Action, q.Call.Args) {
		secret = []byte("true")
	}
	request := q.Call.Args
	if request.Kind() != doc.Object {
		request = gate.Doc{}
	}
	return [][2]*ast.Term{subject, pair("server", ast.StringTerm(q.Tool.Name.Server)), {keyRequest, docTerm(request.With("secret", secret))}}
}
