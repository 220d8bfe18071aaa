package console

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

// The matrix joins grants of one pattern, and says when it does not show all.
func TestGrantMatrix(t *testing.T) {
	all := []config.Grant{
		{To: []string{"ann", "role:dev"}, Tools: []string{"a__*"}, Except: []string{"a__x"}},
		{To: []string{"role:dev"}, Tools: []string{"a__*"}, Servers: []string{"b"}},
	}
	m := matrixOf(all, grantRows(all, nil))
	if !slices.Equal(m.Who, []string{"ann", "role:dev"}) || len(m.What) != 2 || m.Left ||
		!slices.Equal(m.What[0].Cells, []string{"but not a__x", "yes"}) || !slices.Equal(m.What[1].Cells, []string{"", "yes"}) {
		t.Errorf("%+v", m)
	}
	for i := range 300 {
		all = append(all, config.Grant{To: []string{fmt.Sprint("p", i)}, Tools: []string{fmt.Sprint("t", i)}})
	}
	if m := matrixOf(all, grantRows(all, nil)); len(m.Who) != matrixColumns || len(m.What) != matrixRows || !m.Left {
		t.Errorf("%d, %d, %v", len(m.Who), len(m.What), m.Left)
	}
}
