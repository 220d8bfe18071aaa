package gate

import (
	"context"
	"fmt"
	"math"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// invoke has the upstream carry out the call, within the time that the decision leaves
// it.
func (w *way) invoke(ctx context.Context, p Permit) (res Result, err error) {
	w.next(step.Invoke)
	defer func(ctx context.Context) {
		rerr := p.of.end(ctx)
		w.rec.Upstream = p.of.used.Load()
		w.rec.HostCalls, w.rec.Relayed = p.of.hostCalls.Load(), p.of.relayed()
		if rerr != nil {
			res, err = Result{}, w.unrecorded(rerr, err)
		}
	}(ctx)
	if timeout := p.of.duty.timeout; timeout < math.MaxInt64 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	res, err = w.Upstream.Invoke(ctx, p)
	w.rec.Usage = res.Usage
	if err != nil {
		_, _ = Code(err), err.Error() // a nil pointer in err panics here, where that is caught
		return Result{}, err
	}
	res.IsError = res.Doc.Get("isError").True() // what the client will read
	if res.Doc.Kind() != doc.Object {
		return Result{}, fmt.Errorf("%s: the result is not a JSON object", p.of.tool.Name)
	}
	return res, nil
}
