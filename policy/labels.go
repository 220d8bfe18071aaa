package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// labels returns every label that the rules can ask for: each text
// in them. It returns nil if a rule adds a label that it computes, for then
// there may be others.
func (s *source) labels() gate.Labels {
	names := []string{provenance.Untrusted}
	computed := false
	for _, modules := range []map[string]*ast.Module{s.rules, s.packRules} {
		for _, m := range modules {
			ast.WalkTerms(m, func(t *ast.Term) bool {
				if text, ok := t.Value.(ast.String); ok && text != "" {
					names = append(names, string(text))
				}
				return false
			})
			ast.WalkRules(m, func(r *ast.Rule) bool {
				if string(r.Head.Name) == "labels" && r.Head.Key != nil {
					_, constant := r.Head.Key.Value.(ast.String)
					computed = computed || !constant
				}
				return false
			})
		}
	}
	if computed {
		return nil
	}
	return gate.NewLabels(names...)
}
