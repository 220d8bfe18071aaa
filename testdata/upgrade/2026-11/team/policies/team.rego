package wasmgate

deny contains "files are read below /srv/docs" if {
	input.tool.server == "files"
	not startswith(input.arguments.path, "/srv/docs/")
}

ask contains "deleting needs a person" if input.tool.name == "mail__delete"

allow contains "everybody may see what fails" if input.tool.name == "stub__fail"
