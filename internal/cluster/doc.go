// Package cluster passes requests on between the gateways of a database. What is in the memory of
// one gateway, such as a session, has an id that names the gateway; any other gateway forwards a
// request about it, whole and once.
//
// Gateways speak TLS with each other. Their certificates come from a key that all of them derive
// from the secret of the database: an address that proves another key, or the name of another
// gateway, gets nothing. The gateway that answers authenticates the client itself, by all that the
// client has sent and by what its connection has proved.
package cluster
