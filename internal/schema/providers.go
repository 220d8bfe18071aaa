package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Provider is a provider of models, which restricts the schemas of arguments that it takes.
type Provider string

// The providers, by what they answer to other schemas.
//
//	OpenAI     schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level (langchainjs#9804)
//	           'oneOf' is not permitted, 'allOf' is not permitted (community.openai.com/t/932422, notion-mcp-server#102)
//	           array schema missing items
//	Anthropic  input_schema does not support oneOf, allOf, or anyOf at the top level (claude-code#5319, mcp-sap-docs#51)
//	Gemini     a subset of OpenAPI 3.0's schemas (ai.google.dev/api/caching#Schema): Unknown name "const": Cannot find field (zed#44875)
//	           enum: only allowed for STRING type (9router#380); of other values TYPE_STRING (azure-devops-mcp#145)
//	           when using any_of, it must be the only field set
const (
	OpenAI    Provider = "openai"
	Anthropic Provider = "anthropic"
	Gemini    Provider = "gemini"
)

// ForProvider returns the schema of a tool's arguments as a provider takes it, and what the model has
// to be told in words; "" if that is nothing. The schema allows no less than the declared one, by which
// the arguments are checked. False means that there is no such provider.
func ForProvider(p Provider, declared gate.Doc) (shown gate.Doc, said string, ok bool) {
	if p != OpenAI && p != Anthropic && p != Gemini {
		return gate.Doc{}, "", false
	}
	plain := Normalize(mapped(declared, withAny))
	said = choices(plain)
	shown = ForModels(plain)
	switch p {
	case OpenAI:
		shown = mapped(shown, forOpenAI)
	case Gemini:
		shown = mapped(shown, forGemini)
	}
	return shown, said, true
}

// mapped returns a schema that f has made of another.
func mapped(d gate.Doc, f func(map[string]any) map[string]any) gate.Doc {
	var s map[string]any
	in := json.NewDecoder(bytes.NewReader(d.Raw()))
	in.UseNumber()
	if err := in.Decode(&s); err != nil {
		return d // which is no object
	}
	raw, err := json.Marshal(f(s))
	if err != nil {
		return gate.MustDoc(closed)
	}
	out, err := gate.ParseDoc(raw)
	if err != nil {
		return gate.MustDoc(closed)
	}
	return out
}

// below applies f to the schemas right within one.
func below(s map[string]any, f func(any) any) {
	for name, v := range s {
		switch roles[name] {
		case child, tuple, aside:
			if _, list := v.([]any); !list {
				s[name] = f(v)
				continue
			}
			fallthrough
		case asides:
			if list, ok := v.([]any); ok {
				s[name] = each(list, f)
			}
		case children, asideMap:
			if all, ok := v.(map[string]any); ok {
				of := make(map[string]any, len(all))
				for k, one := range all {
					if of[k] = one; !isList(one) { // of names, in dependencies
						of[k] = f(one)
					}
				}
				s[name] = of
			}
		}
	}
}

func each(list []any, f func(any) any) []any {
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = f(one)
	}
	return out
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// annotations are keywords that constrain nothing.
var annotations = []string{"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}

// withAny writes out that a member of an object, or an item, may be any value, which [Normalize]
// would make an object of.
func withAny(s map[string]any) map[string]any {
	open := func(v any) any {
		one, ok := v.(map[string]any)
		switch {
		case v == true:
			one = map[string]any{}
		case !ok:
			return v
		}
		if one = withAny(one); !slices.ContainsFunc(slices.Collect(maps.Keys(one)), func(k string) bool { return !slices.Contains(annotations, k) }) {
			one["type"] = anyType()
		}
		return one
	}
	for _, name := range []string{"properties", "$defs", "definitions"} {
		if all, ok := s[name].(map[string]any); ok {
			for k, v := range all {
				all[k] = open(v)
			}
		}
	}
	if items, ok := s["items"]; ok && !isList(items) {
		s["items"] = open(items)
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[name].([]any); ok {
			s[name] = each(list, func(v any) any {
				if one, ok := v.(map[string]any); ok {
					return withAny(one)
				}
				return v
			})
		}
	}
	return s
}

func anyType() []any { return []any{"string", "number", "boolean", "object", "array", "null"} }

// choices puts into words which members alternatives at the top want, which no provider takes there.
func choices(top gate.Doc) string {
	var said []string
	for name, how := range map[string]string{"oneOf": "Give exactly one of: ", "anyOf": "Give at least one of: "} {
		var ways []string
		for way := range top.Get(name).Elements() {
			var members []string
			for m := range way.Get("required").Elements() {
				members = append(members, m.Text())
			}
			if len(members) > 0 {
				ways = append(ways, strings.Join(members, " and "))
			}
		}
		if len(ways) > 1 {
			said = append(said, how+strings.Join(ways, "; ")+".")
		}
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

// forOpenAI writes alternatives as anyOf and constants as enum, drops what is not permitted, and gives
// each array a schema for its elements.
func forOpenAI(s map[string]any) map[string]any {
	below(s, whole(forOpenAI))
	for _, name := range []string{"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "patternProperties", "propertyNames", "contains", "minContains", "maxContains", "unevaluatedProperties"} {
		delete(s, name)
	}
	common(s)
	if _, ok := s["items"]; !ok && slices.Contains(typesOf(s), "array") {
		s["items"] = map[string]any{}
	}
	return s
}

// whole is f for the schemas that are objects. true and false are what they are.
func whole(f func(map[string]any) map[string]any) func(any) any {
	return func(v any) any {
		if s, ok := v.(map[string]any); ok {
			return f(s)
		}
		return v
	}
}

// common writes const and oneOf as the words that all take.
func common(s map[string]any) {
	if v, ok := s["const"]; ok {
		delete(s, "const")
		s["enum"] = []any{v}
	}
	if one, ok := s["oneOf"].([]any); ok {
		delete(s, "oneOf")
		if _, both := s["anyOf"]; !both {
			s["anyOf"] = one
		}
	}
}

// typesOf returns the types that a schema names.
func typesOf(s map[string]any) (types []string) {
	list, ok := s["type"].([]any)
	if !ok {
		list = []any{s["type"]}
	}
	for _, t := range list {
		if name, ok := t.(string); ok {
			types = append(types, name)
		}
	}
	return types
}

// ofGemini are the fields of its schemas.
var ofGemini = []string{
	"type", "format", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties",
	"minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf",
}

// formatsOfGemini are those that it knows of.
var formatsOfGemini = []string{"date-time", "enum", "int32", "int64", "float", "double"}

// forGemini returns a schema of one type, which may be null, or one that only has alternatives.
func forGemini(s map[string]any) map[string]any {
	common(s)
	joinWays(s)
	below(s, whole(forGemini))
	enumOfTexts(s)
	maps.DeleteFunc(s, func(name string, _ any) bool { return !slices.Contains(ofGemini, name) })
	if f, ok := s["format"].(string); !ok || !slices.Contains(formatsOfGemini, f) {
		delete(s, "format")
	}
	types := typesOf(s)
	if len(types) == 0 && s["anyOf"] == nil {
		types = impliedTypes(s)
	}
	some := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
	if len(some) < len(types) {
		s["nullable"] = true
	}
	switch {
	case len(some) == 1:
		s["type"] = some[0]
	case len(some) > 1 && s["anyOf"] == nil:
		return alone(s, oneEach(s, some))
	case len(types) > 0 && len(some) == 0:
		s["type"] = "string" // only null
	}
	if ways, ok := s["anyOf"].([]any); ok {
		return alone(s, ways)
	}
	if _, ok := s["items"]; !ok && s["type"] == "array" {
		s["items"] = map[string]any{"type": "string"}
	}
	return s
}

// joinWays joins the alternatives of an object, and the keywords next to them, into one object. For
// other schemas it puts their type into each alternative.
func joinWays(s map[string]any) {
	ways, _ := s["anyOf"].([]any)
	for _, v := range ways {
		way, ok := v.(map[string]any)
		switch {
		case !ok:
		case way["type"] == "null":
			s["nullable"] = true
		case s["type"] != nil && way["type"] == nil && way["enum"] == nil && way["const"] == nil && way["anyOf"] == nil && way["oneOf"] == nil:
			way["type"] = s["type"]
		}
	}
	if s["properties"] != nil {
		alternatives(s, "anyOf")
	}
}

// impliedTypes returns the types of what a schema without one is about.
func impliedTypes(s map[string]any) []string {
	switch {
	case s["properties"] != nil:
		return []string{"object"}
	case s["items"] != nil:
		return []string{"array"}
	}
	return []string{"string", "number", "boolean", "array", "object"}
}

// enumOfTexts keeps an enum if all its values are texts, and puts any other into words.
func enumOfTexts(s map[string]any) {
	values, ok := s["enum"].([]any)
	if !ok {
		return
	}
	texts := slices.DeleteFunc(slices.Clone(values), func(v any) bool { _, text := v.(string); return !text && v != nil })
	if len(texts) < len(values) {
		delete(s, "enum")
		words := make([]string, len(values))
		for i, v := range values {
			b, err := json.Marshal(v)
			if err != nil {
				return // which was JSON
			}
			words[i] = string(b)
		}
		addWords(s, "One of: "+strings.Join(words, ", ")+".")
		if s["type"] == nil {
			s["type"] = typesOfValues(values)
		}
		return
	}
	if texts = slices.DeleteFunc(texts, func(v any) bool { return v == nil }); len(texts) < len(values) {
		s["nullable"] = true
	}
	s["enum"], s["type"] = texts, "string"
}

// typesOfValues returns the types of values that are not all texts.
func typesOfValues(values []any) (types []any) {
	for _, v := range values {
		var t any
		switch v.(type) {
		case nil:
			t = "null"
		case bool:
			t = "boolean"
		case string:
			t = "string"
		case []any:
			t = "array"
		case map[string]any:
			t = "object"
		default:
			t = "number"
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// addWords adds to the description of a schema.
func addWords(s map[string]any, words string) {
	if before, ok := s["description"].(string); ok && before != "" {
		words = before + " " + words
	}
	s["description"] = words
}

// oneEach returns a schema for each type, with what of s is about that type.
func oneEach(s map[string]any, types []string) (ways []any) {
	about := map[string][]string{
		"string": {"format", "enum", "minLength", "maxLength", "pattern"}, "array": {"items", "minItems", "maxItems"},
		"object": {"properties", "required", "minProperties", "maxProperties"}, "number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"},
	}
	for _, t := range types {
		way := map[string]any{"type": t}
		for _, name := range about[t] {
			if v, ok := s[name]; ok {
				way[name] = v
			}
		}
		if _, ok := way["items"]; !ok && t == "array" {
			way["items"] = map[string]any{"type": "string"}
		}
		ways = append(ways, way)
	}
	return ways
}

// alone returns a schema that only has alternatives: each of them repeats the keywords that were next
// to them.
func alone(s map[string]any, ways []any) map[string]any {
	nullable := s["nullable"] == true
	var some []any
	for _, v := range ways {
		way, ok := v.(map[string]any)
		if !ok {
			continue // true or false
		}
		if way["nullable"] == true && len(way) == 2 && way["type"] == "string" {
			nullable = true // null, as forGemini has made it
			continue
		}
		if deeper, ok := way["anyOf"].([]any); ok {
			some = append(some, deeper...)
			continue
		}
		some = append(some, way)
	}
	if len(some) == 0 {
		some = []any{map[string]any{"type": "string"}}
	}
	for _, v := range some {
		way := v.(map[string]any)
		if nullable {
			way["nullable"] = true
		}
		if about, ok := s["description"].(string); ok && way["description"] == nil {
			way["description"] = about
		}
	}
	if len(some) == 1 {
		return some[0].(map[string]any)
	}
	return map[string]any{"anyOf": some}
}
