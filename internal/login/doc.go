// Package login makes the gateway an OAuth client of servers: it finds out who gives tokens for a
// server, logs people in, keeps what they were granted in the vault, and has a token for each request
// (MCP, basic/authorization; OAuth 2.1; RFC 7009, 7523, 7591, 8414, 8693, 8707, 9207, 9728).
//
//	discover.go   server > protected resource metadata > metadata of the authorization server
//	client.go     who the gateway is there: configured, its own document, or registered
//	assert.go     how it proves that with a key
//	flow.go       the way of a person: authorization request, redirect, code, grant
//	grant.go      what was granted, and the token endpoint
//	logins.go     a token for each request: kept, refreshed
//	idjag.go      the same by an identity provider's word (ID-JAG)
//	narrow.go     one with fewer scopes, for calls for which a policy demands it
//	subject.go    callers' own tokens, for servers that take them in exchange
//	redirect.go   where the browser of a command comes back to
//	page.go       the gateway's own client metadata document
//
// A grant belongs to one principal and one server, and its tokens go only to that server. Errors,
// events and logs contain no token, code, verifier or state.
package login
