package fleet

import (
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lookalike"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// maxSkillURI bounds what is looked up: it is longer than the URI of any file of a skill.
const maxSkillURI = 2048

// catalogSkills are the skills of all servers, immutable.
type catalogSkills struct {
	all    []*gate.Tool
	byRoot map[string]*gate.Tool // by the folder, with the slash at its end, as clients know it
	usable func(*gate.Tool) bool
	has    bool // a server has skills, though it may list none
}

// serverSkills are the features of a server, with its skills.
type serverSkills struct {
	id       string
	features *listing.Features
}

// approvals know which skills a person has approved; nil approves of all.
type approvals interface {
	gate.Pins
	Pinned(t *gate.Tool) bool
}

// newSkills joins the skills of all servers. One with a name that looks like that of an earlier
// server's is quarantined. One of an equal name differs by its URI, and the status names both.
func newSkills(servers []serverSkills, groups options.Groups, pins approvals, notes map[string][]status.Note) catalogSkills {
	s := catalogSkills{
		byRoot: make(map[string]*gate.Tool),
		usable: func(t *gate.Tool) bool { return t.Quarantine == "" && (pins == nil || pins.Check(t) == nil) },
	}
	var names lookalike.Index // of earlier servers
	owners := make(map[string]string)
	for _, m := range servers {
		f := m.features
		s.has = s.has || f.HasSkills
		note := func(t *gate.Tool, quarantined bool, format string, args ...any) {
			notes[m.id] = append(notes[m.id], status.Note{Feature: gate.FeatureSkill, Tool: mcp.QuoteName(t.Local), Quarantined: quarantined, Text: fmt.Sprintf(format, args...)})
		}
		var own []string
		for _, t := range f.Skills {
			t = listing.Grouped(t, groups)
			name := skillName(t)
			own = append(own, name)
			if first := owners[name]; first != "" {
				note(t, false, "%s has a skill of this name, too; clients tell them apart by their URIs", first)
			} else if other, why, alike := names.SameShape(name); alike && t.Quarantine == "" {
				its := *t
				t, its.Quarantine = &its, fmt.Sprintf("its name looks like that of the skill %s of %s: %s", other, owners[other], why)
				note(t, true, "%s", t.Quarantine)
			}
			if t.Quarantine == "" && pins != nil && pins.Pinned(t) {
				its := *t
				its.Pinned, t = true, &its
			}
			s.all = append(s.all, t)
			s.byRoot[skills.Root(t.Offered)] = t
		}
		for _, name := range own {
			if owners[name] == "" {
				owners[name] = m.id
				names.Add(name)
			}
		}
	}
	return s
}

// skillName is the name that a skill has in its frontmatter.
func skillName(t *gate.Tool) string { return t.Skill.Entry.At("/frontmatter/name").Text() }

// listed returns those that may be offered, as far as the pins know.
func (s catalogSkills) listed() (all []*gate.Tool) {
	for _, t := range s.all {
		if s.usable(t) {
			all = append(all, t)
		}
	}
	return all
}

// lookup finds what an action of MCP Skills, or the reading of a resource, names; nil if it is no
// part of a skill. Of nested skills that have a file it is the innermost one that is usable.
// SKILL#PATH names the file of a certain skill.
func (s catalogSkills) lookup(action gate.Action, uri string) *gate.Tool {
	if action == gate.GetSkill {
		root, ok := strings.CutSuffix(uri, skills.File)
		if t := s.byRoot[root]; ok && t != nil {
			return t
		}
		return nil
	}
	if action != gate.ReadResource && action != gate.ReadDirectory {
		return nil
	}
	if skill, p, ok := strings.Cut(uri, "#"); ok {
		if t := s.byRoot[skills.Root(skill)]; t != nil {
			return part(t, action, p)
		}
		return nil
	}
	if len(uri) > maxSkillURI {
		return nil
	}
	var first *gate.Tool
	for root := uri + "/"; root != ""; root = root[:strings.LastIndexByte(root[:len(root)-1], '/')+1] {
		t := s.byRoot[root]
		if t == nil {
			continue
		}
		if t = part(t, action, uri[min(len(root), len(uri)):]); t == nil {
			continue
		}
		if s.usable(t) {
			return t
		}
		if first == nil {
			first = t
		}
	}
	return first
}

// part returns what stands for a file, or a folder, of a skill; nil if it has none of that path.
func part(t *gate.Tool, action gate.Action, p string) *gate.Tool {
	root := skills.Root(t.Skill.URI)
	if p != "" && skills.CheckPath(p) != nil {
		return nil
	}
	its := *t
	its.File = p
	if action == gate.ReadDirectory {
		its.URI = strings.TrimSuffix(root+p, "/")
		if _, ok := skills.Directory(t.Skill, "", p); !ok && !t.Skill.Dynamic {
			return nil
		}
		return &its
	}
	if _, ok := t.Skill.Files[p]; p == "" || !ok && !t.Skill.Dynamic {
		return nil
	}
	its.Feature, its.Local, its.Offered = gate.FeatureResource, root+p, skills.Root(t.Offered)+p
	return &its
}

// invokeSkill answers what the listing of a server answers already. It is false if the server has
// to be asked.
func invokeSkill(c *gate.Call, t *gate.Tool) (gate.Result, bool) {
	switch {
	case t.Skill == nil:
		return gate.Result{}, false
	case c.Action == gate.GetSkill:
		return gate.Result{Doc: gate.MustDoc(`{}`).With("skill", t.Definition.Raw())}, true
	case c.Action == gate.ReadDirectory && !t.Skill.Dynamic:
		answer, _ := skills.Directory(t.Skill, directory(t), t.File) // it was looked up
		return gate.Result{Doc: answer}, true
	}
	return gate.Result{}, false
}

// directory returns the URI by which clients know the folder that t stands for.
func directory(t *gate.Tool) string {
	return strings.TrimSuffix(skills.Root(t.Offered)+t.File, "/")
}

// dynamicDirectory returns what is in a folder of a skill without digests, without what is
// elsewhere.
func dynamicDirectory(t *gate.Tool, answer gate.Doc) (gate.Doc, error) {
	below, list := t.URI+"/", []byte{'['}
	for one := range answer.Get("resources").Elements() {
		uri := one.Get("uri").Text()
		name, ok := strings.CutPrefix(uri, below)
		if !ok || skills.CheckPath(name) != nil || strings.ContainsAny(name, "/?#") {
			continue
		}
		child := map[string]string{"uri": directory(t) + "/" + name, "name": name}
		if mime := one.Get("mimeType").Text(); mime == "inode/directory" {
			child["mimeType"] = mime
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, mcp.MustJSON(child)...)
	}
	return gate.ParseDoc([]byte(`{"resources":` + string(append(list, ']')) + `}`))
}
