package fleet

import (
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// maxOwners bounds the servers that are kept of one name: what many have is no
// sign of one of them.
const maxOwners = 8

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
