package wasmgate_test

import data.wasmgate

readonly_denies(labels) if {
	"readonly: the operator has not marked the tool as one that only reads" in wasmgate.deny with input as {
		"action": "tools/call",
		"tool": {"name": "a__b", "labels": labels},
	}
}

test_readonly_lets_what_only_reads_pass if not readonly_denies({"effect": ["read"]})

test_readonly_denies_what_does_more if {
	readonly_denies({"effect": ["read", "local"]})
	readonly_denies({"effect": ["external"]})
}

test_readonly_denies_what_nobody_has_marked if readonly_denies({})

test_readonly_denies_methods_that_mcp_does_not_have if {
	call := {"action": "acme/wipe", "method": {"name": "files__acme/wipe", "server": "files", "groups": []}}
	count(wasmgate.deny) == 1 with input as call
	count(wasmgate.deny) == 0 with input as object.union(call, {"action": "roots/list"})
}
