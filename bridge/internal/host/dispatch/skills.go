package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// skillSet answers requests for skills, and knows which skill a name means.
type skillSet struct{ *carrier }

// offersSkills reports whether skills are declared to a client: if one is granted, or if that is not
// known yet.
func (s skillSet) offersSkills(ctx context.Context, p sessions.Client, o mcp.Offering) bool {
	if !o.Skills || s.cfg.Known == nil {
		return false
	}
	if o == mcp.AllOffered {
		return true
	}
	known, err := s.cfg.Known(ctx, p.Who, gate.FeatureSkill)
	return err == nil && len(within(p.Groups, known)) > 0
}

// useSkill answers a request for the entry of a skill, or for what is in a folder of one.
func (s skillSet) useSkill(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	action, params := gate.Action(m.Method), m.Params
	name, err := message.CheckUse(action, params)
	c := p.Call(action, name)
	c.Meta, c.Client, c.Refused = message.Object(params, "_meta"), p.Reached(ctx), err
	named, err := s.skillOf(ctx, p, &c)
	if err != nil {
		return gate.Doc{}, err
	}
	res, err := s.carry(ctx, p, &c, params)
	if err != nil {
		res, err = s.connect(ctx, p, &c, params, err)
	}
	switch {
	case err != nil:
		return gate.Doc{}, useError(ctx, p, &c, err)
	case res.InputRequired:
		return res.Doc, nil
	case res.IsError:
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	answer := res.Doc
	if c.Name != name && named != nil { // answered under the URI that was asked for
		answer, err = asOwn(named, action, name, answer)
	}
	return s.cached(p, gate.FeatureSkill, answer), err
}

// asOwn returns an answer about a skill with the URIs of its server.
func asOwn(t *gate.Tool, action gate.Action, asked string, answer gate.Doc) (gate.Doc, error) {
	if action == gate.GetSkill {
		return answer.With("skill", t.Skill.Entry.Raw()), nil
	}
	return doc.MapStrings(answer, func(at doc.Leaf, s string) string {
		if at.Key || !strings.HasSuffix(at.Pointer(), "/uri") {
			return s
		}
		return asked + s[strings.LastIndexByte(s, '/'):]
	})
}

// skillOf has a call name a skill, or a file or folder of one, as clients know it, and returns the
// skill if the call named it otherwise: by a URI of its server, which instructions and other skills
// may mention. That counts if one skill alone that is granted has it, and for files once the
// session has loaded the skill: for all others they are ordinary resources.
func (s skillSet) skillOf(ctx context.Context, p sessions.Client, c *gate.Call) (*gate.Tool, error) {
	if c.Refused != nil || s.cfg.Lookup == nil || !s.offering(ctx, 0).Skills {
		return nil, nil
	}
	all, err := s.listed(ctx, p, gate.FeatureSkill)
	if err != nil {
		return nil, err
	}
	var found []*gate.Tool
	for _, t := range all {
		switch root := skills.Root(t.Offered); {
		case c.Action == gate.GetSkill && t.Offered == c.Name:
			return nil, nil
		case c.Action == gate.GetSkill && t.Local == c.Name:
			found = append(found, t)
		case c.Action != gate.GetSkill && has(t, c, root):
			return nil, s.innermost(ctx, c, all)
		case c.Action != gate.GetSkill && has(t, c, skills.Root(t.Local)):
			found = append(found, t)
		}
	}
	if c.Action == gate.ReadResource && len(found) > 0 {
		loaded, err := s.cfg.LoadedSkills(ctx, c.Session)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(t *gate.Tool) bool { return !slices.Contains(loaded, t.Skill.Name) })
	}
	found = slices.DeleteFunc(found, func(t *gate.Tool) bool { // the innermost one of each server stays
		return slices.ContainsFunc(found, func(o *gate.Tool) bool {
			return o != t && o.Name.Server == t.Name.Server && strings.HasPrefix(o.Local, skills.Root(t.Local))
		})
	})
	switch {
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, ambiguousSkill(c, found)
	}
	t := found[0]
	own, offered := skills.Root(t.Local), skills.Root(t.Offered)
	if c.Name+"/" == own { // the folder itself
		c.Name = strings.TrimSuffix(offered, "/")
	} else {
		c.Name = offered + strings.TrimPrefix(c.Name, own)
	}
	return t, nil
}

// has reports whether a skill, whose folder has a URI, has the file or the folder that a call names.
func has(t *gate.Tool, c *gate.Call, root string) bool {
	if c.Action == gate.ReadDirectory && c.Name+"/" == root {
		return true
	}
	p, ok := strings.CutPrefix(c.Name, root)
	if !ok || t.Skill.Dynamic {
		return ok
	}
	if c.Action == gate.ReadDirectory {
		_, ok = skills.Directory(t.Skill, "", p)
		return ok
	}
	_, ok = t.Skill.Files[p]
	return ok
}

// innermost has a call of a file, or a folder, that several nested skills have go by one that is
// granted: a grant of the outer one covers its files.
func (s skillSet) innermost(ctx context.Context, c *gate.Call, granted []*gate.Tool) error {
	t, err := s.cfg.Lookup(ctx, c.Action, c.Name)
	if err != nil || t.Skill == nil || slices.ContainsFunc(granted, func(o *gate.Tool) bool { return o.Skill.Name == t.Skill.Name }) {
		return nil // the gate says what is wrong
	}
	var best *gate.Tool
	for _, o := range granted {
		if has(o, c, skills.Root(o.Offered)) && (best == nil || len(o.Offered) > len(best.Offered)) {
			best = o
		}
	}
	if best != nil {
		root := skills.Root(best.Offered)
		c.Name = best.Offered + "#" + c.Name[min(len(root), len(c.Name)):]
	}
	return nil
}

// ambiguousSkill refuses a URI that the skills of several servers have.
func ambiguousSkill(c *gate.Call, found []*gate.Tool) error {
	var names []string
	for _, t := range found {
		names = append(names, t.Offered)
	}
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("several servers have %.200q: name one of %s", c.Name, strings.Join(names, ", "))}
}
