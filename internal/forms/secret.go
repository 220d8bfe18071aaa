package forms

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/forms/internal/words"
)

// AsksSecret reports whether a server asks a person for what is a secret: by a form
// into which a password, a key, a token, a PIN, the number of a card or the like is to
// be typed, as far as the words of the form say so; or by a URL to which what the
// person gives would go in clear text. It is false of other actions. A form is what
// the server says it is: one that asks for a secret in other words is not noticed.
//
// Policies see it as input.request.secret.
func AsksSecret(a actions.Action, params doc.Doc) bool {
	if a != actions.Elicit {
		return false
	}
	if params.Get("mode").Text() == "url" {
		u, ok := Visitable(params.Get("url").Text())
		return !ok || u.Scheme != "https" && !loopback(u)
	}
	typed := false
	for name, p := range params.At("/requestedSchema/properties").Members() {
		if chosen(p) {
			continue // nothing is typed into it
		}
		typed = true
		if p.Get("writeOnly").True() || words.Property(name) {
			return true
		}
		asks := words.Asked
		if n := p.Get("type").Text(); n == "integer" || n == "number" {
			asks = func(text string) bool { return words.Asked(words.Uncounted(text)) }
		}
		if asks(name) && !words.Describes(name) || asks(words.Unwanted(p.Get("description").Text())) || asks(wordsUnder(p.Get("items"))) {
			return true
		}
		for _, said := range []string{"title", "format", "default", "pattern"} {
			if asks(p.Get(said).Text()) {
				return true
			}
		}
	}
	return typed && (words.Asked(params.Get("message").Text()) ||
		words.Asked(params.At("/requestedSchema/title").Text()) || words.Asked(params.At("/requestedSchema/description").Text()))
}

// chosen reports whether the value of a property is picked, and not typed. A list of
// choices without any is none: a client that knows no such list lets the person type.
func chosen(property doc.Doc) bool {
	options := property
	switch property.Get("type").Text() {
	case "boolean":
		return true
	case "array":
		options = property.Get("items")
	}
	if options.Get("enum").Kind() == doc.Array {
		return someAndAll(options.Get("enum"), func(choice doc.Doc) bool { return choice.Kind() == doc.String || choice.Kind() == doc.Number })
	}
	isConst := func(choice doc.Doc) bool {
		return choice.Get("const").Kind() == doc.String || choice.Get("const").Kind() == doc.Number
	}
	return someAndAll(options.Get("oneOf"), isConst) || someAndAll(options.Get("anyOf"), isConst)
}

// someAndAll reports whether a list has elements, which are all as they are to be.
func someAndAll(list doc.Doc, be func(doc.Doc) bool) bool {
	some := false
	for e := range list.Elements() {
		if some = be(e); !some {
			return false
		}
	}
	return some
}

// wordsUnder returns what the schema of a list's elements says of them.
func wordsUnder(items doc.Doc) string {
	said := make([]string, 0, 4)
	for _, name := range []string{"title", "description", "format", "default"} {
		said = append(said, items.Get(name).Text())
	}
	return strings.Join(said, "\n")
}
