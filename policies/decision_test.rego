package wasmgate_test

import data.wasmgate

# The tests replace the sets, so they hold whatever packs are loaded.

test_what_nothing_allows_is_denied if {
	d := wasmgate.decision with wasmgate.allow as set() with wasmgate.ask as set() with wasmgate.deny as set()
	d == {"effect": "deny", "reasons": set(), "obligations": set(), "labels": set()}
}

test_what_something_allows_is_allowed if {
	d := wasmgate.decision with wasmgate.allow as {"a"} with wasmgate.ask as set() with wasmgate.deny as set()
	d.effect == "allow"
	d.reasons == {"a"}
}

test_ask_beats_allow if {
	d := wasmgate.decision with wasmgate.allow as {"a"} with wasmgate.ask as {"b"} with wasmgate.deny as set()
	d.effect == "ask"
	d.reasons == {"b"}
}

test_ask_allows_nothing if {
	d := wasmgate.decision with wasmgate.allow as set() with wasmgate.ask as {"b"} with wasmgate.deny as set()
	d == {"effect": "deny", "reasons": set(), "obligations": set(), "labels": set()}
}

test_deny_beats_ask_and_allow if {
	d := wasmgate.decision with wasmgate.allow as {"a"} with wasmgate.ask as {"b"} with wasmgate.deny as {"c", "d"}
	d.effect == "deny"
	d.reasons == {"c", "d"}
}

test_obligations_and_labels_come_with_what_passes if {
	d := wasmgate.decision with wasmgate.allow as {"a"}
		with wasmgate.ask as set()
		with wasmgate.deny as set()
		with wasmgate.obligations as {{"type": "timeout", "after": "1s"}}
		with wasmgate.labels as {"untrusted"}
	d.obligations == {{"type": "timeout", "after": "1s"}}
	d.labels == {"untrusted"}
}

test_what_is_denied_teaches_no_label if {
	d := wasmgate.decision with wasmgate.deny as {"c"} with wasmgate.labels as {"untrusted"}
	d.labels == set()
}

test_the_operator_runs_the_gateway_and_nobody_else if {
	wasmgate.decision.effect == "allow" with input as reads(true)
	wasmgate.decision.effect == "deny" with input as reads(false)
}

reads(operator) := {"action": "admin/read", "principal": {"id": "local"}, "admin": {"op": "calls.read", "object": "", "operator": operator}}
