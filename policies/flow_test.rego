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
	flow_denies(flow_call(["untrusted"], labels, {"/recipient": ["prompt"]}, {"/other": {"a@b.example": []}}))
	not flow_denies(flow_call(["untrusted"], labels, {"/recipient": ["prompt"]}, {"/recipient": {"a@b.example": []}}))
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

post := {"result": "echo", "effect": ["external"], "to": ["/to"], "commits": ["/id", "/amount"], "content": ["/text"]}

flow_values(request, values) := object.union(request, {"values": values})

test_flow_takes_an_argument_that_is_named_nowhere_for_a_destination if {
	flow_denies(flow_call(["untrusted"], post, {"/to": ["prompt"], "/room": []}, {}))
	not flow_denies(flow_call(["untrusted"], post, {"/to": ["prompt"], "/text": [], "/amount": []}, {}))
	flow_denies(flow_call(["untrusted"], post, {"/to": ["untrusted"], "/text": []}, {}))
	only := {"result": "echo", "effect": ["external"], "commits": ["/amount"], "content": ["/text"]}
	flow_denies(flow_call(["untrusted"], only, {"/amount": []}, {}))
	flow_denies(flow_call(["untrusted"], only, {"/text": []}, {}))
	not flow_denies(flow_call(["untrusted"], only, {"/amount": ["prompt"], "/text": ["trusted"]}, {}))
}

test_flow_lets_nobody_else_choose_what_is_committed_to if {
	call := flow_call(["untrusted"], post, {"/to": ["prompt"], "/amount": ["untrusted"]}, {})
	flow_denies(flow_values(call, {"/amount": {"copied": true, "listed": false}}))
	not flow_denies(flow_values(call, {"/amount": {"copied": true, "listed": true}}))
	not flow_denies(flow_values(call, {"/amount": {"copied": false, "listed": false}}))
}

test_flow_takes_ids_for_destinations_of_a_call_without_any if {
	call := flow_call(["untrusted"], post, {"/id": [], "/amount": [], "/text": ["prompt"]}, {})
	flow_denies(flow_values(call, {"/id": {"kind": "order", "copied": false}, "/amount": {"kind": "", "copied": false}}))
	not flow_denies(flow_values(call, {"/id": {"kind": "", "copied": false}, "/amount": {"kind": "", "copied": false}}))
	said := flow_call(["untrusted"], post, {"/to": ["prompt"], "/id": []}, {})
	not flow_denies(flow_values(said, {"/id": {"kind": "order", "copied": false}}))
	none := flow_call(["untrusted"], object.union(post, {"to": []}), {"/id": [], "/text": ["prompt"]}, {})
	not flow_denies(flow_values(none, {"/id": {"kind": "order", "copied": false}}))
}

test_flow_takes_what_is_listed_for_what_stays_with_the_user if {
	move := {"result": "untrusted", "effect": ["internal"], "to": ["/id"]}
	call := flow_call(["untrusted"], move, {"/id": ["untrusted"]}, {})
	not flow_denies(flow_values(call, {"/id": {"listed": true}}))
	flow_denies(flow_values(call, {"/id": {"listed": false}}))
	every effect in ["external", "destructive", "egress", "credential"] {
		labels := object.union(move, {"effect": ["internal", effect]})
		flow_denies(flow_values(flow_call(["untrusted"], labels, {"/id": ["untrusted"]}, {}), {"/id": {"listed": true}}))
	}
}

test_flow_keeps_what_is_private_from_tools_that_reach_whomever_they_like if {
	post := {"result": "echo", "private": false, "effect": ["external"], "to": [], "content": ["/text"]}
	call := flow_call(["private", "untrusted"], post, {"/text": ["prompt"]}, {})
	flow_denies(flow_values(call, {"/text": {"private": true}}))
	not flow_denies(flow_values(call, {"/text": {"private": false}}))
	not flow_denies(flow_values(object.union(call, {"session": {"labels": ["private"]}}), {"/text": {"private": true}}))
	inside := flow_call(["private", "untrusted"], object.union(post, {"effect": ["internal"]}), {"/text": ["prompt"]}, {})
	not flow_denies(flow_values(inside, {"/text": {"private": true}}))
}

test_flow_lets_what_is_private_leave_to_whom_the_user_has_chosen if {
	sources := ["trusted"]
	call := flow_call(["private", "untrusted"], post, {"/to": sources, "/text": []}, {})
	secret := {"/text": {"private": true}, "/to": {"own": false}}
	flow_denies(flow_values(call, secret))
	not flow_denies(flow_values(call, {"/text": {"private": false}, "/to": {"own": false}}))
	not flow_denies(flow_values(call, {"/text": {"private": true}, "/to": {"own": true}}))
	every source in ["prompt", "approved"] {
		not flow_denies(flow_values(flow_call(["private", "untrusted"], post, {"/to": ["trusted", source], "/text": []}, {}), secret))
	}
	inside := flow_call(["private", "untrusted"], object.union(post, {"effect": ["internal"]}), {"/to": sources, "/text": []}, {})
	not flow_denies(flow_values(inside, secret))
	not flow_denies(flow_values(object.union(call, {"session": {"labels": ["private"]}}), secret))
}

test_flow_asks_about_a_call_that_says_nothing if {
	every labels in [
		{}, object.remove(pay, ["control"]), pay, post, object.union(post, {"to": []}),
		{"result": "untrusted", "effect": ["internal"], "to": ["/id"]}, {"result": "untrusted", "effect": ["credential"], "commits": ["/id"]},
		{"result": "untrusted", "effect": ["egress"]},
	] {
		flow_denies(flow_call(["untrusted"], labels, {}, {}))
		not flow_denies(flow_call([], labels, {}, {}))
	}
	not flow_denies(flow_call(["untrusted"], {"result": "untrusted", "effect": ["read"]}, {}, {}))
	not flow_denies(flow_call(["untrusted"], {"result": "untrusted", "effect": ["local"], "control": []}, {}, {}))
}

test_flow_asks_about_a_call_without_a_destination_in_which_nothing_is_named if {
	enter := {"result": "untrusted", "effect": ["internal"], "to": ["/participants"], "commits": ["/start"], "content": ["/title"]}
	flow_denies(flow_call(["untrusted"], enter, {"/title": [], "/start": ["untrusted"]}, {}))
	every source in ["prompt", "trusted", "approved"] {
		not flow_denies(flow_call(["untrusted"], enter, {"/title": [source], "/start": []}, {}))
	}
	moved := flow_call(["untrusted"], object.union(enter, {"to": [], "commits": ["/id"]}), {"/id": ["untrusted"]}, {})
	flow_denies(flow_values(moved, {"/id": {"listed": false, "copied": false}}))
	not flow_denies(flow_values(moved, {"/id": {"listed": true, "copied": false}}))
	search := {"result": "untrusted", "effect": ["read", "egress"], "to": [], "content": ["/query"]}
	not flow_denies(flow_call(["untrusted"], search, {"/query": []}, {}))
}

test_flow_lets_a_listed_recipient_be_a_destination if {
	say := {"result": "echo", "effect": ["external"], "to": ["/to"], "content": ["/text"]}
	every kind in ["recipient", "recipient.channel"] {
		not flow_denies(flow_said(say, kind, true))
		not flow_denies(flow_said(object.union(say, {"effect": ["credential"]}), kind, true))
		flow_denies(flow_said(say, kind, false))
		flow_denies(flow_said(object.union(say, {"effect": ["external", "destructive"]}), kind, true))
		flow_denies(flow_said(object.union(say, {"effect": ["egress"]}), kind, true))
	}
	every kind in ["order", "channel", "record.recipient", "recipients", ""] {
		flow_denies(flow_said(say, kind, true))
	}
}

test_flow_keeps_what_is_private_from_listed_recipients if {
	say := {"result": "echo", "effect": ["external"], "to": ["/to"], "content": ["/text"]}
	call := flow_call(["private", "untrusted"], say, {"/to": ["untrusted"], "/text": []}, {})
	flow_denies(flow_values(call, {"/to": {"listed": true, "kind": "recipient", "own": false}, "/text": {"private": true}}))
	not flow_denies(flow_values(call, {"/to": {"listed": true, "kind": "recipient", "own": false}, "/text": {"private": false}}))
}

flow_said(labels, kind, listed) := flow_values(flow_call(["untrusted"], labels, {"/to": ["untrusted"], "/text": []}, {}), {"/to": {"listed": listed, "kind": kind}})
