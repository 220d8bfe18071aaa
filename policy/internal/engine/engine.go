package engine

import (
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/panicked"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
)

// A Config is what an [Engine] is made of.
type Config struct {
	Compiler  *ast.Compiler
	Written   map[string]*ast.Module // by file, as parsed
	Packs     map[string]*ast.Module // the packs' of these
	Store     storage.Store
	Functions func(*rego.Rego) // that rules have besides OPA's
	Print     io.Writer        // gets what rules print; nil drops it
	Inputs    *input.Builder

	Timeout  time.Duration
	Revision string
	// Granting says whether the pack grants is on, and Granted are those whom grants name.
	Granting bool
	Granted  []string
	// Every is a label for each text in the policy: what a session counts as
	// having that could not be kept. Nil if the policy computes labels.
	Every gate.Labels
}

// An Engine decides by one compiled policy. It is immutable, and used from several goroutines.
type Engine struct {
	Config
	Wall time.Duration // after which a decision is overdue, however few steps it took

	decision rego.PreparedEvalQuery
	deny     rego.PreparedEvalQuery // the set alone
	listing  *listing
	persons  *persons
	options  []func(*rego.Rego)

	keys      *recent.Cache[*gate.Principal, principalKey]
	decisions *recent.Cache[pairing, specialised]
}

var _ gate.Authorizer = (*Engine)(nil)

// pairing is what decisions and verdicts are kept for. Principals that policies cannot
// tell apart are one; tools are immutable, so they are known by their address.
type pairing struct {
	who  principalKey
	tool *gate.Tool
}

// principalKey is a hash of all that policies see of a principal.
type principalKey [sha256.Size]byte

// Of returns what is behind an engine of package policy, which sets it. The packages below policy
// look into engines by it; in a method of the public type, other modules would see it.
var Of func(policyEngine any) *Engine

// with returns the options of the engine's queries, and others.
func (e *Engine) with(o ...func(*rego.Rego)) []func(*rego.Rego) {
	return append(e.options[:len(e.options):len(e.options)], o...)
}

// WrittenBody returns the body of a rule before it was compiled.
func (e *Engine) WrittenBody(r *ast.Rule) ast.Body {
	m := e.Written[r.Location.File]
	if m == nil {
		return nil
	}
	for _, w := range m.Rules {
		if w.Location.Offset == r.Location.Offset {
			return w.Body
		}
	}
	return nil
}

// Recover turns a panic into an error. It is deferred.
func Recover(err *error, undo func()) {
	if v := recover(); v != nil {
		undo()
		*err = fmt.Errorf("policy: %w", panicked.Error(v))
	}
}
