# Pack flow: what somebody outside has written does not choose what is done.
#
# Once a session has read untrusted content, a tool that has an effect runs only
# if each argument that says to whom or where was met, as a whole value, where nobody
# outside writes: in the user's own words, in the result of a trusted tool, in a call from
# before the session read anything untrusted, or in a call that a person approved. Those
# that say when, how much and which of several may be new, but not from untrusted content
# alone. A call that says neither to whom nor where runs only if something in it was met
# there: one without arguments never does. Text that leaves may not carry addresses that were not named so, and what is
# private only goes to whom the user has chosen. What a tool is, the
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
	not flow_listed(pointer)
	reason := concat("", ["flow: the session has read untrusted content, and nobody trusted has named ", pointer])
}

deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_effect
	"untrusted" in input.session.labels
	some pointer, sources in input.provenance
	flow_commits(pointer)
	not flow_vouched(sources)
	not input.values[pointer].listed
	input.values[pointer].copied == true
	reason := concat("", ["flow: the session has read untrusted content, and the user has not chosen ", pointer])
}

deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_leaves
	"untrusted" in input.session.labels
	some pointer, addresses in input.carried
	flow_content(pointer)
	some sources in addresses
	not flow_vouched(sources)
	reason := concat("", ["flow: the session has read untrusted content, and nobody trusted has named an address in ", pointer])
}

# What is private leaves to whom the user has chosen: in the prompt, by an approval, or by
# being that person. That a directory knows somebody is not enough.
deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_leaves
	"untrusted" in input.session.labels
	"private" in input.session.labels
	some pointer, value in input.values
	value.private == true
	not flow_control(pointer)
	some to, sources in input.provenance
	flow_control(to)
	not flow_chosen(to, sources)
	reason := concat("", ["flow: the session has read untrusted content, ", pointer, " holds what is private, and the user has not chosen ", to])
}

# A tool that reaches others and is never told whom reaches whomever its server has in mind.
deny contains reason if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_leaves
	"untrusted" in input.session.labels
	"private" in input.session.labels
	input.tool.labels.to == []
	some pointer, value in input.values
	value.private == true
	not flow_control(pointer)
	reason := concat("", ["flow: the session has read untrusted content, ", pointer, " holds what is private, and the user has not chosen whom the tool reaches"])
}

# What has been read can ask for a call that says neither to whom nor where, such as one that
# unlocks a door or enters an appointment.
deny contains "flow: the session has read untrusted content, and no trusted source has named a value of the call" if {
	input.action in {"tools/call", "agent/tools/call"}
	flow_effect
	"untrusted" in input.session.labels
	not flow_unguarded
	not flow_reads
	not flow_destined
	not flow_named
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

flow_leaves if {
	some effect in input.tool.labels.effect
	effect in {"external", "egress"}
}

# A listing shows that something exists, not that the user has chosen it: enough for what
# stays with the user.
flow_listed(pointer) if {
	input.values[pointer].listed == true
	every effect in input.tool.labels.effect {
		effect in {"read", "local", "internal"}
	}
}

# To an id of this kind one talks: a channel, a user, a thread. That the server has listed it is
# enough, but for what is private.
flow_listed(pointer) if {
	input.values[pointer].listed == true
	flow_recipient(input.values[pointer].kind)
	every effect in input.tool.labels.effect {
		effect in {"read", "local", "internal", "external", "credential"}
	}
}

flow_recipient(kind) if kind == "recipient"

flow_recipient(kind) if startswith(kind, "recipient.")

flow_chosen(_, sources) if {
	some source in sources
	source in {"prompt", "approved"}
}

flow_chosen(pointer, _) if input.values[pointer].own == true

# The operator says that no argument matters, nor that there is none.
flow_unguarded if input.tool.labels.control == []

# A search asks what it likes: what it asks is content.
flow_reads if {
	"read" in input.tool.labels.effect
	every effect in input.tool.labels.effect {
		effect in {"read", "egress"}
	}
}

flow_destined if {
	some pointer, _ in input.provenance
	flow_control(pointer)
}

flow_named if {
	some sources in input.provenance
	flow_vouched(sources)
}

flow_named if {
	some pointer, _ in input.provenance
	flow_listed(pointer)
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

flow_control(_) if {
	not input.tool.labels.control
	not flow_typed
}

flow_control(pointer) if {
	some root in input.tool.labels.to
	flow_within(pointer, root)
}

# An argument that is named nowhere.
flow_control(pointer) if {
	flow_typed
	not flow_commits(pointer)
	not flow_within_content(pointer)
}

# A call that says nowhere to whom or where says it by the ids that it has; one of a tool
# that never says it, by all that it has.
flow_control(pointer) if {
	flow_commits(pointer)
	input.tool.labels.to
	input.tool.labels.to != []
	not flow_somewhere
	input.values[pointer].kind != ""
}

flow_control(pointer) if {
	not input.tool.labels.to
	flow_commits(pointer)
}

flow_control(pointer) if {
	flow_typed
	not input.tool.labels.to
	flow_within_content(pointer)
}


flow_typed if input.tool.labels.to

flow_typed if input.tool.labels.commits

flow_somewhere if {
	some pointer, _ in input.provenance
	not flow_commits(pointer)
	not flow_within_content(pointer)
}

flow_commits(pointer) if {
	some root in input.tool.labels.commits
	flow_within(pointer, root)
}

flow_content(pointer) if flow_within_content(pointer)

flow_within_content(pointer) if {
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
