# Pack readonly: denies every tool that the labels file does not mark as one that
# reads and does nothing else. What a server says of its own tools is not asked.
package wasmgate

deny contains "readonly: the operator has not marked the tool as one that only reads" if {
	input.action in {"tools/call", "agent/tools/call"}
	not readonly_reads
}

# Methods that MCP does not have nobody can mark.
deny contains "readonly: a method that MCP does not have may do anything" if {
	input.method.name == concat("__", [input.method.server, input.action])
}

readonly_reads if input.tool.labels.effect == ["read"]
