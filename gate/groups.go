package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Groups narrow what a client is offered: to what is in at least one of the groups of each list.
// The zero Groups narrow nothing. For the client, everything else does not exist.
type Groups [][]string

// Within returns the groups narrowed further; an empty list narrows nothing. g itself
// stays as it is.
func (g Groups) Within(names []string) Groups {
	if len(names) == 0 {
		return g
	}
	return append(slices.Clip(g), names)
}

// Has reports whether a client that is offered the groups is offered the tool. Tools
// that carry out other calls are in every group: they reach what the client is offered,
// and no more.
func (g Groups) Has(t *Tool) bool {
	if t.Relay {
		return true
	}
	for _, names := range g {
		if !slices.ContainsFunc(names, func(name string) bool { return inGroup(t, name) }) {
			return false
		}
	}
	return true
}

func inGroup(t *Tool, group string) bool {
	if server, ok := strings.CutPrefix(group, ServerGroup); ok {
		return t.Name.Server == server
	}
	return slices.Contains(t.Groups, group)
}

// offered returns those of the tools that are in the principal's groups, to use instead of tools. A
// nil principal gets all of them: no policy shows it any.
func (p *Principal) offered(tools []*Tool) []*Tool {
	if p == nil || len(p.Groups) == 0 {
		return tools
	}
	return slices.DeleteFunc(tools, func(t *Tool) bool { return !p.Groups.Has(t) })
}

// find returns what a call names. A name outside the groups that the client is offered is as
// unknown as one that does not exist.
func (p *Parts) find(ctx context.Context, c *Call) (*Tool, error) {
	t, err := p.Upstream.Lookup(ctx, c.Action, c.Name)
	if err == nil && t == nil {
		err = ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	for _, offered := range []Groups{c.Who.Groups, c.Groups} {
		if !offered.Has(t) {
			return nil, fmt.Errorf("%w to this client, which is offered what is in %s: %s is in %s", ErrUnknown, GroupsText(offered), t.Name, GroupsText(Groups{t.Groups}))
		}
	}
	return t, nil
}
