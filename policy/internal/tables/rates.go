package tables

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// Rates is the function by which the pack ratelimit asks for the rates of a call.
var Rates = Lookup{declare("wasmgate.rates", types.NewArray(nil, types.A), types.S), "(limits, tool, id, roles)", rates}

// rates answers with the rates that hold, in the order of the file.
func rates(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
	tool, ok := asked[0].Value.(ast.String)
	var found []*Entry
	for _, s := range who {
		ix.each(s, "tools", string(tool), func(e *Entry) { found = append(found, e) })
	}
	slices.SortFunc(found, func(a, b *Entry) int { return a.Order - b.Order })
	var all []*ast.Term
	for _, e := range slices.Compact(found) {
		all = append(all, e.Reason)
	}
	return ast.ArrayTerm(all...), ok
}
