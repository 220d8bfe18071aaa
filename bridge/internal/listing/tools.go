package listing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// CheckOptions says what is missing.
func CheckOptions(o *options.Tools) error {
	if o.Sanitizer == nil {
		return fmt.Errorf("tool options have no sanitizer")
	}
	return nil
}

// Tools are the tools of one server, immutable.
type Tools struct {
	All    []*gate.Tool
	ByName map[string]*gate.Tool // by offered and by qualified name
	Notes  []status.Note

	Listed   []gate.Doc           // all definitions, as the server wrote them
	Declared []gate.Doc           // those of tools
	Foreign  []bool               // of local tools: whether they are
	Modules  []options.ToolModule // of local tools: what they run in

	Features *Features // what the server offers in addition to tools; nil if that is nothing
}

// Lookup finds a tool by its offered or its qualified name; an error wraps
// [gate.ErrUnknown].
func (s *Tools) Lookup(action gate.Action, name string) (*gate.Tool, error) {
	t, ok := s.ByName[name]
	if !ok || action != gate.CallTool {
		return nil, fmt.Errorf("tool %q: %w", name, gate.ErrUnknown)
	}
	return t, nil
}

// Same reports whether the server lists what it listed before, and it was sanitized in the same
// way.
func (s *Tools) Same(old *Tools) bool {
	return sameTools(s.All, old.All) && slices.Equal(s.Notes, old.Notes) && s.Features.same(old.Features)
}

// NewTools makes tools of the definitions that a server listed. It quarantines only those that
// cannot be sanitized.
func NewTools(server string, o options.Tools, raw []gate.Doc) *Tools {
	s := &Tools{ByName: make(map[string]*gate.Tool, len(raw)), Listed: raw}
	taken := map[string]bool{} // by tools whose names need no change
	for _, def := range raw {
		if local := def.Get("name").Text(); legal.MatchString(local) {
			taken[local] = true
		}
	}
	seen, until := map[string]string{}, time.Now().Add(scanTime) // digests by name
	for _, def := range raw {
		local := def.Get("name").Text()
		err := cmp.Or(checkSize(def), checkLocal(local))
		switch earlier, again := seen[local]; {
		case again && earlier == def.Digest():
			continue // servers without pages list the first one again
		case again && err == nil:
			err = fmt.Errorf("listed twice, with different definitions")
		case !again:
			seen[local] = def.Digest()
		}
		var t *gate.Tool
		if err == nil {
			t, err = newTool(gate.ToolName{Server: server, Tool: mangled(local, def.Digest(), taken)}, def, o)
		}
		if err == nil && (s.ByName[t.Offered] != nil || s.ByName[t.Name.String()] != nil) {
			err = fmt.Errorf("it would be offered as %s, which is the name of another tool", t.Offered)
		}
		if err != nil {
			s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(local), Quarantined: true, Text: err.Error()})
			continue
		}
		s.add(t)
		s.scan(t, def, until)
		s.Declared = append(s.Declared, def)
	}
	return s
}

func (s *Tools) add(t *gate.Tool) {
	s.All = append(s.All, t)
	s.ByName[t.Name.String()] = t
	s.ByName[t.Offered] = t
	if t.Offered != t.Name.String() && t.Offered != t.Name.Tool || t.Name.Tool != t.Local {
		s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(t.Local), Text: "offered as " + t.Offered})
	}
	for _, f := range t.Findings {
		s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(t.Local), Text: f})
	}
}
