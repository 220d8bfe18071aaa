// Package status defines the types by which a gateway reports its state to its operator.
package status

import "github.com/wasmgate/wasmgate/gate"

// A Note is something about a server's tools that an operator should know.
type Note struct {
	Tool string `json:"tool"` // its name at the server, quoted where it must be
	// Feature is what it is a note on; a tool if empty.
	Feature gate.Feature `json:"feature,omitempty"`
	// Quarantined tools are neither offered nor callable.
	Quarantined bool   `json:"quarantined"`
	Text        string `json:"text"`
}

// A Conflict is one name, or URI, that two would offer. One of them has it, and the
// other is offered in another way, or not at all.
type Conflict struct {
	Feature gate.Feature `json:"feature,omitempty"` // a tool if empty
	Name    string       `json:"name"`              // that both would have
	// Server is the one that does not have the name, ShadowedBy the one that has it: the server
	// that comes first, or the program that embeds the gateway.
	Server     string `json:"server"`
	ShadowedBy string `json:"shadowed_by"`
	// Offered is the name, or URI, by which the server's own is offered instead; "" if it is not
	// offered.
	Offered string `json:"offered,omitempty"`
	// Resolution says so in words.
	Resolution string `json:"resolution"`
}

// A Module tells how a module is.
type Module struct {
	Module string `json:"module"` // its name in the configuration
	Server string `json:"server"`
	Tools  int    `json:"tools"`
	// Error says why the module is not run, and its tools are not offered; "" if they are.
	Error string `json:"error,omitempty"`
	// Progress says how far a module is that is not compiled yet; "" if it is. Its tools are
	// offered then, but for the embedded ones, which are offered meanwhile.
	Progress string `json:"progress,omitempty"`
	// Note is what the operator should know of a module that is run; "" if there is nothing.
	Note string `json:"note,omitempty"`
	// Development says that its author works on it: see Module of bridge/gateway.
	Development bool `json:"development,omitempty"`
}

// NotReady is one reason for which a gateway should be sent no clients.
type NotReady struct {
	Part string // draining, audit or servers: a word for anybody
	Why  string // for the operator
}

func (n NotReady) String() string { return n.Part + ": " + n.Why }

// BrokenInput is how often calls of a tool were refused, since the gateway has started,
// because their arguments break its input schema.
type BrokenInput struct {
	Tool  string `json:"tool"` // qualified
	Calls int    `json:"calls"`
	Last  string `json:"last"` // what was wrong the last time
}
