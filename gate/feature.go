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
