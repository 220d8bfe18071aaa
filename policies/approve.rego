# Pack approve: of the calls that something allows, a person approves each of a tool
# that does more than read, as the labels file says. A tool of which it says nothing
# is one of them. What a grant names under always, a person has approved for good.
package wasmgate

ask contains "approve: the tool does more than read" if {
	input.action in {"tools/call", "agent/tools/call"}
	not approve_reads
	not approve_always
}

# Methods that MCP does not have may do anything. People are asked about tools alone, so
# that this refuses them.
ask contains "approve: a method that MCP does not have may do anything" if {
	input.method.name == concat("__", [input.method.server, input.action])
}

approve_reads if input.tool.labels.effect == ["read"]

# A module without capabilities computes, and does nothing to anybody.
approve_reads if {
	input.tool.labels == {}
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

approve_always if wasmgate.granted(data.grants, "always", input.tool.name, approve_principal, input.principal.roles)

# How lists name the principal: with its tenant in front, if it has one.
approve_principal := concat("/", [input.principal.tenant, input.principal.id]) if {
	input.principal.tenant != ""
} else := input.principal.id
