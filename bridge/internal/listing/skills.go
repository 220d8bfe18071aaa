package listing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// maxSkills bounds the skills of one server.
const maxSkills = 1000

// A SkillReader reads the files of skills when their server is listed.
type SkillReader struct {
	// Known are the verdicts on the skills that the server listed before, by the digests of
	// their entries, and Next those on what it lists now.
	Known, Next map[string]skills.Verdict
	// Read returns the result of resources/read. After an error that wraps ErrNoTime nothing
	// else is read.
	Read func(uri string) (gate.Doc, error)
	Late int // how many skills there was no time for
}

// ErrNoTime says that the time for reading files of skills is over.
var ErrNoTime = errors.New("not read yet: there was no time left when the server was listed")

func (s *Features) noteSkill(uri, text string) {
	s.Notes = append(s.Notes, status.Note{Feature: gate.FeatureSkill, Tool: mcp.QuoteName(uri), Quarantined: true, Text: text})
}

// AddSkills adds the skills that a server lists. One that cannot be offered is quarantined alone.
func (s *Features) AddSkills(o options.Skills, entries []gate.Doc, r *SkillReader) {
	r.Next = make(map[string]skills.Verdict)
	names := make(map[string]bool)
	for i, entry := range entries {
		uri := entry.Get("uri").Text()
		if i == maxSkills {
			s.noteSkill(uri, fmt.Sprintf("left out: the server has more than %d skills", maxSkills))
			break
		}
		t, pinned, err := s.newSkill(o, entry, r)
		if err == nil && names[t.Skill.Name] {
			err = errors.New("the server lists another skill of this path")
		}
		if err != nil {
			s.noteSkill(uri, err.Error())
			continue
		}
		names[t.Skill.Name] = true
		if s.Skills = append(s.Skills, t); t.Quarantine != "" {
			s.noteSkill(uri, t.Quarantine)
			continue
		}
		s.declare(gate.FeatureSkill, pinned)
	}
	for _, t := range s.Skills {
		for _, outer := range s.Skills {
			t.Skill.Nested = t.Skill.Nested || t != outer && strings.HasPrefix(t.Skill.URI, skills.Root(outer.Skill.URI))
		}
	}
}

// newSkill returns a skill with what is pinned of it.
func (s *Features) newSkill(o options.Skills, entry gate.Doc, r *SkillReader) (t *gate.Tool, pinned gate.Doc, err error) {
	defer func() { // an entry that a parser stumbles over hurts itself alone
		if v := recover(); v != nil {
			err = fmt.Errorf("its entry cannot be read: %v", v)
		}
	}()
	skill, err := skills.Parse(s.Server, entry)
	if err != nil {
		return nil, gate.Doc{}, err
	}
	skill.Trusted = o.Trusted
	t = newFeature(gate.FeatureSkill, gate.ToolName{Server: s.Server}, entry)
	t.Skill, t.Local, t.Offered, t.Input = skill, skill.URI, skills.OfferedURI(s.Server, skill.URI), noArguments{}
	t.OnMachine, t.Vetted, t.Login, t.Groups = s.Options.OnMachine, s.Options.Vetted, s.Options.Login, groupsOf(s.Options.Groups, t.Name)
	if o.Trusted {
		t.Teaches = gate.Labels{}
	}
	if t.Definition, err = skills.Offered(s.Server, skill); err != nil {
		return nil, gate.Doc{}, err
	}
	var verdict skills.Verdict
	switch {
	case o.Refuse && len(skill.Widens) > 0:
		t.Quarantine = "its frontmatter asks for more than a skill describes: " + strings.Join(skill.Widens, ", ")
	case skill.Dynamic && !o.Dynamic:
		t.Quarantine = "it is dynamic: its files have no digests"
	case !skill.Dynamic:
		verdict, t.Quarantine = r.examine(skill)
	}
	skill.Notes = verdict.Notes
	pinned, err = skills.Pinned(skill, verdict.Text)
	t.Digest = pinned.Digest()
	return t, pinned, err
}

// examine looks through the files of a skill, unless the same set was looked through before.
func (r *SkillReader) examine(s *gate.Skill) (v skills.Verdict, quarantine string) {
	key := s.Entry.Digest()
	v, known := r.Known[key]
	if !known && r.Late > 0 {
		r.Late++
		return v, ErrNoTime.Error()
	}
	if !known {
		var err error
		v, err = skills.Examine(s, func(p string, f gate.SkillFile) ([]byte, error) {
			uri := skills.Root(s.URI) + p
			result, err := r.Read(uri)
			if err != nil {
				return nil, err
			}
			return skills.Read(f, uri, result)
		})
		if errors.Is(err, ErrNoTime) {
			r.Late++
			return v, ErrNoTime.Error()
		}
		if err != nil { // the next listing tries again
			return v, err.Error()
		}
	}
	r.Next[key] = v
	return v, v.Refused
}
