// Package operation carries what commands ask of a gateway to the part of it that answers. Each part
// declares its operations by their names and types, and adds to the [Table] of a gateway how it carries
// them out. A command has them done by the gateway of its own process, or of another one over the control
// socket: both are a [Gateway].
package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/wasmgate/wasmgate/gate/approval"
)

// A Gateway carries operations out. It may be used concurrently.
type Gateway interface {
	// Ask carries out the operation of a name. Params and result, a pointer, are of its types.
	Ask(ctx context.Context, name string, params, result any) error
}

// None are the parameters, or the result, of an operation that has none.
type None struct{}

// An Operation is something that can be asked of a gateway. Its parameters and its result are JSON.
type Operation[P, R any] struct{ name string }

// New returns the operation of a name, which is its name on the control socket, too.
func New[P, R any](name string) Operation[P, R] { return Operation[P, R]{name} }

// Ask has a gateway carry it out.
func (o Operation[P, R]) Ask(ctx context.Context, g Gateway, params P) (result R, err error) {
	err = g.Ask(ctx, o.name, params, &result)
	return result, err
}

// Add says how it is carried out.
func (o Operation[P, R]) Add(t Table, do func(context.Context, P) (R, error)) {
	t[o.name] = answer{
		typed: func(ctx context.Context, params, result any) (err error) {
			*result.(*R), err = do(ctx, params.(P))
			return err
		},
		raw: func(ctx context.Context, params json.RawMessage) (any, error) {
			var p P
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, fmt.Errorf("read the request: %w", err)
			}
			return do(ctx, p)
		},
	}
}

// AddPlain is [Operation.Add] for what takes no parameters.
func AddPlain[R any](t Table, o Operation[None, R], do func(context.Context) (R, error)) {
	o.Add(t, func(ctx context.Context, _ None) (R, error) { return do(ctx) })
}

// A Table has the operations of a gateway by their names.
type Table map[string]answer

// An answer carries an operation out, with values or with JSON.
type answer struct {
	typed func(ctx context.Context, params, result any) error
	raw   func(ctx context.Context, params json.RawMessage) (any, error)
}

// Ask implements [Gateway].
func (t Table) Ask(ctx context.Context, name string, params, result any) error {
	a, ok := t[name]
	if !ok {
		return unknown(name)
	}
	return a.typed(ctx, params, result)
}

// Handle carries out the operation of a name with parameters in JSON.
func (t Table) Handle(ctx context.Context, name string, params json.RawMessage) (any, error) {
	a, ok := t[name]
	if !ok {
		return nil, unknown(name)
	}
	return a.raw(ctx, params)
}

func unknown(name string) error {
	return fmt.Errorf("the running gateway does not know %q; it may be of another version", name)
}

// ByOperator is who acts through the commands and names no one else: anyone who may open the
// control socket, which is the operator only.
const ByOperator = string(approval.CLI) + ":local"

// A Listener is parameters of an operation that hear what the gateway says while it is carried out.
type Listener interface {
	// Listener returns what hears it; nil if nothing does.
	Listener() func(json.RawMessage)
}

// A MisuseError says that a request names what the configuration does not have, or what it does not
// allow, and what to do about that.
type MisuseError struct{ Reason string }

func (e *MisuseError) Error() string { return e.Reason }

// Misuse returns a [MisuseError].
func Misuse(format string, args ...any) error { return &MisuseError{fmt.Sprintf(format, args...)} }
