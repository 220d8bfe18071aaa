// Package login makes the gateway an OAuth client of servers: it finds out who gives tokens for a
// server, logs people in, keeps what they were granted in the vault, and has a token for each request
// (MCP, basic/authorization; OAuth 2.1; RFC 7009, 7523, 7591, 8414, 8693, 8707, 9207, 9728).
//
// Each file uses only those below it, apart from access.go and idjag.go, which need one another:
//
//	people.go      how people log in and out
//	authorize.go   a token for each request
//	signin.go      who sits at a browser: people sign in at the gateway itself, with provider.go
//	logins.go      the servers, and the logins at them
//	narrow.go      a token with fewer scopes, for calls for which a policy demands it
//	access.go      a token that holds: kept, refreshed
//	idjag.go       the same by an identity provider's word (ID-JAG)
//	row.go         a principal's grant at a server, as the vault has it
//	subject.go     callers' own tokens, for servers that take them in exchange
//	flow.go        the way of a person: authorization request, redirect, code, grant
//	grant.go       what was granted, and the token endpoint; jwt.go reads ID tokens and ID-JAGs
//	client.go      who the gateway is at an authorization server, and how it proves that
//	discover.go    server > protected resource metadata > metadata of the authorization server
//	fetch.go       documents and answers over HTTP
//	server.go      a server as it is configured
//
// page.go has the gateway's own client metadata document, redirect.go is where the browser of a command comes back to.
//
// A grant belongs to one principal and one server, and its tokens go only to that server. Errors,
// events and logs contain no token, code, verifier or state.
package login
