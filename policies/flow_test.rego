package wasmgate_test

import data.wasmgate

pay := {"result": "echo", "private": false, "effect": ["external", "destructive"], "control": ["/recipient"], "content": ["/note"]}

flow_call(session, labels, provenance, carried) := {
	"action": "tools/call",
	"principal": {"id": "alice", "roles": []},
	"session": {"id": "s", "labels": session},
	"tool": {"name": "pay__transfer", "labels": labels, "sandboxed": false, "capabilities": {}},
	"arguments": {},
	"provenance": provenance,
	"carried": carried,
}

flow_denies(request) if {
	some reason in wasmgate.deny with input as request with data.grants as []
	startswith(reason, "flow: ")
}

test_flow_lets_a_clean_session_do_anything if {
	not flow_denies(flow_call([], pay, {"/recipient": []}, {"/note": {"https://a.example": []}}))
	not flow_denies(flow_call(["private"], pay, {"/recipient": ["untrusted"]}, {}))
}

test_flow_needs_a_trusted_destination if {
	flow_denies(flow_call(["untrusted"], pay, {"/recipient": []}, {}))
	flow_denies(flow_call(["untrusted"], pay, {"/recipient": ["untrusted"]}, {}))
	every source in ["prompt", "trusted", "approved"] {
		not flow_denies(flow_call(["untrusted"], pay, {"/recipient": [source]}, {}))
		not flow_denies(flow_call(["private", "untrusted"], pay, {"/recipient": [source, "untrusted"]}, {}))
	}
}

test_flow_looks_at_control_arguments_alone if {
	not flow_denies(flow_call(["untrusted"], pay, {"/recipient": ["prompt"], "/amount": ["untrusted"], "/recipients": []}, {}))
}

test_flow_looks_at_all_below_a_control_argument if {
	labels := object.union(pay, {"control": ["/to"]})
	flow_denies(flow_call(["untrusted"], labels, {"/to/0": ["prompt"], "/to/1": []}, {}))
	not flow_denies(flow_call(["untrusted"], labels, {"/to/0": ["prompt"], "/to/1": ["trusted"], "/too": []}, {}))
}

test_flow_lets_reading_be if {
	not flow_denies(flow_call(["untrusted"], {"result": "untrusted", "effect": ["read"]}, {"/q": []}, {}))
}

test_flow_counts_every_argument_where_no_control_is_named if {
	labels := {"result": "echo", "effect": ["read", "local"]}
	flow_denies(flow_call(["untrusted"], labels, {"/a": ["prompt"], "/b": []}, {}))
	not flow_denies(flow_call(["untrusted"], object.union(labels, {"control": []}), {"/a": ["prompt"], "/b": []}, {}))
}

test_flow_trusts_no_tool_without_labels if {
	flow_denies(flow_call(["untrusted"], {}, {"/a": []}, {}))
	not flow_denies(flow_call(["untrusted"], {}, {"/a": ["prompt"]}, {}))
}

test_flow_lets_a_module_compute if {
	request := flow_call(["untrusted"], {}, {"/a": []}, {})
	not flow_denies(object.union(request, {"tool": {"sandboxed": true}}))
	flow_denies(object.union(request, {"tool": {"sandboxed": true, "capabilities": {"kv": true}}}))
}

test_flow_lets_no_foreign_address_leave if {
	provenance := {"/recipient": ["prompt"], "/note": []}
	flow_denies(flow_call(["untrusted"], pay, provenance, {"/note": {"https://a.example": ["untrusted"]}}))
	flow_denies(flow_call(["untrusted"], pay, provenance, {"/note": {"a@b.example": ["prompt"], "c@d.example": []}}))
	not flow_denies(flow_call(["untrusted"], pay, provenance, {"/note": {"a@b.example": ["prompt"]}}))
	not flow_denies(flow_call(["untrusted"], pay, provenance, {"/other": {"a@b.example": []}}))
	not flow_denies(flow_call([], pay, provenance, {"/note": {"a@b.example": []}}))
}

test_flow_takes_what_is_not_control_for_content if {
	labels := object.remove(pay, ["content"])
	flow_denies(flow_call(["untrusted"], labels, {}, {"/other": {"a@b.example": []}}))
	not flow_denies(flow_call(["untrusted"], labels, {}, {"/recipient": {"a@b.example": []}}))
}

test_flow_lets_what_stays_inside_carry_addresses if {
	labels := {"result": "echo", "effect": ["internal"], "control": []}
	not flow_denies(flow_call(["untrusted"], labels, {}, {"/note": {"a@b.example": []}}))
}

test_flow_lets_no_model_write_for_a_server_in_a_private_session if {
	sample := {"action": "sampling/createMessage", "server": "files", "tool": {"name": "files__x"}, "request": {"messages": [], "secret": false}}
	flow_denies(object.union(sample, {"session": {"id": "s", "labels": ["private", "untrusted"]}}))
	not flow_denies(object.union(sample, {"session": {"id": "s", "labels": ["untrusted"]}}))
	form := object.union(sample, {"action": "elicitation/create", "session": {"id": "s", "labels": ["private", "untrusted"]}})
	not flow_denies(form)
}

test_flow_lets_no_method_run_that_mcp_does_not_have if {
	call := {"action": "acme/wipe", "session": {"id": "s", "labels": ["untrusted"]}, "method": {"name": "files__acme/wipe", "server": "files", "groups": []}, "arguments": {}}
	flow_denies(call)
	not flow_denies(object.union(call, {"session": {"labels": ["private"]}})) # arrays are replaced
	not flow_denies(object.union(call, {"action": "roots/list"}))
}
