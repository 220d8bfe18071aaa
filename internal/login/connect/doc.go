// Package connect serves the pages by which a caller over the network logs in to a server (MCP,
// client/elicitation, "URL Mode"; its security considerations on phishing).
//
//	links.go   which links there are, whose call each belongs to, and for how long
//	pages.go   what a browser is shown, and what it sends
//
// A link leads through four steps. Each works once:
//
//	link -> the person signs in at the caller's own issuer -> is the caller? -> is shown what is
//	granted to whom and for which call -> agrees -> the server's authorization server
//
// A link alone gives nothing: everything that it shows and does is for the browser that has proved to
// be the caller's. A browser is known by a cookie for each link, which is made anew when its person has
// signed in.
package connect
