package console

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
)

// The matrix joins grants of one pattern, and says when it does not show all.
func TestGrantMatrix(t *testing.T) {
	all := []policydata.Grant{
		{To: []string{"ann", "role:dev"}, Tools: []string{"a__*"}, Except: []string{"a__x"}},
		{To: []string{"role:dev"}, Tools: []string{"a__*"}, Servers: []string{"b"}},
	}
	m := matrixOf(all, grantRows(all, nil), nil)
	if !slices.Equal(m.Who, []string{"ann", "role:dev"}) || len(m.What) != 2 || m.Left ||
		!slices.Equal(m.What[0].Cells, []string{"but not a__x", "yes"}) || !slices.Equal(m.What[1].Cells, []string{"", "yes"}) {
		t.Errorf("%+v", m)
	}
	for i := range 300 {
		all = append(all, policydata.Grant{To: []string{fmt.Sprint("p", i)}, Tools: []string{fmt.Sprint("t", i)}})
	}
	if m := matrixOf(all, grantRows(all, nil), nil); len(m.Who) != matrixColumns || len(m.What) != matrixRows || !m.Left {
		t.Errorf("%d, %d, %v", len(m.Who), len(m.What), m.Left)
	}
}

// A grant counts the calls of those to whom it is given, and no others.
func TestGrantUse(t *testing.T) {
	used := map[use]int{
		{gate.CallTool, "memory", "memory__read", "", "local", ""}:              3,
		{gate.CallTool, "memory", "memory__read", "", "ann", `["dev","ops"]`}:   5,
		{gate.CallTool, "memory", "memory__drop", "", "ann", `["dev","ops"]`}:   7,
		{gate.CallTool, "memory", "memory__read", "acme", "ann", `["dev"]`}:     11,
		{gate.ReadResource, "memory", "memory__read", "", "local", `["sales"]`}: 13,
	}
	for _, tt := range []struct {
		grant policydata.Grant
		want  int
	}{
		{policydata.Grant{To: []string{"local"}, Tools: []string{"memory__*"}}, 3},
		{policydata.Grant{To: []string{"role:dev"}, Tools: []string{"memory__*"}}, 12},
		{policydata.Grant{To: []string{"role:dev"}, Tools: []string{"memory__*"}, Except: []string{"memory__drop"}}, 5},
		{policydata.Grant{To: []string{"role:sales"}, Tools: []string{"memory__*"}}, 0},
		{policydata.Grant{To: []string{"role:nobody"}, Tools: []string{"memory__*"}}, 0},
		{policydata.Grant{To: []string{"role:acme/dev"}, Tools: []string{"memory__*"}}, 11},
		{policydata.Grant{To: []string{"*"}, Tools: []string{"memory__*"}}, 15},
		{policydata.Grant{To: []string{"local", "ann"}, Servers: []string{"memory"}}, 28},
	} {
		all := []policydata.Grant{tt.grant, tt.grant}
		rows := grantRows(all, used)
		if m := matrixOf(all, rows, used); rows[0].Used != tt.want || m.What[0].Used != tt.want {
			t.Errorf("%v: %d, and %d in the matrix; want %d", tt.grant, rows[0].Used, m.What[0].Used, tt.want)
		}
	}
}
