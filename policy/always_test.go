package policy_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// What a grant names under always, the pack approve does not ask about: for those
// whom the grant names, and for nothing that it excepts. It allows nothing.
func TestAlways(t *testing.T) {
	tools := policy.Grant{To: []string{"*"}, Tools: []string{"mail__*"}}
	for name, tt := range map[string]struct {
		grant policy.Grant
		packs []string
		want  gate.Effect
	}{
		"the tool":                {policy.Grant{To: []string{"alice"}, Always: []string{"mail__send"}}, nil, gate.Allow},
		"a pattern":               {policy.Grant{To: []string{"role:dev"}, Always: []string{"mail__*"}}, nil, gate.Allow},
		"another tool":            {policy.Grant{To: []string{"alice"}, Always: []string{"mail__read"}}, nil, gate.Ask},
		"another principal":       {policy.Grant{To: []string{"bob"}, Always: []string{"mail__send"}}, nil, gate.Ask},
		"excepted":                {policy.Grant{To: []string{"alice"}, Always: []string{"mail__*"}, Except: []string{"mail__send"}}, nil, gate.Ask},
		"granted, and not always": {policy.Grant{To: []string{"alice"}, Tools: []string{"mail__send"}, Servers: []string{"mail"}}, nil, gate.Ask},
		"nothing else allows":     {policy.Grant{To: []string{"alice"}, Always: []string{"mail__send"}}, []string{"approve"}, gate.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			packs := tt.packs
			if packs == nil {
				packs = []string{"grants", "approve"}
			}
			e := load(t, nil, policy.Options{Packs: packs, Grants: []policy.Grant{tools, tt.grant}})
			who := &gate.Principal{Owner: gate.Owner{ID: "alice"}, Roles: []string{"dev"}}
			d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who}, Tool: newTool("mail__send")})
			if err != nil || d.Effect != tt.want {
				t.Errorf("effect %q, want %q (%q, error %v)", d.Effect, tt.want, d.Reasons, err)
			}
		})
	}
}
