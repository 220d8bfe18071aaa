package wasmgate_test

import data.wasmgate

approve_asks(tool) if {
	"approve: the tool does more than read" in wasmgate.ask with input as {"action": "tools/call", "tool": tool}
}

test_approve_lets_reading_be if not approve_asks({"labels": {"effect": ["read"]}})

test_approve_asks_for_every_effect if {
	approve_asks({"labels": {"effect": ["local"]}})
	approve_asks({"labels": {"effect": ["read", "external"]}})
}

test_approve_asks_for_what_nobody_has_marked if {
	approve_asks({"labels": {}, "sandboxed": false, "capabilities": {}})
	approve_asks({"labels": {}, "sandboxed": true, "capabilities": {"kv": true}})
}

test_approve_lets_be_what_a_person_has_approved_for_good if {
	tool := {"name": "mail__send", "labels": {"effect": ["external"]}}
	always := [{"to": ["alice"], "always": ["mail__send"]}]
	call := {"action": "tools/call", "tool": tool, "principal": {"id": "alice", "roles": []}}
	count(wasmgate.ask) == 0 with input as call with data.grants as always
	count(wasmgate.ask) == 1 with input as object.union(call, {"principal": {"tenant": "acme"}}) with data.grants as always
	count(wasmgate.ask) == 1 with input as object.union(call, {"principal": {"id": "bob"}}) with data.grants as always
	count(wasmgate.ask) == 1 with input as call with data.grants as [{"to": ["alice"], "tools": ["mail__send"]}]
}

test_approve_lets_a_module_compute if {
	not approve_asks({"labels": {}, "sandboxed": true, "capabilities": {}})
}

test_approve_asks_for_methods_that_mcp_does_not_have if {
	call := {"action": "acme/wipe", "method": {"name": "files__acme/wipe", "server": "files", "groups": []}}
	count(wasmgate.ask) == 1 with input as call
	count(wasmgate.ask) == 0 with input as object.union(call, {"action": "roots/list"})
}
