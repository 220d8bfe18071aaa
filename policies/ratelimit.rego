# Pack ratelimit: holds calls to the limits in the rate limits file. It allows and
# denies nothing: whoever is over a limit is refused, and told when to try again.
# wasmgate.rates looks into an index of data.ratelimit and gives the rate of each
# entry that matches.
package wasmgate

obligations contains {"rate": rate} if {
	input.action in {"tools/call", "agent/tools/call"}
	not input.tool.relay # the call that it carries out is charged
	some rate in wasmgate.rates(data.ratelimit, input.tool.name, input.principal.id, input.principal.roles)
}

obligations contains {"rate": rate} if {
	input.method.name == concat("__", [input.method.server, input.action])
	some rate in wasmgate.rates(data.ratelimit, input.method.name, input.principal.id, input.principal.roles)
}
