# Pack skills: a person approves the loading of each skill that asks for rights, or whose files
# run commands, download or cannot be read, unless the configuration trusts its authors. Until the
# session has loaded it, its files are denied: a person can be asked about skills/get only.
package wasmgate

ask contains reason if {
	input.action == "skills/get"
	some reason in skill_reasons
}

deny contains "skills: load the skill with skills/get first, which asks a person" if {
	input.action in {"resources/read", "resources/directory/read"}
	count(skill_reasons) > 0
	not concat("", ["skill:", input.skill.name]) in input.session.labels
}

skill_reasons contains concat("", ["skills: it asks for ", what]) if {
	input.skill.trusted == false
	some what in input.skill.widens
}

skill_reasons contains concat("", ["skills: ", note]) if {
	input.skill.trusted == false
	some note in input.skill.notes
}
