package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lookalike"
	"github.com/wasmgate/wasmgate/internal/scan"
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

// hold keeps a tool only so that a client that asks for it learns why it cannot have it. The tool
// is not listed.
func (c *catalog) hold(m member, t, other *gate.Tool, why string) {
	held := *t
	held.Quarantine = fmt.Sprintf("its name looks like that of %s: %s", other.Name, why)
	c.held = append(c.held, &held)
	c.notes[m.id] = append(c.notes[m.id], status.Note{Feature: t.Feature, Tool: mcp.QuoteName(t.Local), Quarantined: true, Text: held.Quarantine + "; rename one of them, or disable a server"})
}

// knowHeld makes tools that are held findable by their names, unless another tool has the name.
func (c *catalog) knowHeld() {
	for _, t := range c.held {
		for _, name := range []string{t.Offered, t.Name.String()} {
			if c.byName[name] == nil {
				c.byName[name] = t
			}
		}
	}
}

// logHeld tells of the tools that are held and were not in the old catalog, which may be nil.
func (c *catalog) logHeld(old *catalog, log *slog.Logger) {
	for _, t := range c.held {
		known := old != nil && slices.ContainsFunc(old.held, func(o *gate.Tool) bool {
			return o.Name == t.Name && o.Local == t.Local && o.Quarantine == t.Quarantine
		})
		if !known {
			log.LogAttrs(context.Background(), slog.LevelWarn, "tool quarantined",
				slog.String("server", t.Name.Server), slog.String("tool", mcp.QuoteName(t.Local)), slog.String("error", t.Quarantine))
		}
	}
}

// mentions finds definitions that speak of tools of other servers. It keeps the
// words of definitions, since catalogs are made anew whenever one server changes.
type mentions struct {
	words map[string][]string // by digest
}

// note adds a finding to each tool that speaks of one of another server, by a
// name that is no ordinary word and not one of its own server's tools.
func (s *mentions) note(tools []candidate, c *catalog) {
	owners := make(map[string][]string)
	for _, one := range tools {
		t := one.tool
		for _, name := range []string{t.Local, t.Name.String()} {
			if !slices.Contains(owners[name], t.Name.Server) && len(owners[name]) < maxOwners {
				owners[name] = append(owners[name], t.Name.Server)
			}
		}
	}
	words := make(map[string][]string, len(tools))
	for i, one := range tools {
		t := one.tool
		said, ok := s.words[t.Digest]
		if !ok {
			said = scan.Identifiers(t.Definition.Raw())
		}
		words[t.Digest] = said
		for _, word := range said {
			of := owners[word]
			if len(of) == 0 || slices.Contains(of, t.Name.Server) || word == t.Offered {
				continue
			}
			speaks := *t
			speaks.Findings = append(slices.Clone(t.Findings), scan.RuleMention)
			tools[i].tool = &speaks
			c.notes[one.member.id] = append(c.notes[one.member.id], status.Note{Tool: mcp.QuoteName(t.Local), Text: fmt.Sprintf("its definition mentions %s, a tool of %s", word, of[0])})
			break
		}
	}
	s.words = words
}

// maxOwners bounds the servers that are kept of one name: what many have is no
// sign of one of them.
const maxOwners = 8
