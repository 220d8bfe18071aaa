package input

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// A claimant is a principal and what its client says of itself.
type claimant struct {
	*gate.Principal
	clientName, clientVersion string
}

var clientMembers = members[claimant]{
	has("id", text, "the OAuth client of the access token, or empty", func(c claimant) *ast.Term { return ast.StringTerm(c.Client) }),
	has("name", text, "as the client claims, which proves nothing", func(c claimant) *ast.Term { return ast.StringTerm(c.clientName) }),
	has("version", text, "as the client claims", func(c claimant) *ast.Term { return ast.StringTerm(c.clientVersion) }),
}

var principalMembers = members[claimant]{
	has("id", text, "the name of the principal", func(c claimant) *ast.Term { return ast.StringTerm(c.ID) }),
	has("tenant", text, "its tenant, or empty", func(c claimant) *ast.Term { return ast.StringTerm(c.Tenant) }),
	has("auth", text, "how it was authenticated", func(c claimant) *ast.Term { return ast.StringTerm(c.Auth) }),
	has("roles", texts, "its roles", func(c claimant) *ast.Term { return Texts(c.Roles) }),
	has("claims", open, "the claims of its access token that the issuer's `claims.keep` names", func(c claimant) *ast.Term { return docOrObject(c.Claims) }),
	has("client", clientMembers.shape(), "the program that calls", func(c claimant) *ast.Term { return clientMembers.term(c) }),
}

var sessionMembers = members[*query]{
	has("id", text, "the name of the session", func(q *query) *ast.Term { return ast.StringTerm(q.Call.Session.ID) }),
	has("labels", texts, "what the session has read, such as `untrusted`", func(q *query) *ast.Term { return Texts(q.Session.Labels) }),
}

// appMembers describe how a call has to do with the app of a server. A client does not say
// which of its calls come from a page.
var appMembers = members[*query]{
	has("only", truth, "whether the tool is only for its server's app", func(q *query) *ast.Term { return ast.BooleanTerm(q.Tool.AppOnly) }),
	has("own_name", truth, "whether the call names the tool as its server does, which only a page does", func(q *query) *ast.Term { return ast.BooleanTerm(q.Call.OwnName) }),
	has("open", texts, "the servers with an app that is open in the session", func(q *query) *ast.Term { return Texts(q.Session.OpenApps()) }),
}

// labelMembers describe a tool for which the labels file has an entry.
var labelMembers = members[provenance.ToolLabels]{
	has("result", text, "`trusted`, `untrusted` or `echo`", func(l provenance.ToolLabels) *ast.Term {
		if l.Result == "" {
			l.Result = provenance.ResultUntrusted
		}
		return ast.StringTerm(string(l.Result))
	}),
	has("private", truth, "whether results are private", func(l provenance.ToolLabels) *ast.Term { return ast.BooleanTerm(l.Private) }),
	has("effect", texts, "what the tool may cause", func(l provenance.ToolLabels) *ast.Term {
		effects := make([]string, len(l.Effects))
		for i, e := range l.Effects {
			effects[i] = string(e)
		}
		return Texts(effects)
	}),
	mayHave("kind", text, "`code` or `prose`", func(l provenance.ToolLabels) *ast.Term {
		if l.Kind == "" {
			return nil
		}
		return ast.StringTerm(string(l.Kind))
	}),
	pointers("control", func(l provenance.ToolLabels) []string { return l.Control }),
	pointers("content", func(l provenance.ToolLabels) []string { return l.Content }),
	pointers("to", func(l provenance.ToolLabels) []string { return l.To }),
	pointers("commits", func(l provenance.ToolLabels) []string { return l.Commits }),
}

func pointers(name string, list func(provenance.ToolLabels) []string) member[provenance.ToolLabels] {
	return mayHave(name, texts, "JSON Pointers, as the labels file has them", func(l provenance.ToolLabels) *ast.Term {
		if list(l) == nil {
			return nil
		}
		return Texts(list(l))
	})
}

// A labelled tool is a tool and what the labels file says of it.
type labelled struct {
	*gate.Tool
	labels func(*gate.Tool) (provenance.ToolLabels, bool)
}

// Capabilities and origin are documents that the owner of the modules makes.
var (
	capabilities = objectOf(
		optional("http", listOf(objectOf(
			field("origin", text, "such as `https://api.example.com`"), field("methods", texts, "such as `GET`"),
			field("path", text, "below which requests may go"), field("private", truth, "whether the host may have a private address"))), "requests that it may send"),
		optional("dirs", listOf(objectOf(field("path", text, "of the folder"), field("write", truth, "whether it may change files there"))), "folders that it may use"),
		optional("secrets", texts, "names of secrets that it may use"),
		optional("kv", truth, "whether it may keep values"),
	).orEmpty()
	origin = objectOf(field("source", text, "the file or address of the module"), field("signer", text, "who signed it, or empty")).orEmpty()
)

// annotations are those that MCP has. A server may send others, and any values.
var annotations = []Field{
	param("title"), param("readOnlyHint"), param("destructiveHint"), param("idempotentHint"), param("openWorldHint"),
}

var toolMembers = members[labelled]{
	has("name", text, "the name with the server, `server__tool`", func(t labelled) *ast.Term { return ast.StringTerm(t.Name.String()) }),
	has("server", text, "the server's id in the configuration", func(t labelled) *ast.Term { return ast.StringTerm(t.Name.Server) }),
	has("local_name", text, "the name at the server", func(t labelled) *ast.Term { return ast.StringTerm(t.Local) }),
	has("annotations", &Shape{Kind: Object, Open: true, Fields: annotations}, "what the server says of the tool, which proves nothing", func(t labelled) *ast.Term { return docOrObject(t.Annotations) }),
	has("labels", labelMembers.shape().orEmpty(), "what the labels file says of the tool; `{}` without an entry", func(t labelled) *ast.Term {
		if labels, ok := t.labels(t.Tool); ok {
			return labelMembers.term(labels)
		}
		return emptyObject
	}),
	has("groups", texts, "the configuration's groups that it is in", func(t labelled) *ast.Term { return Texts(t.Groups) }),
	has("sandboxed", truth, "whether it runs as a WebAssembly module", func(t labelled) *ast.Term { return ast.BooleanTerm(t.Sandboxed) }),
	has("capabilities", capabilities, "what the configuration grants the module; `{}` for none, and for other tools", func(t labelled) *ast.Term { return docOrObject(t.Capabilities) }),
	has("origin", origin, "where the module comes from; `{}` for other tools", func(t labelled) *ast.Term { return docOrObject(t.Origin) }),
	has("relay", truth, "whether it is one of the gateway's own that carry out other calls", func(t labelled) *ast.Term { return ast.BooleanTerm(t.Relay) }),
	has("pinned", truth, "whether a person has approved the definition", func(t labelled) *ast.Term { return ast.BooleanTerm(t.Pinned) }),
	has("findings", texts, "the rules of `wasmgate scan` that the definition meets", func(t labelled) *ast.Term { return Texts(t.Findings) }),
}

func server(t *gate.Tool) *ast.Term { return ast.StringTerm(t.Name.Server) }

func groups(t *gate.Tool) *ast.Term { return Texts(t.Groups) }

// namedMembers describe a prompt, or a method that MCP does not have.
var namedMembers = members[*gate.Tool]{
	has("name", text, "the name with the server", func(t *gate.Tool) *ast.Term { return ast.StringTerm(t.Name.String()) }),
	has("server", text, "the server's id in the configuration", server),
	has("groups", texts, "the configuration's groups that it is in", groups),
}

// A resource is one that is listed, or that a template stands for.
type resource struct {
	*gate.Tool
	uri *string // nil while that of a template is not known
}

var resourceMembers = members[resource]{
	has("server", text, "the server's id in the configuration", func(r resource) *ast.Term { return server(r.Tool) }),
	has("mime_type", text, "as the server declares it, or empty", func(r resource) *ast.Term { return ast.StringTerm(r.MIME) }),
	has("groups", texts, "the configuration's groups that it is in", func(r resource) *ast.Term { return groups(r.Tool) }),
	mayHave("uri", text, "as the server knows it", func(r resource) *ast.Term {
		if r.uri == nil {
			return nil
		}
		return ast.StringTerm(*r.uri)
	}),
	mayHave("template", text, "the template that the URI was found by, if it is not listed", func(r resource) *ast.Term {
		if r.Feature != gate.FeatureTemplate {
			return nil
		}
		return ast.StringTerm(r.Local)
	}),
}
