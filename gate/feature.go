package gate

// A Feature is a kind of what servers offer (MCP, server features). The zero
// Feature is FeatureTool.
type Feature string

// The features that go through the gate.
const (
	FeatureTool     Feature = ""
	FeaturePrompt   Feature = "prompt"
	FeatureResource Feature = "resource"
	FeatureTemplate Feature = "template" // of the URIs of resources
)

// URI returns the URI of the resource, or the template, that the call names, as its server
// has it: the client may know it by another.
func (c *Call) URI(t *Tool) string {
	switch {
	case t.Feature == FeatureResource, c.Action == Complete:
		return t.Local
	case t.URI != "":
		return t.URI
	default:
		return c.Name
	}
}

// Subject names what the query is about: the qualified name of a tool or of a
// prompt, the URI of a resource as its server has it, or what the call names of a
// template.
func (q Query) Subject() string {
	switch q.Tool.Feature {
	case FeatureResource, FeatureTemplate:
		if q.Call == nil {
			return q.Tool.Local
		}
		return q.Call.URI(q.Tool)
	default:
		return q.Tool.Name.String()
	}
}

// qualified returns the name of a tool; "" of what is none.
func (t *Tool) qualified() string {
	if t.Feature != FeatureTool {
		return ""
	}
	return t.Name.String()
}
