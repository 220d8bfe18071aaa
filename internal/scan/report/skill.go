package report

import (
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// skill returns the notes on a pinned skill, as its server lists it now.
func skill(g *gateway.Gateway, k lock.Key) []scan.Finding {
	for _, t := range g.Fleet().Skills() {
		if t.Name.Server == k.Server && t.Local == k.Name {
			return findings(t.Skill)
		}
	}
	return nil
}

// findings returns the notes on a skill, each at the part of what is pinned that it is about.
func findings(s *gate.Skill) (all []scan.Finding) {
	for _, name := range s.Widens {
		all = append(all, scan.Of(scan.RuleSkillWidens, "/frontmatter/"+pointer.Escape(name), name))
	}
	for _, note := range s.Notes {
		file, _, _ := strings.Cut(note, ": ")
		all = append(all, scan.Of(scan.RuleSkillFile, "/files/"+pointer.Escape(file), note))
	}
	return all
}
