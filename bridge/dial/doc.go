// Package dial sends HTTP requests for untrusted tools: it is their only way out. The tool never
// has a socket: it describes a [Request], and an [Egress] carries it out if everything below
// agrees.
//
// A request goes through these steps, and so does each redirect, from the top:
//
//	URL and headers are read strictly, rules, policy, secrets, quotas,
//	name to addresses (once), addresses, connection, answer, scrubbing
//
// What is promised:
//
//   - What is judged is what is sent. A [Target] is parsed once; a URL that
//     servers are known to read in different ways is refused.
//   - The name is resolved once per request, and exactly the addresses that were
//     checked are dialled. Addresses that are not public are refused unless the
//     rule says Private; link-local and metadata addresses even then, unless the
//     rule names the address itself.
//   - A [Secret] is sent to its one origin only, and is replaced by its
//     placeholder in everything that comes back, errors included.
//   - Requests, bytes, redirects and time are bounded over the whole call.
//   - No proxy of the environment is used, certificates are verified, no cookie
//     is kept, nothing is decompressed, and answers are read as HTTP/1.1.
//   - Each request has a connection and a TLS handshake of its own. Connections
//     that are kept would be faster; they would also carry the state of one
//     principal (authentication by connection, session tickets) to another.
//
// What is not promised: an origin that works together with the tool can hand it
// a secret in a form that scrubbing does not know (encrypted, reversed, in
// pieces). Bind secrets to origins that you trust with them.
package dial
