package inventory

import (
	"context"
	"encoding/json"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// A Skill is what commands show of a skill.
type Skill struct {
	Name        string          `json:"name"` // SERVER/PATH
	Server      string          `json:"server"`
	URI         string          `json:"uri"`   // as offered
	Local       string          `json:"local"` // its URI at its server
	Offered     bool            `json:"offered"`
	Quarantine  string          `json:"quarantine,omitempty"` // the reason
	Why         string          `json:"why,omitempty"`        // the principal is not offered it
	Pinned      bool            `json:"pinned"`
	Trusted     bool            `json:"trusted"`
	Dynamic     bool            `json:"dynamic"`
	Nested      bool            `json:"nested"`
	Teaches     gate.Labels     `json:"teaches,omitempty"` // what a session learns that loads it
	Digest      string          `json:"digest"`            // of the whole set
	Size        int64           `json:"size"`
	Files       []SkillFile     `json:"files"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Widens      []string        `json:"widens,omitempty"`
	Notes       []string        `json:"notes,omitempty"`
}

// State says whether the skill is offered, and why not.
func (s Skill) State() string {
	switch {
	case s.Quarantine != "":
		return "quarantined: " + s.Quarantine
	case !s.Offered:
		return s.Why
	case s.Pinned:
		return "offered, approved"
	default:
		return "offered"
	}
}

// Described returns the skill as policies see it.
func (s Skill) Described() *gate.Tool {
	files := make(map[string]gate.SkillFile, len(s.Files))
	for _, f := range s.Files {
		files[f.Path] = gate.SkillFile{Digest: f.Digest, Size: f.Size}
	}
	return &gate.Tool{
		Feature: gate.FeatureSkill, Name: gate.ToolName{Server: s.Server}, Local: s.Local, Offered: s.URI, Digest: s.Digest, Pinned: s.Pinned, Teaches: s.Teaches,
		Skill: &gate.Skill{Name: s.Name, URI: s.Local, Files: files, Size: s.Size, Dynamic: s.Dynamic, Nested: s.Nested, Trusted: s.Trusted, Widens: s.Widens, Notes: s.Notes},
	}
}

// A SkillFile is a file of a skill.
type SkillFile struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Skills returns the skills of all servers, with whether the principal as is offered them. It waits
// as [Inventory.Tools] does.
func (i *Inventory) Skills(ctx context.Context, as string) ([]Skill, error) {
	ctx = i.Gateway.Fleet().Settle(ctx)
	who, err := naming.Principal(i.Config(), as)
	if err != nil {
		return nil, err
	}
	i.Gateway.Fleet().Features(ctx, gate.FeatureSkill) // takes up what has changed
	shown, err := i.Gateway.Features(ctx, who, gate.FeatureSkill)
	if err != nil {
		return nil, err
	}
	offered := make(map[string]bool, len(shown))
	for _, t := range shown {
		offered[t.Offered] = true
	}
	list := []Skill{}
	for _, t := range i.Gateway.Fleet().Skills() {
		s := t.Skill
		one := Skill{
			Name: s.Name, Server: t.Name.Server, URI: t.Offered, Local: t.Local, Teaches: t.Teaches, Offered: offered[t.Offered], Pinned: t.Pinned, Trusted: s.Trusted, Dynamic: s.Dynamic,
			Nested: s.Nested, Digest: t.Digest, Size: s.Size, Files: []SkillFile{}, Frontmatter: s.Entry.Get("frontmatter").Raw(), Widens: s.Widens, Notes: s.Notes,
		}
		for _, p := range skills.Paths(s) {
			one.Files = append(one.Files, SkillFile{p, s.Files[p].Digest, s.Files[p].Size})
		}
		if one.Quarantine = i.quarantine(t); !one.Offered && one.Quarantine == "" {
			one.Why = i.whyNot(t, who)
		}
		list = append(list, one)
	}
	return list, nil
}
