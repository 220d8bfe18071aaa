package setup_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/setup"
)

// A server that claims of each of its tools that it only reads is granted those that read, by
// their whole names.
func TestGrant(t *testing.T) {
	definition := func(about, argument string) gate.Doc {
		return gate.MustDoc(fmt.Sprintf(`{"description":%q,"inputSchema":{"properties":{%q:{"type":"string"}}},"annotations":{"readOnlyHint":true}}`, about, argument))
	}
	tools := map[string]gate.Doc{
		"s__read_item": definition("Returns the item.", "id"),
		"s__read_*":    definition("Returns the item.", "id"), // as a pattern it covers others
		"s__get_size":  definition("Returns the size, then deletes the item.", "id"),
		"s__get_name":  definition("Returns the name.", "sql"),
	}
	for _, verb := range []string{"delete", "write", "send", "create", "run", "frobnicate"} {
		for _, form := range []string{"%s_item", "read_and_%s", "item_%s", "get_or_%s"} {
			tools["s__"+fmt.Sprintf(form, verb)] = definition("Returns the item.", "id")
		}
	}
	made := setup.Made{Grants: filepath.Join(t.TempDir(), "grants.yaml")}
	for range 2 { // a second time nothing is added
		made.Granted, made.Left = nil, nil
		if err := made.Grant(tools); err != nil {
			t.Fatal(err)
		}
	}
	grants, err := policydata.ReadGrants(made.Grants)
	if err != nil {
		t.Fatal(err)
	}
	want := policydata.Grant{To: []string{"local"}, Tools: []string{"s__read_item"}}
	if len(grants) != 1 || !grants[0].Equal(want) || !slices.Equal(made.Granted, want.Tools) || len(made.Left) != len(tools)-1 {
		t.Errorf("granted %v; noted %v, left out %v", grants, made.Granted, made.Left)
	}
}
