package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/wasmgate/wasmgate/policies"
	"github.com/wasmgate/wasmgate/policy/internal/archive"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// Options configures an [Engine].
type Options struct {
	// Packs names the built-in packs. Nil means the pack grants; an empty list
	// means none.
	Packs []string
	// Grants are what the pack grants allows, and data.grants to all rules.
	Grants []Grant
	// Labels say what tools are; see [Label].
	Labels []Label
	// RateLimits are what the pack ratelimit holds calls to, and data.ratelimit to all
	// rules.
	RateLimits []RateLimit
	// Timeout bounds one decision, by steps of evaluation of a microsecond each: 50 ms are
	// 50,000 steps. One that takes ten times as long on the clock fails with
	// [gate.ErrOverdue]. Zero means 50 ms; negative is an error.
	Timeout time.Duration
	// Bundles are policies and data that come as a whole. Their names differ, and
	// no two have the same roots, but for wasmgate, to whose sets all rules add.
	Bundles []*Bundle
	// Data is data to all rules, as data.NAME: values that marshal to JSON, by names that neither
	// a bundle nor the gateway has. It is copied, and part of the revision; nil is none.
	Data map[string]any
	// Print gets what print() in rules says, each on a line; nil drops it.
	Print io.Writer
}

const defaultTimeout = 50 * time.Millisecond

// packGrants is the pack that is on by default, and the one that makes the
// command grant a remedy.
const packGrants = "grants"

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
	var granted []string
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

// source is all that the user has written, and the packs.
type source struct {
	rules, tests         map[string]*ast.Module // the user's, and the packs' rules
	packRules, packTests map[string]*ast.Module
	texts                map[string][]byte // of rules
	bundles              []loadedBundle
	given                map[string]any // by the program, as JSON has it
	capabilities         *ast.Capabilities
	prints               bool // rules may print
	// Of rules, once they are compiled: see failures.
	doubts   []Problem
	compared []fields.Comparison
}

// read finds and parses all modules. It completes o.
func read(fsys fs.FS, o *Options) (*source, []Problem, error) {
	if o.Timeout < 0 {
		return nil, nil, fmt.Errorf("policy timeout %v is negative", o.Timeout)
	}
	if o.Packs == nil {
		o.Packs = []string{packGrants}
	}
	src := &source{
		rules: map[string]*ast.Module{}, tests: map[string]*ast.Module{},
		packRules: map[string]*ast.Module{}, packTests: map[string]*ast.Module{},
		texts: map[string][]byte{}, capabilities: capabilities(), prints: o.Print != nil,
	}
	var problems []Problem
	for _, e := range slices.Concat(CheckGrants(o.Grants), CheckRateLimits(o.RateLimits), CheckLabels(o.Labels)) {
		problems = append(problems, Problem{Message: e.Error()})
	}
	for _, name := range append([]string{"decision"}, o.Packs...) {
		found, err := src.readPack(name)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, found...)
	}
	if fsys != nil {
		found, err := src.readTree(fsys)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, found...)
	}
	problems = append(problems, src.addBundles(o.Bundles)...)
	return src, append(problems, src.addData(o.Data)...), nil
}

// packFolder is where packs are in messages and reports: see [engine.PackFolder].
const packFolder = engine.PackFolder

func (s *source) readPack(name string) ([]Problem, error) {
	text, tests, err := policies.Pack(name)
	if err != nil {
		return nil, fmt.Errorf("there is no policy pack %q; the packs are %s", name, strings.Join(Packs(), ", "))
	}
	problems := s.parse(packFolder+name+".rego", text, s.packRules)
	return append(problems, s.parse(packFolder+name+"_test.rego", tests, s.packTests)...), nil
}

// Packs returns the names of the built-in packs, sorted.
func Packs() []string { return policies.Packs() }

func (s *source) readTree(fsys fs.FS) ([]Problem, error) {
	var problems []Problem
	files := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" {
			return err
		}
		if files++; files > archive.MaxFiles {
			return fmt.Errorf("more than %d .rego files", archive.MaxFiles)
		}
		text, err := readFile(fsys, name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "_test.rego") {
			problems = append(problems, s.parse(name, text, s.tests)...)
		} else {
			problems = append(problems, s.parse(name, text, s.rules)...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	return problems, nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, archive.MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > archive.MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, archive.MaxFile)
	}
	return text, nil
}

// parse adds a module to those it belongs to.
func (s *source) parse(name string, text []byte, to map[string]*ast.Module) []Problem {
	m, err := ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{
		RegoVersion: ast.RegoV1, Capabilities: s.capabilities,
		// As if every file imported future.keywords.not: then "deny if not
		// startswith(input.arguments.path, "/srv/")" denies a call without a
		// path too. Without it the rule says nothing about such a call (OPA
		// issue 8387), and the call passes.
		FutureKeywords: []string{"not"},
	})
	if err != nil {
		return problemsOf(name, err)
	}
	own := strings.HasPrefix(name, packFolder)
	if !own {
		if problems := checkOwnership(m); problems != nil {
			return problems
		}
	}
	to[name] = m
	if !strings.HasSuffix(name, "_test.rego") {
		s.texts[name] = text
		s.rules[name] = m
	}
	return nil
}

// revision is a hash of content alone: where the files lie and what they are
// called does not matter to it.
func (s *source) revision(o Options) string {
	hashes := make([]string, 0, len(s.texts)+1)
	for _, text := range s.texts {
		hashes = append(hashes, hash(text))
	}
	slices.Sort(hashes)
	for _, data := range []any{o.Grants, o.Labels, o.RateLimits} {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err) // strings always marshal
		}
		hashes = append(hashes, hash(b))
	}
	if len(s.bundles)+len(s.given) > 0 {
		hashes = append(hashes, hash(s.dataText()))
	}
	return hash([]byte(strings.Join(hashes, "\n")))[:16]
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// compile compiles rules as they are used for decisions.
func (s *source) compile() (*ast.Compiler, []Problem) {
	c := s.compiler().WithStrict(true).WithEnablePrintStatements(s.prints)
	c.Compile(s.rules)
	var problems []Problem
	if problems, s.doubts, s.compared = s.failures(c); problems != nil {
		return nil, problems
	}
	return c, s.conflicts(c)
}

func (s *source) compiler() *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(s.capabilities).
		WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(inputSchemas).
		SetErrorLimit(0)
}

// capabilities are what policies may use: what is a function of its arguments.
// Of what OPA itself calls non-deterministic (the network, the runtime,
// randomness, keys) only the clock remains. The others that are taken away
// parse a language by recursion without a bound (graphql), run templates, or
// compile more Rego.
func capabilities() *ast.Capabilities {
	caps := ast.CapabilitiesForThisVersion()
	caps.AllowNet = []string{}
	caps.Builtins = slices.DeleteFunc(caps.Builtins, func(b *ast.Builtin) bool {
		switch {
		case b.Name == "time.now_ns":
			return false
		case b.Nondeterministic, b.Name == "strings.render_template", b.Name == "rego.parse_module":
			return true
		}
		return strings.HasPrefix(b.Name, "graphql.") || strings.HasPrefix(b.Name, "providers.")
	})
	caps.Builtins = append(caps.Builtins, declared()...)
	return caps
}

// newStore returns a store that holds the data of bundles and of the program, data.grants and
// data.ratelimit, and the option by which the functions of policies are found, with
// the indexes of these two.
func newStore(ctx context.Context, grants []Grant, limits []RateLimit, data map[string]any) (storage.Store, func(*rego.Rego), error) {
	all := map[string]any{}
	for name, list := range map[string]any{"grants": append([]Grant{}, grants...), "ratelimit": append([]RateLimit{}, limits...)} {
		v, err := ast.InterfaceToValue(list)
		if err != nil {
			return nil, nil, err
		}
		if all[name], err = ast.JSON(v); err != nil {
			return nil, nil, err
		}
	}
	maps.Copy(all, data)
	store := inmem.NewFromObjectWithOpts(all, inmem.OptReturnASTValuesOnRead(true))
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer store.Abort(ctx, txn)
	var stored [2]ast.Value
	for i, name := range []string{"grants", "ratelimit"} {
		v, err := store.Read(ctx, txn, storage.Path{name})
		if err != nil {
			return nil, nil, err
		}
		var ok bool
		if stored[i], ok = v.(ast.Value); !ok {
			return nil, nil, errors.New("the store does not keep values of Rego")
		}
	}
	granted, limited := newIndex(grants), newRateIndex(limits)
	functions := []func(*rego.Rego){plainBuiltins, tables.Rates.Over(stored[1], limited, readRateLimits)}
	for _, l := range tables.Grants {
		functions = append(functions, l.Over(stored[0], granted, readGrants))
	}
	return store, func(r *rego.Rego) {
		for _, give := range functions {
			give(r)
		}
	}, nil
}
