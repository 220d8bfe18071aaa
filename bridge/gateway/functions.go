package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Func makes a tool of a Go function. In is a struct, or a map with string keys; its
// JSON Schema is the tool's input schema, in which a field's tag jsonschema:"..."
// is its description, and omitempty makes it optional. If Out is a struct or such a
// map, the result is structured content of its schema; anything else is text. An
// error of f is a failure that the tool reports itself, with the error's text, unless
// ctx has ended.
//
// What Go types cannot say of a definition is added by [Define]; groups are a field of what is
// returned. A type that holds itself has no schema here: it is given as JSON, in the Definition of
// a [options.LocalTool].
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error), more ...Definition) (options.LocalTool, error) {
	if f == nil {
		return options.LocalTool{}, fmt.Errorf("tool %s: its function is nil", name)
	}
	input, err := objectSchema[In]()
	if err == nil && input == nil {
		err = fmt.Errorf("%T is neither a struct nor a map with string keys", *new(In))
	}
	if err != nil {
		return options.LocalTool{}, fmt.Errorf("tool %s: input: %w", name, err)
	}
	output, err := objectSchema[Out]()
	if err != nil {
		return options.LocalTool{}, fmt.Errorf("tool %s: output: %w", name, err)
	}
	definition, err := document(struct {
		Name        string             `json:"name"`
		Description string             `json:"description,omitempty"`
		Input       *jsonschema.Schema `json:"inputSchema"`
		Output      *jsonschema.Schema `json:"outputSchema,omitempty"`
	}{name, description, input, output})
	for _, m := range more {
		if err == nil {
			definition, err = m.in(definition)
		}
	}
	if err != nil {
		return options.LocalTool{}, fmt.Errorf("tool %s: %w", name, err)
	}
	return options.LocalTool{
		Definition: definition,
		Call: func(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
			var in In
			if err := json.Unmarshal(c.Args.Raw(), &in); err != nil {
				return failure(err)
			}
			out, err := f(context.WithValue(ctx, callerKey{}, c), in)
			switch {
			case ctx.Err() != nil:
				return gate.Result{}, ctx.Err()
			case err != nil:
				return failure(err)
			}
			return answer(out, output != nil)
		},
	}, nil
}

// A Definition is a part of the definition of a tool of [Func].
type Definition struct {
	pointer string
	value   any
}

// Define puts a value at a JSON Pointer (RFC 6901) into the definition of a tool, over what was
// there: an enum, bounds, a title, annotations.
//
//	gateway.Define("/inputSchema/properties/unit/enum", []string{"celsius", "fahrenheit"})
//	gateway.Define("/annotations", map[string]any{"readOnlyHint": true})
//
// What the value is put into has to be there, so that a misspelt field is an error of [Func].
func Define(pointer string, value any) Definition { return Definition{pointer, value} }

// in returns a definition with the part.
func (d Definition) in(of gate.Doc) (gate.Doc, error) {
	value, err := json.Marshal(d.value)
	if err != nil {
		return of, fmt.Errorf("define %s: %w", d.pointer, err)
	}
	above, name, ok := cutLast(d.pointer)
	for ok && err == nil {
		parent := of
		if above != "" {
			parent = of.At(above)
		}
		if parent.Kind() != doc.Object {
			return of, fmt.Errorf("define %s: the schema has no object at %q", d.pointer, above)
		}
		value = parent.With(name, value).Raw()
		if above == "" {
			return gate.ParseDoc(value)
		}
		above, name, ok = cutLast(above)
	}
	return of, fmt.Errorf("define %s: it must be a JSON Pointer into the definition, such as /inputSchema/properties/unit/enum", d.pointer)
}

// cutLast cuts the last name off a JSON Pointer.
func cutLast(pointer string) (above, name string, ok bool) {
	at := strings.LastIndexByte(pointer, '/')
	if at < 0 {
		return "", "", false
	}
	return pointer[:at], strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[at+1:]), true
}

// WithPrincipal returns the context of requests that a principal sends, for middleware
// that has found out who that is:
//
//	gw.ServeHTTP(w, r.WithContext(gateway.WithPrincipal(r.Context(), who)))
//
// It goes before [Config].Principal and Who. A request that reaches the gateway past the
// middleware is still one of these: let Principal refuse it.
func WithPrincipal(ctx context.Context, who *gate.Principal) context.Context {
	return transport.WithPrincipal(ctx, who)
}

type callerKey struct{}

// Caller returns the principal and the session of the call that a function of [Func] carries out;
// nil of any other context. They must not be changed.
func Caller(ctx context.Context) (*gate.Principal, gate.SessionKey) {
	c, _ := ctx.Value(callerKey{}).(*gate.Call)
	if c == nil {
		return nil, gate.SessionKey{}
	}
	return c.Who, c.Session
}

// objectSchema returns the schema of a type whose values are JSON objects, and nil
// for any other.
func objectSchema[T any]() (*jsonschema.Schema, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, nil
	}
	s, err := jsonschema.For[T](nil)
	if err != nil || s.Type != "object" { // such as a time.Time
		return nil, err
	}
	return s, nil
}

// failure is the result of a tool that reports its own failure.
func failure(err error) (gate.Result, error) {
	doc, derr := document(map[string]any{"content": texts(err.Error()), "isError": true})
	return gate.Result{Doc: doc, IsError: true}, derr
}

// answer is the result of a tool: a string as it is, anything else as JSON.
func answer(out any, structured bool) (gate.Result, error) {
	text, isText := out.(string)
	if !isText {
		b, err := json.Marshal(out)
		if err != nil {
			return failure(err)
		}
		text = string(b)
	}
	if structured && text == "null" {
		text = "{}" // a nil map
	}
	result := map[string]any{"content": texts(text)}
	if structured {
		result["structuredContent"] = json.RawMessage(text)
	}
	doc, err := document(result)
	return gate.Result{Doc: doc}, err
}

func texts(s string) []map[string]string { return []map[string]string{{"type": "text", "text": s}} }

// watched has panics of the program's own functions told to it: clients read that a call failed,
// and no more. A nil log is [slog.Default].
func watched(log *slog.Logger, tools []options.LocalTool) []options.LocalTool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		if t.Call == nil {
			continue // which is an error, of who takes it
		}
		tools[i].Call = func(ctx context.Context, c *gate.Call, p gate.Permit) (gate.Result, error) {
			defer func() {
				if v := recover(); v != nil {
					cmp.Or(log, slog.Default()).LogAttrs(ctx, slog.LevelError, "a function panicked", slog.String("tool", c.Name), slog.String("call", c.ID), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
					panic(v)
				}
			}()
			return t.Call(ctx, c, p)
		}
	}
	return tools
}

// Publish offers Go functions as tools of a server, in addition to those that it has; one of the
// same name is replaced. Clients that are connected are notified. The server may be new, or one of
// Config.Functions, and none that is reached in another way.
func (g *Gateway) Publish(server string, tools ...options.LocalTool) error {
	return g.locals.publish(server, tools...)
}

// Withdraw takes back tools that were published. If none is named, it takes back all of the
// server's, and the server with them. Calls under way go on. It is an error if a tool or the server
// does not exist.
func (g *Gateway) Withdraw(server string, names ...string) error {
	return g.locals.withdraw(server, names...)
}

// document makes the arguments of a call of a value.
func document(v any) (gate.Doc, error) {
	switch v := v.(type) {
	case nil:
		return gate.Doc{}, nil
	case gate.Doc:
		return v, nil
	case json.RawMessage:
		return gate.ParseDoc(slices.Clone(v))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return gate.Doc{}, err
	}
	return gate.ParseDoc(b)
}
