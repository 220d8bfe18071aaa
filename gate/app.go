package gate

import (
	"context"
	"strings"

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
