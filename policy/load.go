package policy

import (
	"cmp"
	"context"
	"io/fs"
	"slices"

	"github.com/wasmgate/wasmgate/policies"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// Load compiles the packs, the bundles and the user's .rego files, which are all in
// the tree of fsys; a nil fsys holds none. Files named *_test.rego are for [Test]
// alone, and other files are not read; but the tests of bundles are run, and have
// to pass. The error is a [*CompileError] if there is something wrong with what the
// files say.
func Load(ctx context.Context, fsys fs.FS, o Options) (*Engine, error) {
	src, problems, err := read(fsys, &o)
	if err != nil {
		return nil, err
	}
	if problems != nil {
		return nil, &CompileError{problems}
	}
	compiler, problems := src.compile()
	if problems != nil {
		return nil, &CompileError{problems}
	}
	if err := src.testBundles(ctx); err != nil {
		return nil, err
	}
	labels := newLabelling(o.Labels)
	inputs := input.NewBuilder(labels.of)
	inputs.Provenance, inputs.Values = src.tracks()
	store, functions, err := newStore(ctx, o.Grants, o.RateLimits, src.data())
	if err != nil {
		return nil, err
	}
	granted := make([]string, 0, len(o.Grants))
	for _, g := range o.Grants {
		granted = append(granted, g.To...)
	}
	e, err := engine.New(ctx, engine.Config{
		Compiler: compiler, Written: src.rules, Packs: src.packRules,
		Store: store, Functions: functions, Print: o.Print, Inputs: inputs,
		Timeout:  cmp.Or(o.Timeout, defaultTimeout),
		Revision: src.revision(o),
		Granting: slices.Contains(o.Packs, packGrants), Granted: granted,
		Every: src.labels(),
	})
	if err != nil {
		return nil, err
	}
	return &Engine{
		engine:   e,
		labels:   labels,
		idle:     idle(compiler),
		doubts:   append(src.doubts, src.noActions()...),
		compared: src.compared,
		idleAsks: src.idleAsks(compiler, o),
	}, nil
}

// Packs returns the names of the built-in packs, sorted.
func Packs() []string { return policies.Packs() }
