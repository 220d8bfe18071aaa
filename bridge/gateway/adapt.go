package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// A Function is a tool in the form in which agent frameworks take one.
type Function struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
	// Output is the JSON Schema of structured content, in [FunctionOptions.Schema]'s view; nil if the
	// tool declares none.
	Output json.RawMessage
	// Func calls the tool with arguments that are a JSON object; empty is {}. Its error
	// is an [*Error]. It may be called concurrently.
	Func func(ctx context.Context, args json.RawMessage) (Answer, error)
	// Tool is the tool itself: its server, annotations, definition. It is not to be changed.
	Tool *gate.Tool
}

// An Answer is the part of a result that a model reads.
type Answer struct {
	// Text is the result in words, within the budget.
	Text string
	// IsError says that the tool reports its own failure.
	IsError bool
	// Result is the whole of it, as of [Client.CallTool].
	Result gate.Result
}

// A SchemaView is the form in which schemas of arguments are shown. Whatever it is,
// arguments are held against the schema as it was declared.
type SchemaView int

const (
	// Declared is as the gateway offers it to other clients.
	Declared SchemaView = iota
	// Normalized is the small part of JSON Schema that all model providers take: no references and
	// no allOf. At the top it is an object without alternatives, which has the members of all
	// alternatives.
	Normalized
	// Passing is Normalized, in which every object may have further members; see
	// [schema.PassThrough].
	Passing
)

// NormalizeSchema returns a schema of arguments in a view, without any gateway. It takes what servers
// write; the error is that it is no JSON object, or that there is no such view.
func NormalizeSchema(declared json.RawMessage, v SchemaView) (json.RawMessage, error) {
	d, err := object(declared)
	if err != nil {
		return nil, err
	}
	shown, ok := v.of(d)
	if !ok {
		return nil, fmt.Errorf("there is no schema view %d", v)
	}
	return shown.Raw(), nil
}

// SchemaFor returns a schema of arguments in the form that a provider accepts (shown), and in words
// what that form cannot express (said); "" if that is nothing.
func SchemaFor(p Provider, declared json.RawMessage) (shown json.RawMessage, said string, err error) {
	d, err := object(declared)
	if err != nil {
		return nil, "", err
	}
	to, said, ok := schema.ForProvider(schema.Provider(p), d)
	if !ok {
		return nil, "", fmt.Errorf("there are no rules for the schemas of %q", p)
	}
	return to.Raw(), said, nil
}

func object(declared json.RawMessage) (gate.Doc, error) {
	d, err := gate.ParseDoc(slices.Clone(declared))
	if err == nil && d.Kind() != doc.Object {
		err = errors.New("a schema of arguments is an object")
	}
	return d, err
}

// of returns a schema in the view; false if there is no such view.
func (v SchemaView) of(declared gate.Doc) (shown gate.Doc, ok bool) {
	switch v {
	case Declared:
		return declared, true
	case Normalized:
		return schema.ForModels(schema.Normalize(declared)), true
	case Passing:
		return schema.PassThrough(schema.ForModels(schema.Normalize(declared))), true
	}
	return gate.Doc{}, false
}

// A Provider is a provider of models that functions are described to.
type Provider string

// The providers whose rules for schemas are known.
const (
	OpenAI    = Provider(schema.OpenAI)
	Anthropic = Provider(schema.Anthropic)
	Gemini    = Provider(schema.Gemini)
)

// FunctionOptions configure [Client.Functions].
type FunctionOptions struct {
	// Prefix is put before each name.
	Prefix string
	// For has schemas be what a provider takes, whose answer to one that it does not is an error
	// for all tools, and what is lost of them be said in the descriptions. It goes before Schema;
	// "" is none.
	For    Provider
	Schema SchemaView
	// MaxText bounds the text of an answer, in bytes: it is cut at the end of a line
	// where there is one, and says so. Zero means 32 KiB; negative sets no bound.
	MaxText int
	// Structured prefers a result's structured content to its texts.
	Structured bool
}

const (
	defaultText = 32 << 10
	// maxFunctionName is how long a name may be that model providers take.
	maxFunctionName = 64
)

var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Functions returns what [Client.Tools] does, for agent frameworks. A tool that cannot be described
// in this form is an error, an [*Error] of code [SchemaIncompatible]. The functions stay usable
// while tools change: if a tool is gone, its call fails.
func (c *Client) Functions(ctx context.Context, o FunctionOptions) ([]Function, error) {
	if o.MaxText == 0 {
		o.MaxText = defaultText
	}
	tools, err := c.Tools(ctx)
	if err != nil {
		return nil, err
	}
	taken, all := make(map[string]bool, len(tools)), make([]Function, 0, len(tools))
	for _, t := range tools {
		f, err := c.function(t, o)
		if err == nil && taken[f.Name] {
			err = incompatible(t, "with the prefix its name is %s, which another tool has", f.Name)
		}
		if err != nil {
			return nil, err
		}
		taken[f.Name] = true
		all = append(all, f)
	}
	return all, nil
}

func (c *Client) function(t *gate.Tool, o FunctionOptions) (Function, error) {
	name := named(o.Prefix+t.Offered, t.Digest)
	if !functionName.MatchString(name) {
		return Function{}, incompatible(t, "the prefix %q has characters that no name of a function may have: use letters, digits, _ and -", o.Prefix)
	}
	input := t.Definition.Get("inputSchema")
	if input.Kind() != doc.Object {
		return Function{}, incompatible(t, "its input schema is not an object")
	}
	description := t.Definition.Get("description").Text()
	if o.For != "" {
		shown, said, ok := schema.ForProvider(schema.Provider(o.For), input)
		if !ok {
			return Function{}, incompatible(t, "there are no rules for the schemas of %q", o.For)
		}
		input, description = shown, strings.TrimSpace(description+" "+said)
	} else if shown, ok := o.Schema.of(input); ok {
		input = shown
	} else {
		return Function{}, incompatible(t, "there is no schema view %d", o.Schema)
	}
	var output json.RawMessage
	if declared := t.Definition.Get("outputSchema"); declared.Kind() == doc.Object {
		shown, _ := o.Schema.of(declared)
		output = shown.Raw()
	}
	return Function{
		Name: name, Description: description, Schema: input.Raw(), Output: output, Tool: t,
		Func: func(ctx context.Context, args json.RawMessage) (Answer, error) {
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			res, err := c.CallTool(ctx, t.Offered, args)
			if err != nil {
				return Answer{}, err
			}
			return Answer{Text: words(res, o), IsError: res.IsError, Result: res}, nil
		},
	}, nil
}

// named returns a name that is short enough: one that is not ends with hex digits of
// the tool's digest.
func named(name, digest string) string {
	if len(name) <= maxFunctionName {
		return name
	}
	const mark = 6
	return name[:maxFunctionName-mark-1] + "_" + digest[:mark]
}

// words puts a result into words.
func words(res gate.Result, o FunctionOptions) string {
	structured := res.Doc.Get("structuredContent")
	var b strings.Builder
	if o.Structured && !structured.IsZero() {
		b.Write(structured.Raw())
	} else {
		for block := range res.Doc.Get("content").Elements() {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(blockText(block))
		}
		if b.Len() == 0 && !structured.IsZero() {
			b.Write(structured.Raw())
		}
	}
	return cutText(b.String(), o.MaxText)
}

// blockText is a content block in words: what a model cannot read as text is named.
func blockText(block gate.Doc) string {
	switch kind := block.Get("type").Text(); kind {
	case "text":
		return block.Get("text").Text()
	case "image", "audio":
		return fmt.Sprintf("[%s, %s, %d bytes]", kind, block.Get("mimeType").Text(), base64Size(block.Get("data").Text()))
	case "resource_link":
		return fmt.Sprintf("[resource %s]", block.Get("uri").Text())
	case "resource":
		r := block.Get("resource")
		if text := r.Get("text"); text.Kind() == doc.String {
			return fmt.Sprintf("[resource %s]\n%s", r.Get("uri").Text(), text.Text())
		}
		return fmt.Sprintf("[resource %s, %s, %d bytes]", r.Get("uri").Text(), r.Get("mimeType").Text(), base64Size(r.Get("blob").Text()))
	default:
		return fmt.Sprintf("[%s]", kind)
	}
}

// base64Size is how many bytes a text in base64 stands for.
func base64Size(s string) int { return len(strings.TrimRight(s, "=")) * 3 / 4 }

// cutText cuts a text to max bytes, at the end of a line if one ends in the second half, and says
// how much there was. The note does not count towards max.
func cutText(s string, max int) string {
	if max < 0 || len(s) <= max {
		return s
	}
	kept := s[:max]
	for i := len(kept) - 1; i >= 0 && i > len(kept)-utf8.UTFMax; i-- { // not in the middle of a character
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(kept[i:]) {
				kept = kept[:i]
			}
			break
		}
	}
	if at := strings.LastIndexByte(kept, '\n'); at > len(kept)/2 {
		kept = kept[:at]
	}
	return fmt.Sprintf("%s\n[cut: the first %d of %d bytes]", kept, len(kept), len(s))
}
