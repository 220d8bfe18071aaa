package replay

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// Documents returns those of the documents that are kept apart from a log which have a wanted digest;
// nil knows of none.
type Documents func(wanted map[string]bool) (map[string][]byte, error)

// filled returns what gives the records of a log the documents that they have digests of.
func (l Log) filled(ctx context.Context) (func(audit.Entry) audit.Entry, error) {
	if l.Documents == nil {
		return func(e audit.Entry) audit.Entry { return e }, nil
	}
	wanted := make(map[string]bool)
	for e, err := range audit.Read(ctx, l.File, audit.Filter{Since: l.Since}) {
		if err != nil {
			return nil, err
		}
		if len(e.Arguments) == 0 {
			wanted[e.ArgsSHA256] = true
		}
		if len(e.Result) == 0 {
			wanted[e.ResultSHA256] = true
		}
		if l.Most > 0 && len(wanted) > 2*l.Most {
			break
		}
	}
	delete(wanted, "")
	found, err := l.Documents(wanted)
	return func(e audit.Entry) audit.Entry {
		if len(e.Arguments) == 0 {
			e.Arguments = found[e.ArgsSHA256]
		}
		if len(e.Result) == 0 {
			e.Result = found[e.ResultSHA256]
		}
		return e
	}, err
}
