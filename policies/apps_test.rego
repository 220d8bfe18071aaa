package wasmgate_test

import data.wasmgate

apps_asks(app, tool) if {
	"apps: an app of another server is open, and the tool does more than read" in wasmgate.ask with input as apps_call(app, tool)
}

apps_call(app, tool) := {
	"action": "tools/call",
	"principal": {"id": "alice", "tenant": "", "roles": []},
	"app": app,
	"tool": object.union({"name": "mail__send", "server": "mail", "labels": {}, "sandboxed": false, "capabilities": {}}, tool),
}

apps_open(servers) := {"only": false, "own_name": false, "open": servers}

test_apps_asks_while_an_app_of_another_server_is_open if {
	apps_asks(apps_open(["maps"]), {})
	apps_asks(apps_open(["maps", "mail"]), {"labels": {"effect": ["external"]}})
	apps_asks(apps_open(["maps"]), {"labels": {"effect": ["read", "local"]}})
}

test_apps_lets_the_same_server_pass if not apps_asks(apps_open(["mail"]), {})

test_apps_lets_what_only_reads_pass if {
	not apps_asks(apps_open(["maps"]), {"labels": {"effect": ["read"]}})
	not apps_asks(apps_open(["maps"]), {"sandboxed": true})
}

test_apps_asks_about_a_module_with_capabilities if {
	apps_asks(apps_open(["maps"]), {"sandboxed": true, "capabilities": {"kv": true}})
}

test_apps_is_silent_without_an_open_app if {
	not apps_asks(apps_open([]), {})
	count(wasmgate.ask) == 0 with input as object.remove(apps_call(apps_open(["maps"]), {}), ["app"])
}

test_apps_lets_pass_what_is_approved_for_good if {
	grants := [{"to": ["alice"], "always": ["mail__send"]}]
	not apps_asks(apps_open(["maps"]), {}) with data.grants as grants
	apps_asks(apps_open(["maps"]), {"name": "mail__delete"}) with data.grants as grants
}

test_apps_names_the_tenant_of_who_has_approved if {
	grants := [{"to": ["acme/alice"], "always": ["mail__send"]}]
	theirs := object.union(apps_call(apps_open(["maps"]), {}), {"principal": {"id": "alice", "tenant": "acme", "roles": []}})
	not "apps: an app of another server is open, and the tool does more than read" in wasmgate.ask with input as theirs with data.grants as grants
	apps_asks(apps_open(["maps"]), {}) with data.grants as grants
}
