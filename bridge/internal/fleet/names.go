package fleet

import (
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lookalike"
)

// names are those of a catalog, as a reader sees them. A tool that comes later and could be taken
// for an earlier one is quarantined: the first one keeps the name.
//
// Which names are alike depends on their authors. The names of one server have one author, and a
// single letter may distinguish tools there. Two servers may each have a read_file, and a prefix
// that distinguishes them; but neither has reason to write it in other characters. Tools without a
// prefix compete under their bare names, and there a letter is not enough.
type names struct {
	server   map[string]*lookalike.Index // the names of its tools there
	all      lookalike.Index             // the same, of all servers
	offered  lookalike.Index
	bare     lookalike.Index       // offered without a prefix
	holder   map[string]*gate.Tool // the first of the name, at its server
	offering map[string]*gate.Tool // that is offered by the name
}

func newNames() *names {
	return &names{
		server: make(map[string]*lookalike.Index),
		holder: make(map[string]*gate.Tool), offering: make(map[string]*gate.Tool),
	}
}

// like returns the earlier tool that t could be taken for, and why; nil if there
// is none.
func (n *names) like(t *gate.Tool) (other *gate.Tool, why string) {
	if own := n.server[t.Name.Server]; own != nil {
		if name, why, ok := own.Confusable(t.Local); ok {
			return &gate.Tool{Name: gate.ToolName{Server: t.Name.Server, Tool: mcp.QuoteName(name)}}, why
		}
	}
	if name, why, ok := n.all.SameShape(t.Local); ok {
		return n.holder[name], why
	}
	if name, why, ok := n.offered.Confusable(t.Offered); ok {
		if other := n.offering[name]; other.Name.Server != t.Name.Server && (isBare(t) || isBare(other)) {
			return other, why
		}
	}
	if !isBare(t) {
		return nil, ""
	}
	own := func(name string) bool { return n.offering[name].Name.Server == t.Name.Server }
	if name, why, ok := n.bare.Alike(t.Offered, own); ok {
		return n.offering[name], why
	}
	return nil, ""
}

// add puts the names of a tool to those that later ones are held against.
func (n *names) add(t *gate.Tool) {
	if n.server[t.Name.Server] == nil {
		n.server[t.Name.Server] = new(lookalike.Index)
	}
	n.server[t.Name.Server].Add(t.Local)
	n.all.Add(t.Local)
	n.offered.Add(t.Offered)
	if isBare(t) {
		n.bare.Add(t.Offered)
	}
	if n.holder[t.Local] == nil {
		n.holder[t.Local] = t
	}
	if n.offering[t.Offered] == nil {
		n.offering[t.Offered] = t
	}
}

// isBare reports whether a tool is offered without its server's name.
func isBare(t *gate.Tool) bool { return !strings.HasPrefix(t.Offered, t.Name.Server+"__") }
