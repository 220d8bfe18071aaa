package actions

// An Action is what a call does, in the words of MCP's methods.
type Action string

// AgentCall is a call of a tool that an agent has itself and carries out itself, such as a
// shell: its hook asks before, and tells the result after.
const AgentCall Action = "agent/tools/call"

// The actions of servers: what they ask of the client of a call while it runs.
const (
	Elicit    Action = "elicitation/create"     // put a form, or a URL, to the person
	Sample    Action = "sampling/createMessage" // have the client's model write
	ListRoots Action = "roots/list"             // which folders the client works in
)

// IsPeerRequest reports whether the action is a server's, see gate.Permit.
func IsPeerRequest(a Action) bool {
	switch a {
	case Elicit, Sample, ListRoots:
		return true
	}
	return false
}

// The actions of a sandboxed tool while it carries out a call.
const (
	SandboxHTTP   Action = "sandbox/http"   // send an HTTP request
	SandboxSecret Action = "sandbox/secret" // put a secret into a request
	SandboxKV     Action = "sandbox/kv"     // read or write its key-value store
	SandboxFile   Action = "sandbox/file"   // open or change a file
)

// IsHostCall reports whether the action is that of a host call: of what a
// sandboxed tool does outside of its sandbox.
func IsHostCall(a Action) bool {
	switch a {
	case SandboxHTTP, SandboxSecret, SandboxKV, SandboxFile:
		return true
	}
	return false
}
