package gate

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// The gate does not see which calls come from a page: that is not on the wire. It knows which
// servers have an app open in a session, by a label of the session, and that a call by a
// tool's own name, or of a tool that is only for apps, is not the model's.

// labelApp begins the labels that name servers with an app that is open.
const labelApp = "app:"

// AppLabel returns the label of sessions in which an app of a server is open.
func AppLabel(server string) string { return labelApp + server }

// OpenApps returns the servers with an app that is open in the session.
func (s Session) OpenApps() (servers []string) {
	for _, l := range s.Labels {
		if server, ok := strings.CutPrefix(l, labelApp); ok {
			servers = append(servers, server)
		}
	}
	return servers
}

// FromApp reports whether a call is one that only a page makes.
func (q Query) FromApp() bool { return q.Call.fromApp(q.Tool) }

func (c *Call) fromApp(t *Tool) bool { return c.OwnName || t.AppOnly }

// AppTools returns the tools that servers have only for their apps, and that who may call.
func (g *Gate) AppTools(ctx context.Context, who *Principal) ([]*Tool, error) {
	return g.list(ctx, who, func(p *Parts) []*Tool {
		return slices.DeleteFunc(slices.Clone(p.Upstream.Features(ctx, FeatureTool)), func(t *Tool) bool { return !t.AppOnly })
	})
}

// opens returns the label that the session of a call gets because the client shows a page
// then: that it reads, or that shows what a tool returns.
func (p *Parts) opens(c *Call, t *Tool) Labels {
	if !c.Renders {
		return nil
	}
	page := t
	if c.Action == CallTool && t.App != nil {
		page = t.App.Page
	}
	if page == nil || page.Page == nil || p.check(page) != nil {
		return nil
	}
	return Labels{AppLabel(t.Name.Server)}
}

// noApp refuses a tool that is only for apps, to a client that shows none: to that it does
// not exist.
func (w *way) noApp(ctx context.Context, c *Call) error {
	w.next(step.App)
	err := w.fail(ctx, unknown(c.Action), errors.New("the tool is only for the app of its server, and the client shows no apps"))
	if r, ok := err.(*Refusal); ok {
		r.Hidden = true
	}
	return err
}

// open refuses a tool that is only for the app of its server while no app of that is open.
func (w *way) open(ctx context.Context, q Query) error {
	server := q.Tool.Name.Server
	if !q.Tool.AppOnly || q.Session.Labels.Cover(Labels{AppLabel(server)}) {
		return nil
	}
	w.next(step.App)
	err := w.fail(ctx, "the tool is only for the app of "+server+", and no app of it is open here; call a tool of "+server+" that has a page", nil)
	if r, ok := err.(*Refusal); ok && !w.mayKnow(ctx, q.Call, q.Tool) {
		r.Reason, r.Hidden = unknown(q.Call.Action), true
	}
	return err
}

// page returns the page of an app to a client that shows it: byte for byte as it is pinned,
// because its own code may hold anything. A secret cannot be taken out of a page without
// breaking it, so that a page with one is refused where secrets in results are not allowed.
func (w *way) page(ctx context.Context, p *permitted, answer Doc) (Doc, error) {
	w.found(p.tool.Page.Cut...)
	if w.guard(p.tool).results == allowSecrets {
		return answer, nil
	}
	found := p.tool.Page.secrets(w.Secrets)
	w.found(found...)
	if holdSecret(found) {
		return Doc{}, w.fail(ctx, "the page holds a secret ("+secretKinds(found)+")", nil)
	}
	return answer, nil
}

// A search is what was found in a page.
type search struct {
	by    Secrets
	found []Finding
}

// secrets looks for secrets in the page, once for each s: a page may have megabytes.
func (p *Page) secrets(s Secrets) []Finding {
	if last, ok := p.searched.Load().(search); ok && last.by == s {
		return last.found
	}
	member, html := "text", p.Content.Get("text").Text()
	if html == "" {
		member = "blob"
		b, _ := base64.StdEncoding.DecodeString(p.Content.Get("blob").Text()) // it was read when the page was listed
		html = string(b)
	}
	at := "/contents/0/" + member
	_, found := s.Redact(at, member, html)
	found = found[:min(len(found), maxFindings)]
	for i := range found {
		found[i].At = at
	}
	p.searched.Store(search{s, found})
	return found
}

// labelSkill begins the labels that name skills which a session has loaded.
const labelSkill = "skill:"

// LoadedSkills returns the names of the skills that the session has loaded.
func (s Session) LoadedSkills() (names []string) {
	for _, l := range s.Labels {
		if name, ok := strings.CutPrefix(l, labelSkill); ok {
			names = append(names, name)
		}
	}
	return names
}

// loads returns the label that the session of a call gets because its client loads a skill.
func (t *Tool) loads(a Action) Labels {
	if t.Skill == nil || a == ReadDirectory {
		return nil
	}
	return Labels{labelSkill + t.Skill.Name}
}

// skill returns what a client gets of a skill: unchanged, because hosts verify it. What would
// have to be changed is refused.
func (w *way) skill(ctx context.Context, p *permitted, answer Doc) (Doc, error) {
	if p.duty.profile != "" || p.duty.redact != nil {
		return Doc{}, w.fail(ctx, unableToMeet, errors.New("a skill passes unchanged: nothing in it can be sanitized or redacted"))
	}
	if w.guard(p.tool).results == allowSecrets {
		return answer, nil
	}
	var found []Finding
	_, err := doc.MapStrings(answer, func(at doc.Leaf, s string) string {
		if strings.HasSuffix(at.Pointer(), "/blob") {
			if b, err := base64.StdEncoding.DecodeString(s); err == nil {
				s = string(b)
			}
		}
		_, one := w.Secrets.Redact(at.Pointer(), at.Name(), s)
		found = append(found, one[:min(len(one), maxFindings-len(found))]...)
		return s
	})
	if err != nil {
		return Doc{}, w.fail(ctx, "the skill cannot be searched for secrets", err)
	}
	w.found(found...)
	if holdSecret(found) {
		return Doc{}, w.fail(ctx, "the skill holds a secret ("+secretKinds(found)+"); hosts verify its bytes, so that it cannot be taken out", nil)
	}
	return answer, nil
}
