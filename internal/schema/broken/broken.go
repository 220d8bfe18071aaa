// Package broken counts the calls that were refused because their arguments break the input
// schemas of tools, so that an operator sees which tools agents call wrongly.
package broken

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Inputs counts refusals by schema. The zero value is ready. Use it from several goroutines.
type Inputs struct {
	mu     sync.Mutex
	byTool map[string]*status.BrokenInput
}

// maxTools bounds for how many tools refusals are counted.
const maxTools = 1000

// Record implements [gate.Recorder].
func (b *Inputs) Record(_ context.Context, rec *gate.Record) error {
	if rec.Event != gate.Done || rec.Code != "refused_"+string(step.ValidateInput) || rec.Tool == nil || rec.Tool.Feature != gate.FeatureTool {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := rec.Tool.Name.String()
	one := b.byTool[name]
	if one == nil {
		if len(b.byTool) == maxTools {
			return nil
		}
		if b.byTool == nil {
			b.byTool = make(map[string]*status.BrokenInput)
		}
		one = &status.BrokenInput{Tool: name}
		b.byTool[name] = one
	}
	one.Calls++
	one.Last = rec.Reason
	return nil
}

// All returns the tools with refused calls, those with the most first.
func (b *Inputs) All() []status.BrokenInput {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []status.BrokenInput
	for _, one := range b.byTool {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b status.BrokenInput) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return all
}
