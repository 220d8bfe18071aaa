# Pack grants: allows what the grants file grants, tools that by themselves do nothing
# to anybody, and what a module does with what its configuration grants it.
# wasmgate.granted looks into an index of data.grants and gives the grant that matches,
# in words; it is undefined when none does. wasmgate.granted_group does so by groups,
# wasmgate.granted_resource and wasmgate.granted_template of what an owner has by URI,
# wasmgate.granted_skill of skills, wasmgate.granted_method of methods that MCP does not have.
package wasmgate

allow contains reason if {
	input.action == "tools/call"
	reason := wasmgate.granted(data.grants, "tools", input.tool.name, grants_principal, input.principal.roles)
}

allow contains reason if {
	input.action == "tools/call"
	reason := wasmgate.granted_group(data.grants, input.tool.groups, input.tool.name, grants_principal, input.principal.roles)
}

# What an agent carries out itself has grants of its own: no pattern of tools reaches it.
allow contains reason if {
	input.action == "agent/tools/call"
	reason := wasmgate.granted(data.grants, "agents", input.tool.name, grants_principal, input.principal.roles)
}

# A tool that carries out others (catalog__*, jobs__*) reaches nothing by itself: the call
# that it makes is decided on as any other.
allow contains "the tool carries out other calls, which need grants of their own" if {
	input.action == "tools/call"
	input.tool.relay == true
}

# A WASM module without capabilities computes: it reaches no file, no network
# and no secret.
allow contains "the tool is sandboxed and holds no capability" if {
	input.action == "tools/call"
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

# A file of a skill is granted with its skill, and not by its URI.
allow contains reason if {
	input.action in {"resources/read", "resources/subscribe"}
	not input.skill
	grants_reaches
	server := object.get(input.resource, "server", "")
	reason := wasmgate.granted_resource(data.grants, server, input.resource.uri, grants_principal, input.principal.roles)
}

allow contains reason if {
	input.action in {"resources/read", "resources/subscribe"}
	not input.skill
	grants_group_reaches
	reason := wasmgate.granted_group(data.grants, input.resource.groups, input.resource.uri, grants_principal, input.principal.roles)
}

allow contains reason if {
	grants_skill
	reason := wasmgate.granted_skill(data.grants, input.skill.server, input.skill.name, grants_principal, input.principal.roles)
}

allow contains reason if {
	grants_skill
	reason := wasmgate.granted_group(data.grants, input.skill.groups, input.skill.name, grants_principal, input.principal.roles)
}

grants_skill if input.action in {"skills/get", "resources/directory/read"}

grants_skill if {
	input.action == "resources/read"
	input.skill
}

grants_group_reaches if not input.resource.template

grants_group_reaches if grants_group_template

grants_group_template := wasmgate.granted_group(data.grants, input.resource.groups, input.resource.template, grants_principal, input.principal.roles)

# Of a URI that no server lists, the template is granted as well as the URI: then a
# template is offered only to who could read something by it.
grants_reaches if not input.resource.template

grants_reaches if grants_template

grants_template := wasmgate.granted_template(data.grants, input.resource.server, input.resource.template, grants_principal, input.principal.roles)

allow contains grants_template if input.action == "completion/complete"

allow contains reason if {
	input.action in {"prompts/get", "completion/complete"}
	reason := wasmgate.granted(data.grants, "prompts", input.prompt.name, grants_principal, input.principal.roles)
}

allow contains reason if {
	input.action in {"prompts/get", "completion/complete"}
	reason := wasmgate.granted_group(data.grants, input.prompt.groups, input.prompt.name, grants_principal, input.principal.roles)
}

allow contains grants_group_template if input.action == "completion/complete"

# The action of such a method is the method. What its server asks meanwhile is another.
allow contains reason if {
	input.method.name == concat("__", [input.method.server, input.action])
	reason := wasmgate.granted_method(data.grants, input.method, grants_principal, input.principal.roles)
}

# What a server asks of the client is asked within a call that was allowed. A form, or
# a URL, is part of the call, unless it is for a secret. For that, for the client's
# model and for its folders, the grant of the call says so under asks.

allow contains "the call is allowed, and its server asks for no secret" if {
	input.action == "elicitation/create"
	input.request.secret == false
}

allow contains reason if {
	input.action == "elicitation/create"
	input.request.secret == true
	reason := grants_ask("secrets")
}

allow contains reason if {
	input.action == "sampling/createMessage"
	reason := grants_ask("sampling")
}

allow contains reason if {
	input.action == "roots/list"
	reason := grants_ask("roots")
}

grants_ask(what) := wasmgate.granted_ask(data.grants, what, "tools", used, grants_principal, input.principal.roles) if {
	used := {"name": input.tool.name, "server": input.tool.server, "groups": input.tool.groups}
}

grants_ask(what) := wasmgate.granted_ask(data.grants, what, "prompts", used, grants_principal, input.principal.roles) if {
	used := {"name": input.prompt.name, "server": input.prompt.server, "groups": input.prompt.groups}
}

grants_ask(what) := wasmgate.granted_ask(data.grants, what, "resources", used, grants_principal, input.principal.roles) if {
	used := {"uri": input.resource.uri, "server": input.resource.server, "groups": input.resource.groups}
}

grants_ask(what) := wasmgate.granted_ask(data.grants, what, "methods", input.method, grants_principal, input.principal.roles) if input.method

# Host calls are made only within a call that was allowed, and by a tool that
# needed a grant for that. What the configuration grants the module, the operator
# has granted: there is nothing left to ask.

allow contains "the module is granted the origin, the method and the path" if {
	input.action == "sandbox/http"
	input.tool.sandboxed == true
	some grant in input.tool.capabilities.http
	sandbox_origin(input.request) == grant.origin
	input.request.method in grant.methods
	sandbox_within(grant.path, input.request.path)
}

allow contains "the module is granted the secret" if {
	input.action == "sandbox/secret"
	input.tool.sandboxed == true
	input.request.name in input.tool.capabilities.secrets
}

allow contains "the module is granted a key-value store" if {
	input.action == "sandbox/kv"
	input.tool.sandboxed == true
	input.tool.capabilities.kv == true
}

allow contains "the module is granted the directory to read" if {
	input.action == "sandbox/file"
	input.tool.sandboxed == true
	input.request.op == "read"
	some dir in input.tool.capabilities.dirs
	sandbox_within(dir.path, input.request.path)
}

allow contains "the module is granted the directory to write" if {
	input.action == "sandbox/file"
	input.tool.sandboxed == true
	some dir in input.tool.capabilities.dirs
	dir.write == true
	sandbox_within(dir.path, input.request.path)
}

# The origin of a request as RFC 6454, section 6.2, writes it.
sandbox_origin(request) := concat("", [request.scheme, "://", sandbox_host(request.host)]) if {
	{"http": 80, "https": 443}[request.scheme] == request.port
} else := concat("", [request.scheme, "://", sandbox_host(request.host), ":", format_int(request.port, 10)])

sandbox_host(host) := concat("", ["[", host, "]"]) if {
	contains(host, ":") # IPv6
} else := host

# Whether a path begins with prefix, in whole segments: /v1 and /v1/ both stand
# for /v1 and what is below it, and not for /v1beta.
sandbox_within(prefix, path) if path == trim_suffix(prefix, "/")

sandbox_within(prefix, path) if {
	startswith(path, concat("", [trim_suffix(prefix, "/"), "/"]))
	not ".." in split(path, "/")
}

# How lists name the principal: with its tenant in front, if it has one.
grants_principal := concat("/", [input.principal.tenant, input.principal.id]) if {
	input.principal.tenant != ""
} else := input.principal.id
