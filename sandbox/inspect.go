package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/image"
	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

// A Report tells what a module is, what it wishes for, and how it will be run.
type Report struct {
	SHA256  string   `json:"sha256"`
	Size    int      `json:"size"` // bytes
	ABI     string   `json:"abi"`  // command, reactor or extism
	Imports []Needed `json:"imports"`
	Tools   []Tool   `json:"tools"`
	Wants   *Wants   `json:"wants,omitempty"`
	Limits  Limits   `json:"limits"`

	Isolation Isolation `json:"isolation"`
	Snapshot  Snapshot  `json:"snapshot"`
	// Instance says how a call gets its instance, in words, with the reason if
	// it is not the fast way.
	Instance string `json:"instance"`
	// Note is what the operator should know beside that; "" if there is nothing.
	Note string `json:"note,omitempty"`
	// Memory is how many bytes an instance begins with.
	Memory int64 `json:"memory"`
}

// A Needed is what a module imports. Grant names the grant without which it does
// not load; "" if it needs none.
type Needed struct {
	Module    string   `json:"module"`
	Functions []string `json:"functions"`
	Grant     []string `json:"grant,omitempty"`
}

// Inspect reports on a module as it would be with everything granted that it
// imports. It compiles the module, and runs of its code what [Runtime.Compile]
// does, whose error it returns.
func (r *Runtime) Inspect(ctx context.Context, wasm []byte, cfg ModuleConfig) (Report, error) {
	cfg.Grants.HTTP, cfg.Grants.KV = true, true
	m, err := r.Compile(ctx, wasm, cfg)
	if err != nil {
		return Report{}, err
	}
	defer m.Close(ctx)
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		return Report{}, err
	}
	manifest, err := choose(cfg.Manifest, decoded.Manifest)
	if err != nil && !errors.Is(err, errNoManifest) { // a plug-in may have none
		return Report{}, err
	}
	sum := sha256.Sum256(wasm)
	return Report{
		SHA256: hex.EncodeToString(sum[:]), Size: len(wasm), ABI: string(m.kind), Imports: needed(decoded.Imports), Tools: m.tools,
		Wants: manifest.Wants, Limits: m.limits, Isolation: m.isolation, Snapshot: m.point, Instance: m.instanceWords(), Note: m.note, Memory: m.minMemory,
	}, nil
}

func needed(imports []rewrite.Import) []Needed {
	var all []Needed
	for _, in := range imports {
		i := slices.IndexFunc(all, func(n Needed) bool { return n.Module == in.Module })
		if i < 0 {
			i = len(all)
			all = append(all, Needed{Module: in.Module})
		}
		all[i].Functions = append(all[i].Functions, in.Name)
		if grant := in.Name; in.Module == hostModule && !hostFunctions[in.Name].granted(Grants{}) {
			all[i].Grant = append(all[i].Grant, grant)
		}
	}
	slices.SortFunc(all, func(a, b Needed) int { return strings.Compare(a.Module, b.Module) })
	return all
}

// instanceWords says how calls get their instances.
func (m *Module) instanceWords() string {
	switch {
	case m.sealed == nil:
		return "a new instance for each call, because " + m.unfit
	case m.isolation == IsolationInstance:
		return "a new instance for each call, of the snapshot"
	case m.isolation == IsolationSession:
		return "one instance for each session"
	case m.runtime.method == image.Copy:
		return "pooled; memory and globals are put back after each call, by copying all memory: this system does not tell what was written"
	}
	return "pooled; memory and globals are put back after each call"
}
