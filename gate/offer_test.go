package gate_test

import (
	"context"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// offering is an authorizer that offers tools in words of its own.
type offering struct {
	*rig
	definition gate.Doc
}

func (o offering) Offer(context.Context, *gate.Principal, *gate.Tool) gate.Doc { return o.definition }

// A listing shows what the authorizer offers, and changes no tool: calls are
// judged by what the server declared.
func TestToolsAreOfferedAsTheAuthorizerSays(t *testing.T) {
	const declared, narrowed = `{"name":"files__read"}`, `{"name":"files__read","narrowed":true}`
	for name, tt := range map[string]struct {
		offer gate.Doc
		want  string
	}{
		"narrowed":         {gate.MustDoc(narrowed), narrowed},
		"nothing is said":  {gate.Doc{}, declared},
		"no object at all": {gate.MustDoc(`"x"`), declared},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Definition = gate.MustDoc(declared)
			p := r.parts()
			p.Authorizer = offering{r, tt.offer}
			g := newGate(t, p)
			tools, err := g.Tools(t.Context(), gate.Local())
			if err != nil || len(tools) != 1 {
				t.Fatalf("%v, %v", tools, err)
			}
			if got := tools[0].Definition.String(); got != tt.want {
				t.Errorf("offered %s, want %s", got, tt.want)
			}
			if got := r.tool.Definition.String(); got != declared {
				t.Errorf("the tool itself is now %s", got)
			}
		})
	}
}
