# Pack apps: while the app of a server is open (MCP Apps), a person approves each call of another
# server's tool that does more than read, as the labels file says. A gateway does not see which
# calls a page makes, so it asks about all of them. What a grant names under always, a person has
# approved for good.
package wasmgate

ask contains "apps: an app of another server is open, and the tool does more than read" if {
	some server in input.app.open
	server != input.tool.server
	not apps_reads
	not apps_always
}

apps_reads if input.tool.labels.effect == ["read"]

# A module without capabilities computes, and does nothing to anybody.
apps_reads if {
	input.tool.labels == {}
	input.tool.sandboxed == true
	input.tool.capabilities == {}
}

apps_always if wasmgate.granted(data.grants, "always", input.tool.name, apps_principal, input.principal.roles)

apps_principal := concat("/", [input.principal.tenant, input.principal.id]) if {
	input.principal.tenant != ""
} else := input.principal.id
