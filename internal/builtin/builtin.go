// Package builtin names the servers that a gateway has of its own.
package builtin

// The servers: of the tools by which clients search for others, of those that start jobs and
// fetch their outcomes, of the one that proposes calls to a person, and of the tools that run in the
// gateway itself, unless another is named.
const (
	Catalog = "catalog"
	Jobs    = "jobs"
	Gateway = "gateway"
	Local   = "local"
)

// Relays reports whether the tools of a server carry out calls of others.
func Relays(server string) bool { return server == Catalog || server == Jobs || server == Gateway }
