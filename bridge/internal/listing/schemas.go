package listing

import (
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// PromptSchema checks the arguments of a prompt: strings, of the names that it
// declares (MCP 2025-11-25, server/prompts).
type PromptSchema struct{ Declared, required []string }

func newPromptSchema(arguments gate.Doc) PromptSchema {
	var s PromptSchema
	for a := range arguments.Elements() {
		name := a.Get("name").Text()
		s.Declared = append(s.Declared, name)
		if a.Get("required").True() {
			s.required = append(s.required, name)
		}
	}
	return s
}

// Validate implements [gate.Schema].
func (s PromptSchema) Validate(args gate.Doc) error {
	found := notStrings("", args)
	for name := range args.Members() {
		if !slices.Contains(s.Declared, name) {
			found = append(found, doc.Violation{Message: "the prompt does not declare this argument"})
		}
	}
	for _, name := range s.required {
		if args.Get(name).IsZero() {
			found = append(found, doc.Violation{Message: "a required argument of the prompt is missing"})
		}
	}
	return violations(found)
}

// CompletionSchema checks a request for completion: an argument of a prompt or a variable of a
// template, and the known values of the others (MCP 2025-11-25, server/utilities/completion).
type CompletionSchema struct{ Declared []string }

// Validate implements [gate.Schema].
func (s CompletionSchema) Validate(args gate.Doc) error {
	var found doc.Violations
	for name := range args.Members() {
		if name != "argument" && name != "context" {
			found = append(found, doc.Violation{Message: "it has a member that completion/complete does not define"})
		}
	}
	argument := args.Get("argument")
	found = append(found, notStrings("/argument", argument)...)
	if argument.Get("name").IsZero() || argument.Get("value").IsZero() {
		found = append(found, doc.Violation{Pointer: "/argument", Message: "the name or the value is missing"})
	} else if !slices.Contains(s.Declared, argument.Get("name").Text()) {
		found = append(found, doc.Violation{Pointer: "/argument/name", Message: "the prompt or template does not declare this argument"})
	}
	return violations(append(found, notStrings("/context/arguments", args.At("/context/arguments"))...))
}

// noArguments is the schema of reading a resource.
type noArguments struct{}

// Validate implements [gate.Schema].
func (noArguments) Validate(args gate.Doc) error {
	if !mcp.IsEmpty(args) {
		return doc.Violations{{Message: "reading takes no arguments"}}
	}
	return nil
}

// notStrings returns a violation for each member of an object that is no string.
func notStrings(at string, object gate.Doc) (found doc.Violations) {
	for _, v := range object.Members() {
		if v.Kind() != doc.String {
			found = append(found, doc.Violation{Pointer: at, Message: "a value is not a string"})
		}
	}
	return found
}

// violations is nil as an error if there are none.
func violations(v doc.Violations) error {
	if len(v) == 0 {
		return nil
	}
	return v
}
