package product

// The servers: of the tools by which clients search for others, of those that start jobs and
// fetch their outcomes, of the one that proposes calls to a person, and of the tools that run in the
// gateway itself, unless another is named.
const (
	CatalogServer = "catalog"
	JobsServer    = "jobs"
	GatewayServer = "gateway"
	LocalServer   = "local"
)

// RelaysCalls reports whether the tools of a server carry out calls of others.
func RelaysCalls(server string) bool {
	return server == CatalogServer || server == JobsServer || server == GatewayServer
}
