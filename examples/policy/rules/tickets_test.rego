package wasmgate.tickets_test

import data.wasmgate

call(tool, roles) := {"action": "tools/call", "tool": {"name": tool}, "principal": {"id": "ada", "roles": roles}}

test_support_reads if count(wasmgate.allow) > 0 with input as call("tickets__get_one", ["support"])

test_others_do_not_read if count(wasmgate.allow) == 0 with input as call("tickets__get_one", ["sales"])

test_closing_asks if count(wasmgate.ask) > 0 with input as call("tickets__close", ["support"])

test_deleting_is_denied if count(wasmgate.deny) > 0 with input as call("tickets__delete", ["support"])
