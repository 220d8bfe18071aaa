package sandbox

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
)

// Limits bound one call. Zero fields mean the defaults named here; negative
// ones are an error.
type Limits struct {
	// Timeout is the wall time of a call. Zero means 5 s.
	Timeout time.Duration
	// Fuel is how many instructions the guest may execute; package rewrite says
	// how they are counted. Zero means 10^14, which takes any guest a quarter
	// of an hour or more: unless Fuel is set, Timeout ends a call.
	Fuel uint64
	// Memory is the size in bytes to which the guest's linear memory may grow,
	// rounded down to whole WASM pages of 64 KiB. Zero means 64 MiB; 4 GiB is
	// the most there can be.
	Memory int64
	// Stack is the size in bytes to which the engine's stack may grow, on which
	// guests recur. It is looked at from time to time: some MiB more can pass.
	// Zero means 8 MiB; the engine itself ends at 50 MiB.
	Stack int64
	// Output is the size in bytes of what the tool returns. Zero means 1 MiB.
	Output int64
	// Log is how many bytes of what the guest writes to its log and to stderr
	// are kept; the rest is dropped. Zero means 16 KiB.
	Log int64
	// HostCalls is how many HTTP requests, values and files the guest may ask
	// for. Zero means 2,000.
	HostCalls int
	// Files is how many bytes the module may have added to each granted folder, over
	// all calls; a name counts 4096, and what it removes counts no more. Zero means
	// 64 MiB.
	Files int64
	// Concurrent is how many calls of the module are under way at once; further ones
	// wait. Zero means a quarter of what the runtime allows. Per call it means nothing.
	Concurrent int
}

const maxMemory = 65536 * image.PageSize // what 32-bit addresses reach

func defaultLimits() Limits {
	return Limits{Timeout: 5 * time.Second, Fuel: 1e14, Memory: 64 << 20, Stack: 8 << 20, Output: 1 << 20, Log: 16 << 10, HostCalls: 2_000, Files: 64 << 20}
}

func (l Limits) check() error {
	if l.Timeout < 0 || l.Memory < 0 || l.Stack < 0 || l.Output < 0 || l.Log < 0 || l.HostCalls < 0 || l.Files < 0 || l.Concurrent < 0 {
		return errors.New("sandbox: a limit is negative")
	}
	return nil
}

// or returns l with its zero fields taken from fallback.
func (l Limits) or(fallback Limits) (Limits, error) {
	if err := l.check(); err != nil {
		return l, err
	}
	return Limits{
		Timeout:    cmp.Or(l.Timeout, fallback.Timeout),
		Fuel:       min(cmp.Or(l.Fuel, fallback.Fuel), math.MaxInt64),
		Memory:     min(cmp.Or(l.Memory, fallback.Memory), maxMemory) / image.PageSize * image.PageSize,
		Stack:      cmp.Or(l.Stack, fallback.Stack),
		Output:     cmp.Or(l.Output, fallback.Output),
		Log:        cmp.Or(l.Log, fallback.Log),
		HostCalls:  cmp.Or(l.HostCalls, fallback.HostCalls),
		Files:      cmp.Or(l.Files, fallback.Files),
		Concurrent: cmp.Or(l.Concurrent, fallback.Concurrent),
	}, nil
}

// narrowed returns l where it is stricter than most, and else most.
func (l Limits) narrowed(most Limits) (Limits, error) {
	full, err := l.or(most)
	if err != nil {
		return l, err
	}
	return Limits{
		Timeout:    min(full.Timeout, most.Timeout),
		Fuel:       min(full.Fuel, most.Fuel),
		Memory:     min(full.Memory, most.Memory),
		Stack:      min(full.Stack, most.Stack),
		Output:     min(full.Output, most.Output),
		Log:        min(full.Log, most.Log),
		HostCalls:  min(full.HostCalls, most.HostCalls),
		Files:      min(full.Files, most.Files),
		Concurrent: most.Concurrent,
	}, nil
}
