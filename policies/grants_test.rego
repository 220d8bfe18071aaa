package wasmgate_test

import data.wasmgate

grants := [
	{"to": ["*"], "tools": ["files__read_*", "files__stat"]},
	{
		"to": ["alice", "role:dev"],
		"servers": ["tickets"],
		"except": ["tickets__delete_*"],
		"resources": ["file:///srv/*"],
		"prompts": ["tickets__*"],
	},
]

call(tool, id, roles) := {
	"action": "tools/call",
	"principal": {"id": id, "roles": roles},
	"tool": {"name": tool, "sandboxed": false, "capabilities": {}},
	"arguments": {},
}

effect(request) := e if {
	e := wasmgate.decision.effect with input as request with data.grants as grants
}

test_everybody_gets_what_is_granted_to_everybody if {
	effect(call("files__stat", "bob", [])) == "allow"
	effect(call("files__read_text", "bob", [])) == "allow"
}

test_a_pattern_is_a_beginning_and_a_literal_is_the_whole if {
	effect(call("files__statistics", "bob", [])) == "deny"
	effect(call("files__rea", "bob", [])) == "deny"
	effect(call("otherfiles__stat", "bob", [])) == "deny"
}

test_a_server_is_granted_by_id_and_by_role if {
	effect(call("tickets__list", "alice", [])) == "allow"
	effect(call("tickets__list", "bob", ["ops", "dev"])) == "allow"
	effect(call("tickets__list", "bob", ["ops"])) == "deny"
}

test_except_takes_away if {
	effect(call("tickets__delete_all", "alice", [])) == "deny"
	effect(call("tickets__deletion", "alice", [])) == "allow"
}

test_a_principal_cannot_pose_as_a_role_or_as_everybody if {
	effect(call("tickets__list", "role:dev", [])) == "deny"
	effect(call("tickets__list", "*", [])) == "deny"
	effect(call("tickets__list", "dev", [])) == "deny"
	effect(call("tickets__list", "bob", ["alice"])) == "deny"
}

test_the_grant_is_the_reason if {
	d := wasmgate.decision with input as call("files__read_text", "bob", []) with data.grants as grants
	d.reasons == {"files__read_* is granted to *"}
}

test_nothing_granted_allows_nothing if {
	d := wasmgate.decision with input as call("files__stat", "bob", []) with data.grants as []
	d.effect == "deny"
	d.reasons == set()
}

test_resources_are_granted_by_uri if {
	request := {"principal": {"id": "alice", "roles": []}, "resource": {"uri": "file:///srv/a", "server": "tickets"}}
	effect(object.union(request, {"action": "resources/read"})) == "allow"
	effect(object.union(request, {"action": "resources/subscribe"})) == "allow"
	effect(object.union(request, {"action": "resources/read", "resource": {"uri": "file:///etc/a"}})) == "deny"
}

test_prompts_are_granted_by_name if {
	request := {"principal": {"id": "alice", "roles": []}, "prompt": {"name": "tickets__triage", "server": "tickets"}}
	effect(object.union(request, {"action": "prompts/get"})) == "allow"
	effect(object.union(request, {"action": "completion/complete"})) == "allow"
	effect(object.union(request, {"action": "prompts/get", "prompt": {"name": "files__x"}})) == "deny"
}

test_a_grant_is_for_its_own_action if {
	request := object.union(call("files__stat", "bob", []), {"action": "admin/grant"})
	effect(request) == "deny"
}

test_a_sandboxed_tool_without_capabilities_is_for_everybody if {
	tool := {"name": "local__hash", "sandboxed": true, "capabilities": {}}
	effect(object.union(call("", "bob", []), {"tool": tool})) == "allow"
}

test_a_capability_needs_a_grant if {
	tool := {"name": "local__fetch", "sandboxed": true, "capabilities": {"http": []}}
	wasmgate.decision.effect == "deny" with input as {
		"action": "tools/call",
		"principal": {"id": "bob", "roles": []},
		"tool": tool,
	}
		with data.grants as grants
}
