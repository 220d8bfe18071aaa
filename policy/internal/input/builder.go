package input

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
)

// A Builder builds inputs, and keeps the parts that many calls share. Principals and tools are
// immutable, so they are known by their address.
type Builder struct {
	Provenance bool // whether a rule may look at where values came from
	Values     bool // whether one may look at more of values than their sources

	labels     func(*gate.Tool) (provenance.ToolLabels, bool)
	principals *recent.Cache[claimant, *ast.Term]
	tools      *recent.Cache[*gate.Tool, *ast.Term]
}

const (
	keptPrincipals = 512  // half of what is kept; about 2 KiB each
	keptTools      = 2048 // half of what is kept; about 2 KiB each
)

// A query is what is decided on, and what builds its input.
type query struct {
	*Builder
	gate.Query
	met, carried *ast.Term // what sources returns
}

// NewBuilder returns a builder that has labels say what the labels file says of a tool.
func NewBuilder(labels func(*gate.Tool) (provenance.ToolLabels, bool)) *Builder {
	return &Builder{
		labels:     labels,
		principals: recent.New[claimant, *ast.Term](keptPrincipals), tools: recent.New[*gate.Tool, *ast.Term](keptTools),
	}
}

// Principal returns a principal as policies see it if nothing is known of its client.
func Principal(who *gate.Principal) *ast.Term { return principalMembers.term(claimant{Principal: who}) }

// Principal returns what the function of that name does, and keeps it.
func (b *Builder) Principal(who *gate.Principal) *ast.Term {
	return b.principal(claimant{Principal: who})
}

func (b *Builder) principal(c claimant) *ast.Term {
	term, ok := b.principals.Get(c)
	if !ok {
		term = principalMembers.term(c)
		b.principals.Put(c, term)
	}
	return term
}

func (b *Builder) tool(t *gate.Tool) *ast.Term {
	term, ok := b.tools.Get(t)
	if !ok {
		term = toolMembers.term(labelled{t, b.labels})
		b.tools.Put(t, term)
	}
	return term
}
