# Pack approve: a person approves every call of a tool that does more than read,
# as the labels file says. A tool of which it says nothing is one of them.
package wasmgate

ask contains "approve: the tool does more than read" if {
	input.action == "tools/call"
	not approve_reads
}

approve_reads if input.tool.labels.effect == ["read"]

# A module without capabilities computes, and does nothing to anybody.
approve_reads if {
	input.tool.labels == {}
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}
