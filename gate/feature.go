package gate

import "strings"

// A Feature is a kind of what servers offer (MCP, server features). The zero
// Feature is FeatureTool.
type Feature string

// The features that go through the gate.
const (
	FeatureTool     Feature = ""
	FeaturePrompt   Feature = "prompt"
	FeatureResource Feature = "resource"
	FeatureTemplate Feature = "template" // of the URIs of resources
	// FeaturePage lists the resources that are pages of apps. They are no others.
	FeaturePage Feature = "page"
	// FeatureSkill is a skill (MCP Skills). Its files are resources with a [Skill].
	FeatureSkill Feature = "skill"
	// FeatureAgent is a tool that an agent has itself: it is not listed or called here, and its
	// calls are decided on as [actions.AgentCall]. The server in its name is the agent.
	FeatureAgent Feature = "agent"
	// FeatureMethod is a method that MCP does not have. A call of one has the method for its
	// action, as its server knows it, and the whole of the request's parameters, but for
	// _meta, for its arguments.
	FeatureMethod Feature = "method"
)

// called reports whether what is used has a name and labels as tools have.
func (f Feature) called() bool { return f == FeatureTool || f == FeatureAgent }

// URI returns the URI of the resource, or the template, that the call names, as its server
// has it: the client may know it by another.
func (c *Call) URI(t *Tool) string {
	switch {
	case t.Feature == FeatureResource, t.Feature == FeatureSkill, c.Action == Complete:
		return t.Local
	case t.URI != "":
		return t.URI
	default:
		return c.Name
	}
}

// Subject names what the query is about: the qualified name of a tool or of a
// prompt, the URI of a resource or a skill as its server has it, or what the call names of a
// template.
func (q Query) Subject() string {
	switch q.Tool.Feature {
	case FeatureResource, FeatureTemplate, FeatureSkill:
		if q.Call == nil {
			return q.Tool.Local
		}
		return q.Call.URI(q.Tool)
	default:
		return q.Tool.named()
	}
}

// qualified returns the name of a tool; "" of what is none.
func (t *Tool) qualified() string {
	if !t.Feature.called() {
		return ""
	}
	return t.named()
}

// named is the text of the name: what clients use, where they use that, so that no call makes it anew.
func (t *Tool) named() string {
	n := t.Name
	tool, ok := strings.CutPrefix(t.Offered, n.Server)
	if ok && len(tool) == len("__")+len(n.Tool) && strings.HasPrefix(tool, "__") && strings.HasSuffix(tool, n.Tool) {
		return t.Offered
	}
	return n.String()
}
