package audit

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// hide takes out of the texts and documents of an entry what must not be in a
// log. What others have chosen the words of is a text.
func (e *Entry) hide(r *gate.Record, hide func(string) string) error {
	for _, s := range []*string{&e.Error, &e.Tool, &e.Remedy, &e.Approval.Note, &e.Client.Name, &e.Client.Version} {
		*s = hide(*s)
	}
	if len(e.Reasons) > 0 {
		e.Reasons = slices.Clone(e.Reasons) // the decision's own
		for i, s := range e.Reasons {
			e.Reasons[i] = hide(s)
		}
	}
	if e.Arguments == nil && e.Result == nil {
		return nil
	}
	args, err := hidden(r.Call.Args, hide)
	if err != nil {
		return err
	}
	result, err := hidden(r.Result, hide)
	e.Arguments, e.Result = args.Raw(), result.Raw()
	return err
}

func hidden(d gate.Doc, hide func(string) string) (gate.Doc, error) {
	return d.MapStrings(func(_ gate.Leaf, s string) string { return hide(s) })
}
