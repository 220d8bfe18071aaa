package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policies"
	"github.com/wasmgate/wasmgate/policy/internal/archive"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

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

func (s *source) readPack(name string) ([]Problem, error) {
	text, tests, err := policies.Pack(name)
	if err != nil {
		return nil, fmt.Errorf("there is no policy pack %q; the packs are %s", name, strings.Join(policies.Packs(), ", "))
	}
	problems := s.parse(owned.PackFolder+name+".rego", text, s.packRules)
	return append(problems, s.parse(owned.PackFolder+name+"_test.rego", tests, s.packTests)...), nil
}

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
	own := strings.HasPrefix(name, owned.PackFolder)
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
