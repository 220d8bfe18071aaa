package gate

// Pins knows which definitions of tools, prompts, templates, pages and skills are approved. It is called concurrently,
// on the way of each call and for each tool of a listing, and must answer at once.
type Pins interface {
	// Check returns nil if the definition of t, which Digest identifies, may be offered and called,
	// and otherwise why not, for the operator. If the error is an [*Unpinned], it has the text for
	// the client, and what would help.
	Check(t *Tool) error
}

// Unpinned says that a definition is not approved: it is new, or has changed, or
// the server that declares it has.
type Unpinned struct {
	Reason string // safe to show to a client
	Remedy string // the command by which the operator looks at it
	Err    error  // cause, for the operator; may be nil
}

// Error returns the text for the operator: the reason, and the cause.
func (e *Unpinned) Error() string {
	if e.Err != nil {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

// Unwrap returns the cause.
func (e *Unpinned) Unwrap() error { return e.Err }

// check returns why a tool may be neither offered nor called, or nil.
func (p *Parts) check(t *Tool) error {
	switch {
	case t.Quarantine != "":
		return &Unpinned{Reason: t.Quarantine}
	case t.Page != nil && p.Pins == nil && !t.Page.Usable:
		return &Unpinned{Reason: "no page of " + t.Name.Server + " can be approved, because nothing is pinned here"}
	case p.Pins == nil, !t.Feature.pinned() && t.Page == nil && t.Skill == nil:
		return nil
	}
	return p.Pins.Check(t)
}

// pinned reports whether definitions of the feature are held against the pins. Resources
// come and go with what they are of, unless they are pages, and methods have no definition.
func (f Feature) pinned() bool {
	return f == FeatureTool || f == FeaturePrompt || f == FeatureTemplate || f == FeatureSkill
}

// approved returns those of the tools whose definitions are.
func (p *Parts) approved(tools []*Tool) []*Tool {
	kept := make([]*Tool, 0, len(tools))
	for _, t := range tools {
		if p.check(t) == nil {
			kept = append(kept, t)
		}
	}
	return kept
}
