package gate

import "context"

// The rules of findings in arguments that have to do with the schema.
const (
	ruleCoerced = "input/coerced" // was changed to what the schema says
	ruleInput   = "schema/input"  // break it, and passed
)

// coerce turns the arguments of a call into what the schema of its tool says, where that
// loses nothing and the caller may know of the tool. Everything after it, the record
// included, has to do with what came of that.
func (w *way) coerce(ctx context.Context, c *Call, t *Tool) error {
	schema, ok := t.Input.(Coercer)
	if mode := w.inputMode(t); !ok || t.Feature != FeatureTool || mode == enforceInput || mode == warnInput {
		return nil
	}
	args, changed := schema.Coerce(c.Args)
	if len(changed) == 0 {
		return nil
	}
	visible, err := w.Authorizer.Visible(ctx, c.Who, []*Tool{t})
	if err != nil {
		return w.fail(ctx, undecidable, err)
	}
	if len(visible) != 1 || !visible[0] {
		return nil
	}
	c.Args = args
	for _, at := range changed {
		w.found(Finding{Rule: ruleCoerced, At: inArguments + cut(at, maxPointer), Count: 1, Removed: true})
	}
	return nil
}
