package options

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
)

// Tools say how the tools of a server are offered.
type Tools struct {
	// Bare offers tools by their own names, without the server's. One with "__"
	// in its name keeps the server's.
	Bare bool
	// Normalize offers clients the reduced form of input schemas that every
	// model provider accepts. Arguments are held
	// against the schema as declared in any case.
	Normalize bool
	// Strict quarantines a tool whose schema has a keyword that cannot be judged, which is
	// otherwise left out.
	Strict bool
	// OutputWarn lets results pass that break the declared output schema.
	OutputWarn bool
	// Sanitizer cleans the texts of definitions; a gateway sets it.
	Sanitizer gate.Sanitizer
	// Config identifies how the server is configured: see [gate.Tool.Config].
	Config string
	// Groups say in which groups the tools are, and what else the server offers.
	Groups Groups
	// Vetted says that the operator trusts what the server lists: see [gate.Tool.Vetted].
	Vetted bool
	// OnMachine says that the server is a child of the gateway's: see [gate.Tool.OnMachine].
	OnMachine bool
	// Apps say how pages of the server's apps are offered.
	Apps Apps
	// Skills say how the server's skills are offered.
	Skills Skills
	// Login says that requests carry a login: see [gate.Tool.Login].
	Login bool
}

// Apps say how the pages of a server are offered.
type Apps struct {
	Off bool // not at all
	On  bool // also if no person has approved one
	// Allow narrows what they may use.
	Allow AppSources
	// PinPolicy pins what they ask of their host, and not their bytes; PinOff pins neither.
	PinPolicy, PinOff bool
}

// AppSources narrow what the pages of apps may use: to these sources, and to these permissions. A nil list
// narrows nothing, an empty one leaves nothing.
type AppSources struct {
	Connect, Resources, Frames, Base, Permissions []string
	// Domain lets pages have the domain that they ask for as their origin. Behind a gateway the
	// pages of all servers come from one server, so that a host cannot keep one server from the
	// domain of another, and from what is stored there.
	Domain bool
}

// Skills say how the skills of a server are offered.
type Skills struct {
	Off     bool // not at all
	Trusted bool // the operator trusts the server's authors
	Dynamic bool // also those without digests
	Refuse  bool // none whose frontmatter asks for rights
	// Own says that the operator wrote them: they are as good as approved.
	Own bool
}

// Groups say what is in the groups of an operator: for each, patterns of qualified
// names of tools and prompts, literals, or literals with * at their end. Resources have
// no name there but their server's, so that SERVER__* means them too.
type Groups map[string][]string

// A LocalTool is a tool that runs in this process: a Go function, or a WASM
// module behind one.
type LocalTool struct {
	// Definition is the MCP tool: name, description, inputSchema and so on.
	Definition gate.Doc
	// Sandboxed says that the tool runs as a WASM module, whose capabilities are
	// Capabilities, an object.
	Sandboxed    bool
	Capabilities gate.Doc
	// Origin is where the module comes from: see [gate.Tool].
	Origin gate.Doc
	// Module is the WASM module in which the tool runs, if that is pinned as well.
	Module ToolModule
	// Config identifies how the tool's module is configured: see [gate.Tool.Config].
	Config string
	// Foreign tools are held against pins like those of servers. The others are part
	// of the program, and as good as approved.
	Foreign bool
	// Groups are those that the tool is in besides those of its name.
	Groups []string
	// Relay says that the tool carries out another call for its client, by
	// [gate.Permit.Relay]: that one needs a grant, and the tool none.
	Relay bool
	// Call carries out a permitted call; p is the permit, by which a sandboxed
	// tool makes host calls. Its error needs a Code of those that [gate.Code]
	// names. It is called concurrently.
	Call func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error)
}

// A ToolModule is a WASM module in which local tools run: its name, and an object of all that
// decides what runs. The zero ToolModule is none that is pinned.
type ToolModule struct {
	Name string
	Runs gate.Doc
}
