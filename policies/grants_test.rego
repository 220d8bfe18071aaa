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
	{"to": ["alice"], "agents": ["claude-code__Read"]},
	{"to": ["root"], "tools": ["*"]},
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

test_agents_own_tools_need_grants_of_their_own if {
	own := object.union(call("claude-code__Read", "alice", []), {"action": "agent/tools/call"})
	effect(own) == "allow"
	effect(call("claude-code__Read", "alice", [])) == "deny"
	effect(object.union(own, {"principal": {"id": "root", "roles": []}})) == "deny"
	effect(object.union(own, {"principal": {"id": "alice", "tenant": "acme", "roles": []}})) == "deny" # another alice
}

test_everybody_gets_tools_that_carry_out_others if {
	relay := {"name": "catalog__call", "relay": true}
	effect(object.union(call("catalog__call", "bob", []), {"tool": relay})) == "allow"
	effect(call("catalog__call", "bob", [])) == "deny"
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
	request := {"principal": {"id": "alice", "roles": []}, "resource": {"uri": "file:///srv/a", "server": "files"}}
	effect(object.union(request, {"action": "resources/read"})) == "allow"
	effect(object.union(request, {"action": "resources/subscribe"})) == "allow"
	effect(object.union(request, {"action": "resources/read", "resource": {"uri": "file:///etc/a"}})) == "deny"
}

test_a_granted_server_grants_its_resources_and_prompts if {
	granted := [{"to": ["alice"], "servers": ["files"], "except": ["file:///secret/*", "files__odd"]}]
	every want, requests in {
		"allow": [
			{"action": "resources/read", "resource": {"uri": "file:///srv/a", "server": "files"}},
			{"action": "prompts/get", "prompt": {"name": "files__x", "server": "files"}},
		],
		"deny": [
			{"action": "resources/read", "resource": {"uri": "file:///secret/a", "server": "files"}},
			{"action": "resources/read", "resource": {"uri": "file:///srv/a", "server": "mail"}},
			{"action": "prompts/get", "prompt": {"name": "files__odd", "server": "files"}},
			{"action": "prompts/get", "prompt": {"name": "mail__x", "server": "mail"}},
		],
	} {
		every request in requests {
			alice := object.union(request, {"principal": {"id": "alice", "roles": []}})
			got := wasmgate.decision.effect with input as alice with data.grants as granted
			got == want
		}
	}
}

test_what_is_in_a_granted_group_is_granted if {
	granted := [{"to": ["alice", "role:dev"], "groups": ["docs"], "except": ["files__delete_*", "file:///secret/*"]}]
	every want, requests in {
		"allow": [
			{"action": "tools/call", "tool": {"name": "files__read", "groups": ["docs", "other"]}},
			{"action": "prompts/get", "prompt": {"name": "files__x", "groups": ["docs"]}},
			{"action": "completion/complete", "prompt": {"name": "files__x", "groups": ["docs"]}},
			{"action": "resources/read", "resource": {"uri": "file:///srv/a", "groups": ["docs"]}},
			{"action": "resources/read", "resource": {"uri": "file:///srv/a", "template": "file:///srv/{a}", "groups": ["docs"]}},
			{"action": "completion/complete", "resource": {"template": "file:///srv/{a}", "groups": ["docs"]}},
		],
		"deny": [
			{"action": "tools/call", "tool": {"name": "files__read", "groups": []}},
			{"action": "tools/call", "tool": {"name": "files__read", "groups": ["other"]}},
			{"action": "tools/call", "tool": {"name": "files__delete_all", "groups": ["docs"]}},
			{"action": "prompts/get", "prompt": {"name": "files__x", "groups": ["other"]}},
			{"action": "resources/read", "resource": {"uri": "file:///secret/a", "groups": ["docs"]}},
			{"action": "completion/complete", "resource": {"template": "file:///secret/{a}", "groups": ["docs"]}},
		],
	} {
		every request in requests {
			defaults := {"tool": {"sandboxed": false, "capabilities": {}}, "resource": {"server": "files"}}
			some part in {"tool", "prompt", "resource"}
			subject := object.union(object.get(defaults, part, {}), request[part])
			alice := object.union(request, {part: subject, "principal": {"id": "alice", "roles": []}})
			got := wasmgate.decision.effect with input as alice with data.grants as granted
			got == want
			nobody := object.union(alice, {"principal": {"id": "bob", "roles": ["docs"]}})
			refused := wasmgate.decision.effect with input as nobody with data.grants as granted
			refused == "deny"
		}
	}
}

test_a_template_is_granted_if_a_uri_of_it_could_be if {
	granted := [{"to": ["alice"], "resources": ["file:///srv/docs/*", "note://a"], "except": ["file:///srv/docs/secret/*"]}]
	every want, templates in {
		"allow": ["file:///srv/{+path}", "file:///srv/docs/{name}", "file:///srv/docs/sub/{name}", "note://{name}"],
		"deny": ["file:///etc/{name}", "note://b/{name}", "file:///srv/docs/secret/{name}"],
	} {
		every template in templates {
			request := {"principal": {"id": "alice", "roles": []}, "resource": {"template": template, "server": "files"}}
			complete := object.union(request, {"action": "completion/complete"})
			got := wasmgate.decision.effect with input as complete with data.grants as granted
			got == want
		}
	}
}

test_a_uri_of_a_template_is_granted_as_a_uri_is if {
	granted := [{"to": ["alice"], "resources": ["file:///srv/docs/*"]}]
	every want, uri in {"allow": "file:///srv/docs/a", "deny": "file:///srv/a"} {
		request := {
			"action": "resources/read", "principal": {"id": "alice", "roles": []},
			"resource": {"uri": uri, "template": "file:///srv/{+path}", "server": "files"},
		}
		got := wasmgate.decision.effect with input as request with data.grants as granted
		got == want
	}
}

test_prompts_are_granted_by_name if {
	request := {"principal": {"id": "alice", "roles": []}, "prompt": {"name": "tickets__triage", "server": "tickets"}}
	effect(object.union(request, {"action": "prompts/get"})) == "allow"
	effect(object.union(request, {"action": "completion/complete"})) == "allow"
	effect(object.union(request, {"action": "prompts/get", "prompt": {"name": "files__x"}})) == "deny"
}

test_methods_are_granted_by_name_at_one_server_or_at_all if {
	granted := [
		{"to": ["alice"], "methods": ["acme/*", "files__other/one"], "except": ["acme/secret", "wiki__acme/*"]},
		{"to": ["alice"], "groups": ["docs"], "except": ["other/secret"], "asks": ["roots"]},
		{"to": ["alice"], "tools": ["*"]},
	]
	every want, methods in {
		"allow": [["files", "acme/search"], ["mail", "acme/search"], ["files", "other/one"], ["docs", "other/two"]],
		"deny": [["files", "acme/secret"], ["wiki", "acme/search"], ["mail", "other/one"], ["docs", "other/secret"], ["files", "third/x"]],
	} {
		every method in methods {
			groups := {g | g := "docs"; method[0] == "docs"}
			request := {
				"action": method[1], "server": method[0], "principal": {"id": "alice", "roles": []},
				"method": {"name": concat("__", method), "server": method[0], "groups": [g | some g in groups]},
			}
			got := wasmgate.decision.effect with input as request with data.grants as granted
			got == want
			nobody := object.union(request, {"principal": {"id": "bob", "roles": ["docs"]}})
			refused := wasmgate.decision.effect with input as nobody with data.grants as granted
			refused == "deny"
		}
	}
}

test_a_server_asks_more_than_its_method_is_granted_only_if_the_grant_says_so if {
	granted := [{"to": ["alice"], "servers": ["files"], "asks": ["roots"]}]
	request := {
		"server": "files", "request": {"secret": true}, "principal": {"id": "alice", "roles": []},
		"method": {"name": "files__acme/search", "server": "files", "groups": []},
	}
	every action, want in {"roots/list": "allow", "sampling/createMessage": "deny", "elicitation/create": "deny"} {
		got := wasmgate.decision.effect with input as object.union(request, {"action": action}) with data.grants as granted
		got == want
	}
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

# A module with every capability.
capabilities := {
	"http": [
		{"origin": "https://api.example.com", "methods": ["GET", "HEAD"], "path": "/v1/"},
		{"origin": "http://[::1]:8080", "methods": ["POST"], "path": "/hook"},
	],
	"dirs": [{"path": "/srv/docs", "write": false}, {"path": "/srv/out", "write": true}],
	"secrets": ["API"],
	"kv": true,
}

host_call(action, request) := {
	"action": action,
	"principal": {"id": "bob", "roles": []},
	"tool": {"name": "local__fetch", "sandboxed": true, "capabilities": capabilities},
	"request": request,
}

http(changes) := host_call(
	"sandbox/http",
	object.union({"method": "GET", "scheme": "https", "host": "api.example.com", "port": 443, "path": "/v1/users"}, changes),
)

hook(changes) := http(object.union({"method": "POST", "scheme": "http", "host": "::1", "port": 8080, "path": "/hook"}, changes))

file(op, path) := host_call("sandbox/file", {"op": op, "path": path})

test_a_module_uses_the_origin_that_it_is_granted if {
	effect(http({})) == "allow"
	effect(http({"method": "HEAD", "path": "/v1/"})) == "allow"
	effect(http({"host": "api.example.com.evil.example"})) == "deny"
	effect(http({"scheme": "http"})) == "deny"
	effect(http({"scheme": "http", "port": 80})) == "deny"
	effect(http({"port": 8443})) == "deny"
}

test_a_module_uses_the_methods_that_it_is_granted if {
	effect(http({"method": "POST"})) == "deny"
	effect(http({"method": "get"})) == "deny"
	effect(hook({"method": "GET"})) == "deny"
}

test_a_module_uses_the_paths_that_it_is_granted if {
	effect(http({"path": "/"})) == "deny"
	effect(http({"path": "/v1"})) == "allow"
	effect(http({"path": "/v1beta"})) == "deny"
	effect(http({"path": "/v1/../admin"})) == "deny"
	effect(hook({})) == "allow"
	effect(hook({"path": "/hook/a"})) == "allow"
	effect(hook({"path": "/hooks"})) == "deny"
}

test_an_address_stands_in_brackets_in_an_origin if {
	effect(hook({"host": "::2"})) == "deny"
	effect(hook({"port": 80})) == "deny"
}

test_a_module_uses_the_secrets_that_it_is_granted if {
	effect(host_call("sandbox/secret", {"name": "API", "origin": "https://api.example.com"})) == "allow"
	effect(host_call("sandbox/secret", {"name": "OTHER", "origin": "https://api.example.com"})) == "deny"
}

test_a_module_reads_and_writes_where_it_is_granted if {
	effect(file("read", "/srv/docs/a.txt")) == "allow"
	effect(file("read", "/srv/docs")) == "allow"
	effect(file("read", "/srv/out/a.txt")) == "allow"
	effect(file("read", "/srv/docs2/a.txt")) == "deny"
	effect(file("read", "/srv/docs/../secret")) == "deny"
	effect(file("read", "/srv")) == "deny"
	effect(file("read", "")) == "deny"
	effect(file("write", "/srv/out/a.txt")) == "allow"
	effect(file("remove", "/srv/out/a.txt")) == "allow"
	effect(file("write", "/srv/docs/a.txt")) == "deny"
	effect(file("remove", "/srv/docs/a.txt")) == "deny"
	effect(file("link", "/srv/docs/a.txt")) == "deny"
}

test_the_root_is_above_all if {
	root := {"tool": {"name": "local__fetch", "sandboxed": true, "capabilities": {"dirs": [{"path": "/", "write": false}]}}}
	effect(object.union(file("read", "/etc/passwd"), root)) == "allow"
}

test_a_module_has_a_store_if_it_is_granted_one if {
	effect(host_call("sandbox/kv", {"op": "get", "key": "k"})) == "allow"
}

host_calls := [
	http({}),
	hook({}),
	host_call("sandbox/secret", {"name": "API", "origin": "https://api.example.com"}),
	host_call("sandbox/kv", {"op": "get", "key": "k"}),
	file("read", "/srv/docs/a.txt"),
	file("write", "/srv/out/a.txt"),
]

test_what_a_module_is_not_granted_is_denied if {
	every request in host_calls {
		effect(request) == "allow"
		bare := {"tool": {"name": "local__fetch", "sandboxed": true, "capabilities": {}}}
		effect(object.union(object.remove(request, ["tool"]), bare)) == "deny"
	}
}

test_only_a_sandboxed_tool_makes_host_calls if {
	every request in host_calls {
		effect(object.union(request, {"tool": {"sandboxed": false}})) == "deny"
	}
}

test_one_capability_is_not_another if {
	every request in host_calls {
		effect(object.union(request, {"action": "sandbox/exec"})) == "deny"
	}
	every action in {"sandbox/http", "sandbox/secret", "sandbox/file"} {
		effect(host_call(action, {"op": "get", "key": "k"})) == "deny"
	}
}

test_a_deny_rule_refuses_one_host_call if {
	d := wasmgate.decision with input as http({}) with data.grants as [] with wasmgate.deny as {"not on Sundays"}
	d.effect == "deny"
}

test_a_grant_of_the_tool_is_none_of_its_host_calls if {
	tool := {"name": "files__stat", "sandboxed": true, "capabilities": {}}
	effect(object.union(object.remove(http({}), ["tool"]), {"tool": tool})) == "deny"
}

asking := [
	{"to": ["alice"], "servers": ["files"], "except": ["files__delete"], "asks": ["roots", "sampling"]},
	{"to": ["role:dev"], "tools": ["mail__*"], "prompts": ["mail__greet"], "resources": ["mail://*"], "groups": ["desk"], "asks": ["secrets"]},
	{"to": ["bob"], "servers": ["files", "mail"]},
]

asks(action, secret, used, id, roles) := e if {
	request := object.union({"action": action, "server": "x", "request": {"secret": secret}, "principal": {"id": id, "roles": roles}}, used)
	e := wasmgate.decision.effect with input as request with data.grants as asking
}

used_tool(name) := {"tool": {"name": name, "server": split(name, "__")[0], "groups": [], "sandboxed": false, "capabilities": {}}}

test_a_form_is_part_of_the_call if {
	asks("elicitation/create", false, used_tool("files__read"), "bob", []) == "allow"
	asks("elicitation/create", false, {"prompt": {"name": "a__b", "server": "a"}}, "carol", []) == "allow"
}

test_a_form_for_a_secret_needs_a_grant_that_says_so if {
	asks("elicitation/create", true, used_tool("mail__send"), "carol", ["dev"]) == "allow"
	asks("elicitation/create", true, used_tool("mail__send"), "bob", []) == "deny"
	asks("elicitation/create", true, used_tool("files__read"), "alice", []) == "deny"
	asks("elicitation/create", true, used_tool("files__read"), "carol", ["dev"]) == "deny"
}

test_a_form_of_which_nothing_is_known_is_not_allowed if {
	d := wasmgate.decision with input as {"action": "elicitation/create", "server": "files", "principal": {"id": "alice", "roles": []}, "request": {}} with data.grants as asking
	d.effect == "deny"
}

test_models_and_folders_need_a_grant_that_says_so if {
	every action in ["sampling/createMessage", "roots/list"] {
		asks(action, false, used_tool("files__read"), "alice", []) == "allow"
		asks(action, false, used_tool("files__delete"), "alice", []) == "deny"
		asks(action, false, used_tool("other__read"), "alice", []) == "deny"
		asks(action, false, used_tool("files__read"), "bob", []) == "deny"
		asks(action, false, used_tool("mail__send"), "carol", ["dev"]) == "deny"
	}
}

test_a_grant_says_so_of_all_that_it_grants if {
	every used in [
		{"prompt": {"name": "mail__greet", "server": "mail", "groups": []}},
		{"resource": {"uri": "mail://1", "server": "mail", "groups": []}},
		{"tool": {"name": "any__thing", "server": "any", "groups": ["desk"], "sandboxed": false, "capabilities": {}}},
	] {
		asks("elicitation/create", true, used, "carol", ["dev"]) == "allow"
		asks("elicitation/create", true, used, "carol", []) == "deny"
	}
	asks("elicitation/create", true, {"prompt": {"name": "mail__other", "server": "mail", "groups": []}}, "carol", ["dev"]) == "deny"
	asks("elicitation/create", true, {"resource": {"uri": "file://1", "server": "mail", "groups": []}}, "carol", ["dev"]) == "deny"
}

# Somebody of a tenant is nobody of another, and nobody without one.
test_tenants_share_nothing_that_is_not_granted_to_all_of_them if {
	tenants := [
		{"to": ["*"], "tools": ["wiki__read"]},
		{"to": ["alice"], "tools": ["home__a"]},
		{"to": ["acme/alice"], "tools": ["acme__a"]},
		{"to": ["role:dev"], "tools": ["home__dev"]},
		{"to": ["role:acme/dev"], "tools": ["acme__dev"]},
		{"to": ["role:*/dev"], "tools": ["any__dev"]},
		{"to": ["acme/*"], "tools": ["acme__read"]},
		{"to": ["*/*"], "tools": ["any__read"]},
	]
	granted := {who: tools |
		some who in [["", "alice"], ["acme", "alice"], ["other", "alice"]]
		tools := {tool |
			some tool in ["wiki__read", "home__a", "acme__a", "home__dev", "acme__dev", "any__dev", "acme__read", "any__read"]
			principal := {"tenant": who[0], "id": who[1], "roles": ["dev"]}
			request := object.union(call(tool, "", []), {"principal": principal})
			wasmgate.decision.effect == "allow" with input as request with data.grants as tenants
		}
	}
	granted[["", "alice"]] == {"wiki__read", "home__a", "home__dev"}
	granted[["acme", "alice"]] == {"acme__a", "acme__dev", "any__dev", "acme__read", "any__read"}
	granted[["other", "alice"]] == {"any__dev", "any__read"}
}

test_skills_by_name_and_server if {
	grants := [
		{"to": ["role:dev"], "skills": ["team/*"], "except": ["team/secret"]},
		{"to": ["role:ops"], "skills": ["team/release"]},
		{"to": ["role:admin"], "servers": ["team"]},
		{"to": ["role:reader"], "resources": ["skill://*"]},
		{"to": ["role:office"], "groups": ["office"]},
	]
	granted := {role: names |
		some role in ["dev", "ops", "admin", "reader", "office"]
		names := {name |
			some name in ["release", "secret"]
			some action in ["skills/get", "resources/read", "resources/directory/read"]
			uri := concat("", ["skill://", name, "/SKILL.md"])
			skill := {
				"server": "team", "uri": uri, "name": concat("/", ["team", name]), "file": "", "files": 1, "bytes": 1, "dynamic": false,
				"nested": false, "widens": [], "notes": [], "pinned": false, "trusted": true, "groups": ["office"],
			}
			who := {"id": "a", "tenant": "", "roles": [role]}
			request := object.union({"action": action, "principal": who, "skill": skill}, skill_resource(action, uri))
			wasmgate.decision.effect == "allow" with input as request with data.grants as grants
		}
	}
	granted.dev == {"release"}
	granted.ops == {"release"}
	granted.admin == {"release", "secret"}
	granted.reader == set()
	granted.office == {"release", "secret"}
}

skill_resource("resources/read", uri) := {"resource": {"server": "team", "uri": uri, "mime_type": "", "groups": []}}

skill_resource(action, _) := {} if action != "resources/read"
