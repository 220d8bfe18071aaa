package wasmgate_test

import data.wasmgate

noted_skill := {"name": "market/pdf", "trusted": false, "widens": ["allowed-tools"], "notes": ["setup.sh: runs what it downloads"]}

plain_skill := object.union(noted_skill, {"widens": [], "notes": []})

test_skills_asks_about_each_thing if {
	wasmgate.ask == {"skills: it asks for allowed-tools", "skills: setup.sh: runs what it downloads"} with input as {"action": "skills/get", "skill": noted_skill}
}

test_skills_lets_plain_and_trusted_ones_be if {
	every skill in [plain_skill, object.union(noted_skill, {"trusted": true})] {
		every action in ["skills/get", "resources/read", "resources/directory/read"] {
			call := {"action": action, "skill": skill, "session": {"labels": []}}
			count(wasmgate.ask) + count(wasmgate.deny) == 0 with input as call
		}
	}
}

test_skills_denies_files_before_the_skill_is_loaded if {
	every action in ["resources/read", "resources/directory/read"] {
		read := {"action": action, "skill": noted_skill, "session": {"labels": ["skill:market/other", "untrusted"]}}
		wasmgate.deny == {"skills: load the skill with skills/get first, which asks a person"} with input as read
		loaded := object.union(read, {"session": {"labels": ["skill:market/pdf", "untrusted"]}})
		count(wasmgate.deny) == 0 with input as loaded
	}
}

test_skills_lets_other_resources_be if {
	count(wasmgate.deny) == 0 with input as {"action": "resources/read", "resource": {"uri": "file:///a"}, "session": {"labels": []}}
}
