# Support may read tickets and answer them. Closing one needs a person; deleting is never allowed.
package wasmgate

support if "support" in input.principal.roles

allow contains "support reads tickets" if {
	support
	startswith(input.tool.name, "tickets__get_")
}

allow contains "support answers tickets" if {
	support
	input.tool.name == "tickets__reply"
}

ask contains "closing a ticket needs a person" if {
	support
	input.tool.name == "tickets__close"
}

deny contains "tickets are never deleted" if input.tool.name == "tickets__delete"
