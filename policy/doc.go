// Package policy decides calls by Rego.
//
// [Load] compiles the built-in packs, the user's files and the grants into an
// [Engine], which is immutable and a [gate.Authorizer]. A policy that changes is
// another engine. What rules look like, and what they see, is in docs/explanation/policy.md.
//
// Whatever goes wrong denies: an error in a built-in function, a decision of another
// shape, an obligation that is not understood, a panic, a policy that takes more steps
// than its timeout allows. Policies reach no network, no environment and no randomness.
//
// The package is the promised surface of internal/policy, which also tests, explains,
// replays and packs policies for the program.
package policy

import (
	"context"
	"io/fs"

	"github.com/wasmgate/wasmgate/internal/policy"
)

// An Engine is a compiled policy.
type Engine = policy.Engine

// Options say what a policy consists of beside its files.
type Options = policy.Options

// A Grant lets principals use what its patterns name, a Label says of tools what they may
// cause, and a RateLimit bounds how often they are called.
type (
	Grant     = policy.Grant
	Label     = policy.Label
	RateLimit = policy.RateLimit
)

// A CompileError lists the problems of a policy's files.
type (
	CompileError = policy.CompileError
	Problem      = policy.Problem
)

// Load compiles a policy of the files in fsys, which may be nil, and of the options.
func Load(ctx context.Context, fsys fs.FS, o Options) (*Engine, error) {
	return policy.Load(ctx, fsys, o)
}

// Check returns what is wrong with a policy, and what in it will never do what it seems to.
func Check(fsys fs.FS, o Options) ([]Problem, error) { return policy.Check(fsys, o) }
