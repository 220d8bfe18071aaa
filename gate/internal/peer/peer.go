package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/forms"
)

// MaxBytes bounds a request, and the answer to it. Images go to and fro in sampling.
func MaxBytes(a actions.Action) int {
	if a == actions.Sample {
		return 4 << 20
	}
	return 1 << 20
}

// CheckRequest checks the shape of what a server asks of a client (MCP 2025-11-25,
// client/elicitation and client/sampling). Its error is for the server.
func CheckRequest(a actions.Action, params doc.Doc) error {
	switch {
	case params.Kind() != doc.Object:
		return errors.New("the parameters are not an object")
	case a == actions.Elicit:
		return checkElicit(params)
	case a == actions.Sample && params.Get("messages").Kind() != doc.Array:
		return errors.New("messages is not an array")
	case !actions.IsPeerRequest(a):
		return errors.New("this gateway does not pass this request on to clients")
	}
	return nil
}

func checkElicit(params doc.Doc) error {
	if params.Get("message").Kind() != doc.String {
		return errors.New("message is not a string")
	}
	switch params.Get("mode").Text() {
	case "url":
		if _, ok := forms.Visitable(params.Get("url").Text()); !ok {
			return errors.New("url must be http or https, with a host in ASCII, and without a user")
		}
		return nil
	case "form":
	default:
		if !params.Get("mode").IsZero() {
			return errors.New("mode is neither form nor url")
		}
	}
	properties := params.At("/requestedSchema/properties")
	if properties.Kind() != doc.Object {
		return errors.New("requestedSchema has no properties")
	}
	if keyword := refers(params.Get("requestedSchema"), 0); keyword != "" {
		return fmt.Errorf("requestedSchema has %s, which no form needs", keyword)
	}
	for name, p := range properties.Members() {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, p.Get("type").Text()) {
			return fmt.Errorf("property %.100q of requestedSchema is none that a form can have", name)
		}
	}
	return nil
}

// maxFormDepth bounds how deep the schema of a form is nested: a list of choices in a
// property is four deep.
const maxFormDepth = 16

// refers returns what a schema has that has a validator look elsewhere, "" if nothing
// does: there are clients that a schema which refers to itself brings down. What is
// nested too deep counts as that.
func refers(schema doc.Doc, depth int) string {
	if depth > maxFormDepth {
		return "a schema that is nested too deep"
	}
	for name, v := range schema.Members() {
		if slices.Contains([]string{"$ref", "$dynamicRef", "$recursiveRef"}, name) {
			return name
		}
		if found := refers(v, depth+1); found != "" {
			return found
		}
	}
	for v := range schema.Elements() {
		if found := refers(v, depth+1); found != "" {
			return found
		}
	}
	return ""
}

// Lacks says which capability a client would need for a request and has not declared;
// "" if none is lacking. A client that names no mode of elicitation can fill in forms
// (MCP 2025-11-25, client/elicitation, "Capabilities").
func Lacks(declared doc.Doc, a actions.Action, params doc.Doc) string {
	switch a {
	case actions.ListRoots:
		if declared.Get("roots").Kind() != doc.Object {
			return "roots"
		}
	case actions.Sample:
		s := declared.Get("sampling")
		tools := !params.Get("tools").IsZero() || !params.Get("toolChoice").IsZero()
		switch {
		case s.Kind() != doc.Object:
			return "sampling"
		case tools && s.Get("tools").Kind() != doc.Object:
			return "sampling with tools"
		}
	case actions.Elicit:
		e := declared.Get("elicitation")
		form, link := e.Get("form").Kind() == doc.Object, e.Get("url").Kind() == doc.Object
		switch {
		case e.Kind() != doc.Object:
			return "elicitation"
		case params.Get("mode").Text() == "url" && !link:
			return "elicitation by URL"
		case params.Get("mode").Text() != "url" && !form && link:
			return "elicitation by form"
		}
	}
	return ""
}

// CheckAnswer checks the shape of what a client answers to a request of a server.
func CheckAnswer(a actions.Action, answer doc.Doc) error {
	if answer.Kind() != doc.Object {
		return errors.New("it is not an object")
	}
	switch a {
	case actions.Elicit:
		return checkElicited(answer)
	case actions.ListRoots:
		return checkRoots(answer.Get("roots"))
	default:
		content := answer.Get("content")
		switch {
		case answer.Get("role").Kind() != doc.String || answer.Get("model").Kind() != doc.String:
			return errors.New("role or model is not a string")
		case content.Kind() != doc.Object && content.Kind() != doc.Array:
			return errors.New("content is neither an object nor an array")
		}
		for block := range content.Elements() {
			if block.Kind() != doc.Object {
				return errors.New("content has an element that is not an object")
			}
		}
		return nil
	}
}

func checkElicited(answer doc.Doc) error {
	if !slices.Contains([]string{"accept", "decline", "cancel"}, answer.Get("action").Text()) {
		return errors.New("action must be accept, decline or cancel")
	}
	content := answer.Get("content")
	if k := content.Kind(); k != doc.Absent && k != doc.Null && k != doc.Object {
		return errors.New("content is not an object")
	}
	for name, v := range content.Members() {
		switch v.Kind() {
		case doc.String, doc.Number, doc.Bool:
			continue
		case doc.Array:
			if onlyStrings(v) {
				continue
			}
		}
		return fmt.Errorf("the form's value %.100q is not a string, number, boolean or list of strings", name)
	}
	return nil
}

func onlyStrings(list doc.Doc) bool {
	for e := range list.Elements() {
		if e.Kind() != doc.String {
			return false
		}
	}
	return true
}

// OnlyFiles leaves out roots that are no file:// URIs. MCP allows no other scheme, and a server may
// take another for a path.
func OnlyFiles(answer doc.Doc) doc.Doc {
	files, dropped := []byte{'['}, false
	for r := range answer.Get("roots").Elements() {
		if uri := r.Get("uri"); uri.Kind() == doc.String && !strings.HasPrefix(strings.ToLower(uri.Text()), "file://") {
			dropped = true
			continue
		}
		if len(files) > 1 {
			files = append(files, ',')
		}
		files = append(files, r.Raw()...)
	}
	if !dropped {
		return answer
	}
	return answer.With("roots", append(files, ']'))
}

func checkRoots(roots doc.Doc) error {
	if roots.Kind() != doc.Array {
		return errors.New("roots is not an array")
	}
	for r := range roots.Elements() {
		if name := r.Get("name"); r.Get("uri").Kind() != doc.String || !name.IsZero() && name.Kind() != doc.String {
			return errors.New("roots has one without a uri, or with a name that is not a string")
		}
	}
	return nil
}
