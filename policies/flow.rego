# Pack flow: what somebody outside has written does not choose what is done.
#
# Once a session has read untrusted content, a tool that has an effect runs only
# if each of its control arguments was met, as a whole value, where nobody outside
# writes: in the user's own words, in the result of a trusted tool, in a call from
# before the session read anything untrusted, or in a call that a person approved.
# Text that leaves may not carry addresses that were not. What a tool is, the
# labels file says; a tool of which it says nothing counts as one that reaches
# others, with every argument as control.
#
# The pack only denies. What is allowed, other packs and files say.
package wasmgate

deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_effect
	"untrusted" in input.session.labels
	some pointer, sources in input.provenance
	flow_control(pointer)
	not flow_vouched(sources)
	reason := concat("", ["flow: the session has read untrusted content, and nobody trusted has named ", pointer])
}

deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	some effect in input.tool.labels.effect
	effect in {"external", "egress"}
	"untrusted" in input.session.labels
	some pointer, addresses in input.carried
	flow_content(pointer)
	some sources in addresses
	not flow_vouched(sources)
	reason := concat("", ["flow: the session has read untrusted content, and nobody trusted has named an address in ", pointer])
}

# Of a method that MCP does not have nobody says what it does, nor where its parameters
# come from.
deny contains "flow: the session has read untrusted content, and nobody has said what a method does that MCP does not have" if {
	input.method.name == concat("__", [input.method.server, input.action])
	"untrusted" in input.session.labels
}

# What the client's model writes goes to the server, and it may write what it has read.
deny contains "flow: the session has read private content, and the server would have the client's model write" if {
	input.action == "sampling/createMessage"
	"private" in input.session.labels
}

flow_effect if {
	some effect in input.tool.labels.effect
	effect != "read"
}

# A module without capabilities computes, and does nothing to anybody.
flow_effect if {
	input.tool.labels == {}
	not flow_computes
}

flow_computes if {
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

flow_control(pointer) if {
	some root in input.tool.labels.control
	flow_within(pointer, root)
}

flow_control(_) if not input.tool.labels.control

flow_content(pointer) if {
	some root in input.tool.labels.content
	flow_within(pointer, root)
}

flow_content(pointer) if {
	not input.tool.labels.content
	not flow_control(pointer)
}

flow_within(pointer, root) if pointer == root

flow_within(pointer, root) if startswith(pointer, concat("", [root, "/"]))

flow_vouched(sources) if {
	some source in sources
	source in {"prompt", "trusted", "approved"}
}
