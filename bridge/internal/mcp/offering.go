package mcp

import "github.com/wasmgate/wasmgate/gate"

// A Notice is what a server says outside of calls that some clients want to hear.
type Notice struct {
	Server string
	Method string
	Params gate.Doc // as the server wrote them
	// Session is whose connection a log message came on.
	Session gate.SessionKey
	// Subscribers are the IDs of the calls that subscribed to the resource of an update.
	Subscribers []string
}

// Offering is what the fleet offers in addition to tools.
type Offering struct {
	Prompts, Resources, Completions bool
	Logging                         bool // messages of servers, from a level on
	Updates                         bool // of resources that are subscribed to
	Apps                            bool // pages, to clients that show them
	Skills                          bool
}

// AllOffered is what is not known to be less.
var AllOffered = Offering{Prompts: true, Resources: true, Completions: true, Logging: true, Updates: true, Apps: true, Skills: true}

// Instructions are what a server says of how it is used, safe to be shown.
type Instructions struct{ Server, Text string }
