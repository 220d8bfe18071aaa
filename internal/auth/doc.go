// Package auth identifies the sender of a request: a bearer token of an issuer (a JWT, RFC
// 9068), an API key of the gateway's own, a client certificate, a user of a Unix socket,
// a proxy that authenticates, or, where the configuration says so, no one in
// particular. It knows HTTP and nothing of MCP.
//
// A request passes these steps; a refusal of any is a [*Refusal], which says what to
// answer and tells strangers nothing:
//
//	exactly one credential -> seen before? -> well formed -> issuer, audience, time
//	   -> key -> signature -> claims -> who that is in the configuration
//
// What is promised:
//
//   - A token is read by one strict parser of ours before the library verifies it: two
//     readings of one token do not exist here. Its algorithm is one that the issuer is
//     listed with, and one that its key is made for.
//   - Keys are fetched when a token names one that is not known, at most once in
//     [refetch] for an issuer, and never because of a bad signature.
//   - A token says less than the configuration, never more: roles are those that the
//     configuration gives or maps, cut down to what the token allows.
//   - Errors, records and logs contain no tokens, no keys and no parts of them.
package auth
