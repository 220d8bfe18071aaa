package listing

import (
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// MaxMethods bounds the methods of one server.
const MaxMethods = 64

// CheckMethods refuses methods that a server cannot have.
func CheckMethods(methods []string) error {
	if len(methods) > MaxMethods {
		return fmt.Errorf("the server has %d methods; at most %d are allowed", len(methods), MaxMethods)
	}
	for i, name := range methods {
		if err := actions.CheckMethod(name); err != nil {
			return fmt.Errorf("method %.200q %w", name, err)
		}
		if slices.Contains(methods[:i], name) {
			return fmt.Errorf("method %s is listed twice", name)
		}
	}
	return nil
}

// NewMethods returns what stands for the methods of a server that MCP does not have on the
// way through the gate. No server lists them, so that they are what the configuration says.
func NewMethods(server string, o options.Tools, methods []string) []*gate.Tool {
	all := make([]*gate.Tool, len(methods))
	for i, method := range methods {
		t := newFeature(gate.FeatureMethod, gate.ToolName{Server: server, Tool: method}, gate.MustDoc(string(mcp.MustJSON(map[string]string{"name": method}))))
		t.Groups, t.Login, t.Offered, t.Input = groupsOf(o.Groups, t.Name), o.Login, t.Name.String(), methodParams{}
		all[i] = t
	}
	return all
}

// methodParams is the schema of the parameters of an unknown method.
type methodParams struct{}

// Validate implements [gate.Schema].
func (methodParams) Validate(params gate.Doc) error {
	if !params.Get("_meta").IsZero() { // which says what holds between two who speak MCP
		return doc.Violations{{Pointer: "/_meta", Message: "is not part of the arguments"}}
	}
	return nil
}
