# Pack grants: allows what the grants file grants, and tools that can do nothing
# to anybody. wasmgate.granted looks into an index of data.grants and gives the
# grant that matches, in words; it is undefined when none does.
package wasmgate

allow contains reason if {
	input.action == "tools/call"
	reason := wasmgate.granted(data.grants, "tools", input.tool.name, input.principal.id, input.principal.roles)
}

# A WASM module without capabilities computes: it reaches no file, no network
# and no secret.
allow contains "the tool is sandboxed and holds no capability" if {
	input.action == "tools/call"
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

allow contains reason if {
	input.action in {"resources/read", "resources/subscribe"}
	reason := wasmgate.granted(data.grants, "resources", input.resource.uri, input.principal.id, input.principal.roles)
}

allow contains reason if {
	input.action in {"prompts/get", "completion/complete"}
	reason := wasmgate.granted(data.grants, "prompts", input.prompt.name, input.principal.id, input.principal.roles)
}
