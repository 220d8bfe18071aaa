package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A Report describes what a module is, what it wishes for, and how it will be run.
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
	// Note is what else the operator should know; "" if there is nothing.
	Note string `json:"note,omitempty"`
	// Memory is how many bytes an instance begins with.
	Memory int64 `json:"memory"`

	// Problems are why the module does not load as it is, and what it would take; then
	// what is known of it after that is not told.
	Problems []string `json:"problems,omitempty"`
	// NoManifest says that it would with a manifest.
	NoManifest bool `json:"no_manifest,omitempty"`
}

// Inspect reports on any module, as it would be with everything granted that it imports. It
// compiles the module, and runs as much of its code as [Runtime.Compile] does. If the module cannot
// be loaded, the report has the reason, and as much else as can be found out.
func Inspect(ctx context.Context, r *Runtime, wasm []byte, cfg ModuleConfig) (Report, error) {
	sum := sha256.Sum256(wasm)
	report := Report{SHA256: hex.EncodeToString(sum[:]), Size: len(wasm)}
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		report.Problems = r.refusal(nil, err)
		return report, nil
	}
	report.Imports = r.needed(decoded.Imports)
	manifest, err := choose(cfg.Manifest, decoded.Manifest)
	bare := errors.Is(err, errNoManifest)
	if err != nil && !bare {
		report.Problems = r.refusal(decoded, err)
		return report, nil
	}
	cfg.Grants.HTTP, cfg.Grants.KV = true, true
	m, err := r.Compile(ctx, wasm, cfg)
	if bare && errors.Is(err, errNoManifest) { // with one, it is this
		cfg.Manifest = &Manifest{Tools: []Tool{{Name: "tool", InputSchema: []byte("{}")}}}
		m, err = r.Compile(ctx, wasm, cfg)
	}
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err != nil {
		report.Problems = r.refusal(decoded, err)
		return report, nil
	}
	defer m.Close(ctx)
	report.ABI, report.Wants, report.Limits, report.Isolation = string(m.kind), manifest.Wants, m.limits, m.isolation
	report.Snapshot, report.Instance, report.Note, report.Memory = m.point, m.instanceWords(), m.note, m.minMemory
	if m.standbys != nil {
		report.Snapshot = SnapshotInput
	}
	if report.Tools = m.tools; cfg.Manifest != nil && bare {
		report.Tools, report.NoManifest, report.Problems = nil, true, []string{needsManifest}
	}
	return report, nil
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

// A Needed is what a module imports. Grant names the grants without which it does
// not load.
type Needed struct {
	Module    string   `json:"module"`
	Functions []string `json:"functions"`
	Grant     []string `json:"grant,omitempty"`
	// Missing are those that are not here, whatever is granted.
	Missing []string `json:"missing,omitempty"`
}

func (r *Runtime) needed(imports []rewrite.Import) []Needed {
	var all []Needed
	for _, in := range imports {
		i := slices.IndexFunc(all, func(n Needed) bool { return n.Module == in.Module })
		if i < 0 {
			i = len(all)
			all = append(all, Needed{Module: in.Module})
		}
		all[i].Functions = append(all[i].Functions, in.Name)
		if r.host.missing(in) {
			all[i].Missing = append(all[i].Missing, in.Name)
		} else if grant := in.Name; in.Module == hostModule && !grantable[in.Name](Grants{}) {
			all[i].Grant = append(all[i].Grant, grant)
		}
	}
	slices.SortFunc(all, func(a, b Needed) int { return strings.Compare(a.Module, b.Module) })
	return all
}
