# Pack approve: a person approves every call of a tool that does more than read,
# as the labels file says. A tool of which it says nothing is one of them. What a
# grant names under always, a person has approved for good.
package wasmgate

ask contains "approve: the tool does more than read" if {
	input.action == "tools/call"
	not approve_reads
	not approve_always
}

approve_reads if input.tool.labels.effect == ["read"]

# A module without capabilities computes, and does nothing to anybody.
approve_reads if {
	input.tool.labels == {}
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

approve_always if wasmgate.granted(data.grants, "always", input.tool.name, input.principal.id, input.principal.roles)
