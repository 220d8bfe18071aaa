// Package connect has the pages by which a caller over the network logs in to a server
// (MCP, client/elicitation, "URL Mode"; its security considerations on phishing).
//
//	links.go   which links there are, of whose call each is, and how long
//	pages.go   what a browser is shown, and what it brings
//
// A link leads through four steps, each of which is good once:
//
//	link -> the person signs in at the caller's own issuer -> is the caller? -> is shown what is
//	granted to whom and because of which call -> agrees -> the server's authorization server
//
// Whoever has a link has nothing by it: all that it shows and does is for the browser that has
// proved to be the caller's. A browser is known by a cookie of each link, which is made anew
// when its person has signed in.
package connect
