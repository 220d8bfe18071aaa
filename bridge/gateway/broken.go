package gateway

import (
	"context"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// BrokenInput is how often calls of a tool were refused, since the gateway has started,
// because their arguments break its input schema.
type BrokenInput struct {
	Tool  string `json:"tool"` // qualified
	Calls int    `json:"calls"`
	Last  string `json:"last"` // what was wrong the last time
}

// brokenInputs counts refusals by schema. The zero value is ready.
type brokenInputs struct {
	mu     sync.Mutex
	byTool map[string]*BrokenInput
}

// maxBroken bounds the tools of which refusals are counted.
const maxBroken = 1000

// Record implements [gate.Recorder].
func (b *brokenInputs) Record(_ context.Context, rec *gate.Record) error {
	if rec.Event != gate.Done || rec.Code != "refused_"+string(gate.StepValidateInput) || rec.Tool == nil || rec.Tool.Feature != gate.FeatureTool {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := rec.Tool.Name.String()
	one := b.byTool[name]
	if one == nil {
		if len(b.byTool) == maxBroken {
			return nil
		}
		if b.byTool == nil {
			b.byTool = make(map[string]*BrokenInput)
		}
		one = &BrokenInput{Tool: name}
		b.byTool[name] = one
	}
	one.Calls++
	one.Last = rec.Reason
	return nil
}
