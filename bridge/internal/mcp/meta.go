package mcp

// Members of _meta by which a request of [Stateless] says who its client is, what it can
// do, and what it wants to be told.
const (
	MetaProtocol     = "io.modelcontextprotocol/protocolVersion"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServer       = "io.modelcontextprotocol/serverInfo" // who answers, in the answer to a request without a session
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
)

const (
	// MetaProgress is the member of a request's _meta by which its client asks to be told
	// how far it is.
	MetaProgress = "progressToken"
	// MetaRelatedTask names the task that a message is of.
	MetaRelatedTask = "io.modelcontextprotocol/related-task"
	// MetaGateway begins the members of _meta that are between clients and this gateway.
	MetaGateway = "io.github.wasmgate/"
	// MetaError is the member of a result's _meta that holds {code, data} of a
	// JSON-RPC error that a server answered a call with. The server has chosen what
	// is in it, so that it has none of the names that are the gate's own.
	MetaError = "jsonrpc_error"
)

// ExtensionTasks is the extension by which a server of [Stateless] may carry a call out as a
// task (SEP-2663). Towards servers the gateway declares it, whatever the client does.
const ExtensionTasks = "io.modelcontextprotocol/tasks"
