package gate

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
)

// A ToolName names a tool among all servers: the server, and the tool's name
// there in the letters that MCP clients accept. Its text is server__tool.
type ToolName struct{ Server, Tool string }

var (
	serverID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	toolID   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// NewToolName returns the name of a tool of a server. A server matches
// [a-z0-9][a-z0-9-]*, which has no underscore, so that server__tool has exactly
// one reading; a tool matches [A-Za-z0-9_-]+.
func NewToolName(server, tool string) (ToolName, error) {
	if !serverID.MatchString(server) {
		return ToolName{}, fmt.Errorf("server %q: its name must match %s", server, serverID)
	}
	if !toolID.MatchString(tool) {
		return ToolName{}, fmt.Errorf("tool %q of server %s: its name must match %s", tool, server, toolID)
	}
	return ToolName{server, tool}, nil
}

// ParseToolName reads server__tool, split at the first "__".
func ParseToolName(s string) (ToolName, error) {
	server, tool, ok := strings.Cut(s, "__")
	if !ok {
		return ToolName{}, fmt.Errorf("tool %q: expected server__tool", s)
	}
	return NewToolName(server, tool)
}

// String returns server__tool, or "" for the zero name.
func (n ToolName) String() string {
	if n == (ToolName{}) {
		return ""
	}
	return n.Server + "__" + n.Tool
}

// A Tool is a tool as the gateway knows it, or a replacement for one when another [Feature] is
// used: then Name is that of a prompt, and of resources only the server is named. It is immutable
// and shared.
type Tool struct {
	Feature Feature
	Name    ToolName
	Local   string // its name at the server, sent upstream; of resources their URI, or their template
	URI     string // made by a template, as the server has it; "" if clients name it so, too
	MIME    string // that a resource is declared to have; "" if it is not
	Offered string // the name that clients use: Name, or without the server
	// Definition is the MCP tool as it is offered to clients.
	Definition  Doc
	Annotations Doc
	// Digest is the SHA-256 of the definition as the server declared it, over
	// its canonical form.
	Digest string
	// Module is the name of the WASM module in which the tool runs, and ModuleDigest the
	// SHA-256 of all that decides what runs there; both are empty if that is not pinned.
	Module, ModuleDigest string
	// Config identifies how the operator has configured the server, or the module, as far as
	// an approval is bound to it; "" is nothing.
	Config string
	// Pinned says that a person has approved the definition, rather than that it
	// was trusted when the server was first seen. Policies see it as
	// input.tool.pinned.
	Pinned bool
	// Input checks arguments, Output structured results. Without Input no call
	// passes; without Output any result does. Both are the server's schemas as
	// declared, whatever form of them clients are offered.
	Input, Output Schema
	// OutputWarn lets results pass that break Output, with a finding.
	OutputWarn bool
	// Teaches are the labels that a session gets from a result of the tool, unless
	// the operator has labelled it.
	Teaches Labels
	// Vetted says that no outsider writes the texts by which it is listed: it is part of the
	// program, or of a server whose lists the operator trusts.
	Vetted bool
	// OnMachine says that the server is a child of the gateway's, so that a path is one of
	// this machine.
	OnMachine bool
	// Login says that the server is called by a login of its callers or of the gateway, which
	// can be narrowed for one call: see [obligation.Narrowing] and [Permit.Used].
	Login bool
	// Sandboxed tools run as WASM modules. Capabilities is what they may use, an
	// object; absent for other tools.
	Sandboxed    bool
	Capabilities Doc
	// Origin is where the module of a sandboxed tool comes from, an object with source and
	// signer; absent for other tools. Policies see it as input.tool.origin.
	Origin Doc
	// Groups are those that the tool is in, sorted. Policies see them as
	// input.tool.groups.
	Groups []string
	// Relay tools are the gateway's own, and carry out another call by [Permit.Relay].
	// Policies see it as input.tool.relay: the other call needs a grant of its own.
	Relay bool
	// Findings are what was found in the definition, as it was declared: the rules of
	// it, and what was changed. Policies see them as input.tool.findings.
	Findings []string
	// Quarantine says why the tool is neither offered nor callable, even if it is approved; "" if
	// it is. It is safe to show to a client.
	Quarantine string
	// AppOnly says that the server has the tool only for its own app, whose page calls it. It
	// is offered by [Gate.AppTools] alone, and callable while an app of the server is open.
	AppOnly bool
	// App says what else the server's app has to do with the tool; nil is nothing.
	App *App
	// Page is the page of an app that a resource is; nil for other resources.
	Page *Page
	// Skill is set for a skill, and for a resource that is a file of one. File is the path of that
	// file below the folder of the skill.
	Skill *Skill
	File  string
}

// qualified returns the name of a tool; "" of what is none.
func (t *Tool) qualified() string {
	if !t.Feature.called() {
		return ""
	}
	return t.named()
}

// named is the text of the name: what clients use, where they use that, so that no call makes it anew.
func (t *Tool) named() string {
	n := t.Name
	tool, ok := strings.CutPrefix(t.Offered, n.Server)
	if ok && len(tool) == len("__")+len(n.Tool) && strings.HasPrefix(tool, "__") && strings.HasSuffix(tool, n.Tool) {
		return t.Offered
	}
	return n.String()
}

// An App is what the app of a server has to do with one of its tools (MCP Apps).
type App struct {
	Page  *Tool // that shows results of the tool, a resource with a Page; nil if there is none
	Calls bool  // the app may call the tool
}

// A Page is the page of an app, as its server answered when it was listed. Clients that show
// pages get it byte for byte, so that it is held against the pins. All others get sanitized text.
type Page struct {
	Content  Doc       // as in the result of resources/read, without the URI
	Settings Doc       // what a host gets to know of the page, in _meta.ui
	Cut      []Finding // what it does not get to know of what the server says there
	// Usable says that the configuration lets the page be shown although nothing is pinned.
	Usable bool

	searched atomic.Value // a search: what was found by the secrets that were looked for last
}
