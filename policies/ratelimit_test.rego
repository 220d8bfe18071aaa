package wasmgate_test

import data.wasmgate

limits := [
	{"to": ["*"], "calls": 60, "per": "1m"},
	{"to": ["alice", "role:dev"], "tools": ["pay__*"], "except": ["pay__balance"], "calls": 5, "burst": 2, "per": "1h", "key": ["principal", "tool"]},
	{"to": ["bob"], "servers": ["files"], "bytes": 1048576, "per": "1m"},
]

rates(tool, id, roles) := {object.remove(o.rate, ["name"]) |
	some o in wasmgate.obligations with input as {
			"action": "tools/call",
			"principal": {"id": id, "roles": roles},
			"tool": {"name": tool, "labels": {}},
			"arguments": {},
		}
		with data.ratelimit as limits
		with data.grants as []
}

everybody := {"key": ["principal"], "calls": 60, "per": "1m"}

pays := {"key": ["principal", "tool"], "calls": 5, "burst": 2, "per": "1h"}

test_ratelimit_without_tools_is_about_all if rates("mail__send", "carol", []) == {everybody}

test_ratelimit_holds_calls_to_each_entry_that_matches if {
	rates("pay__transfer", "alice", []) == {everybody, pays}
	rates("pay__transfer", "carol", ["ops", "dev"]) == {everybody, pays}
	rates("files__read", "bob", []) == {everybody, {"key": ["principal"], "bytes": 1048576, "per": "1m"}}
}

test_ratelimit_counts_an_entry_once if rates("pay__transfer", "alice", ["dev"]) == {everybody, pays}

test_ratelimit_leaves_out_what_is_excepted if rates("pay__balance", "alice", []) == {everybody}

test_ratelimit_charges_for_the_call_that_is_carried_out if {
	count(wasmgate.obligations) == 0 with input as {
		"action": "tools/call",
		"principal": {"id": "alice", "roles": []},
		"tool": {"name": "catalog__call", "labels": {}, "relay": true},
		"arguments": {},
	}
		with data.ratelimit as limits
		with data.grants as []
}

test_ratelimit_looks_at_calls_alone if {
	count(wasmgate.obligations) == 0 with input as {"action": "sandbox/kv", "principal": {"id": "alice", "roles": []}, "tool": {"name": "a__b"}}
		with data.ratelimit as limits
}

test_ratelimit_without_limits_obliges_to_nothing if {
	count(wasmgate.obligations) == 0 with input as {"action": "tools/call", "principal": {"id": "alice", "roles": []}, "tool": {"name": "a__b"}}
		with data.ratelimit as []
}

test_ratelimit_holds_methods_that_mcp_does_not_have if {
	call := {"action": "acme/wipe", "principal": {"id": "bob", "roles": []}, "method": {"name": "files__acme/wipe", "server": "files", "groups": []}}
	count(wasmgate.obligations) == 2 with input as call with data.ratelimit as limits with data.grants as []
	count(wasmgate.obligations) == 0 with input as object.union(call, {"action": "roots/list"}) with data.ratelimit as limits with data.grants as []
}
