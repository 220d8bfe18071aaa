package lock

import "github.com/wasmgate/wasmgate/gate"

// What servers offer. Templates are of resources.
const (
	Tool     Kind = "tool"
	Prompt   Kind = "prompt"
	Template Kind = "template"
)

var (
	toolKind     = kind{Kind: Tool, subject: "definition", meaning: schemas}
	promptKind   = kind{Kind: Prompt, subject: "definition"}
	templateKind = kind{Kind: Template, subject: "definition"}
)

// schemas says what the changes of a tool's schemas mean for calls and results.
func schemas(old, now gate.Doc) []string {
	var m meaning
	m.schema(inputWords, "", old.Get("inputSchema"), now.Get("inputSchema"), 0)
	m.schema(outputWords, "", old.Get("outputSchema"), now.Get("outputSchema"), 0)
	return m.said
}
