package policy

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// testTimeout bounds one test. It is far above what a decision may take, so
// that a slow machine does not fail it.
const testTimeout = 5 * time.Second

// bundleTestTime bounds all tests of one bundle together: a policy waits for them
// to be swapped.
const bundleTestTime = 30 * time.Second

// A TestOutcome is what came of a test.
type TestOutcome string

// The outcomes. A test whose name begins with todo_ is skipped.
const (
	Passed  TestOutcome = "pass"
	Failed  TestOutcome = "fail"
	Errored TestOutcome = "error"
	Skipped TestOutcome = "skip"
)

// A TestResult is the result of one test.
type TestResult struct {
	Name    string        `json:"name"` // data.wasmgate_test.test_something
	File    string        `json:"file"`
	Line    int           `json:"line"`
	Outcome TestOutcome   `json:"outcome"`
	Error   string        `json:"error,omitempty"`
	Output  string        `json:"output,omitempty"` // of print
	Took    time.Duration `json:"took_ns"`
}

// Coverage says which lines of rules the tests have evaluated, file by file.
type Coverage struct {
	Files []FileCoverage `json:"files"`
}

// FileCoverage is the coverage of one file.
type FileCoverage struct {
	File      string  `json:"file"`
	Lines     int     `json:"lines"`   // that can be evaluated
	Covered   int     `json:"covered"` // of these
	Uncovered []Lines `json:"uncovered,omitempty"`
}

// Percent returns how much of all lines is covered; 100 if there are none.
func (c Coverage) Percent() float64 {
	covered, lines := 0, 0
	for _, f := range c.Files {
		covered, lines = covered+f.Covered, lines+f.Lines
	}
	if lines == 0 {
		return 100
	}
	return 100 * float64(covered) / float64(lines)
}

// Lines are the lines from From to To, both included, from 1.
type Lines struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Test runs the tests of each pack by itself, those of each bundle with the packs
// and its own data, and then the user's, which see packs, bundles, user's rules and
// grants together and may put others in their place with the keyword with. Results are in the order of files and lines. That a
// test fails is no error; policies that do not compile are a [*CompileError].
func Test(ctx context.Context, fsys fs.FS, o Options) ([]TestResult, Coverage, error) {
	src, problems, err := read(fsys, &o)
	if err != nil {
		return nil, Coverage{}, err
	}
	if problems != nil {
		return nil, Coverage{}, &CompileError{problems}
	}
	user := &suite{rules: src.rules, tests: src.tests, grants: o.Grants, limits: o.RateLimits, data: src.data(), own: maps.Clone(src.rules)}
	maps.DeleteFunc(user.own, func(file string, _ *ast.Module) bool {
		return strings.HasPrefix(file, owned.PackFolder) || strings.HasPrefix(file, owned.BundleFolder)
	})
	var results []TestResult
	var coverage Coverage
	for _, s := range slices.Concat(src.packSuites(), src.bundleSuites(), []*suite{user}) {
		if err := s.run(ctx, src); err != nil {
			return nil, Coverage{}, err
		}
		results = append(results, s.results...)
		coverage.add(s.cover, s.own)
	}
	return results, coverage, nil
}

// packSuites returns a suite for each pack, with the gate's own module: what
// another pack denies is no failure of this one.
func (s *source) packSuites() []*suite {
	const decision = owned.PackFolder + "decision.rego"
	var suites []*suite
	for _, file := range slices.Sorted(maps.Keys(s.packRules)) {
		own := map[string]*ast.Module{file: s.packRules[file]}
		rules := maps.Clone(own)
		rules[decision] = s.packRules[decision]
		test := strings.TrimSuffix(file, ".rego") + "_test.rego"
		suites = append(suites, &suite{rules: rules, own: own, tests: map[string]*ast.Module{test: s.packTests[test]}})
	}
	return suites
}

// bundleSuites returns a suite for each bundle: its own rules and data, and the
// packs. What the user's files and grants say is no failure of a bundle.
func (s *source) bundleSuites() []*suite {
	var suites []*suite
	for _, b := range s.bundles {
		rules := maps.Clone(s.packRules)
		maps.Copy(rules, b.rules)
		suites = append(suites, &suite{rules: rules, tests: b.tests, own: b.rules, data: b.Data()})
	}
	return suites
}

// testBundles runs the tests of the bundles. The error is a [*CompileError] with
// those that do not pass.
func (s *source) testBundles(ctx context.Context) error {
	var problems []Problem
	for _, one := range s.bundleSuites() {
		if len(one.tests) == 0 {
			continue
		}
		if err := one.within(ctx, s, bundleTestTime); err != nil {
			return err
		}
		for _, r := range one.results {
			if r.Outcome == Failed || r.Outcome == Errored {
				message := strings.TrimSuffix("the bundle's own test "+r.Name+" does not pass: "+r.Error, ": ")
				problems = append(problems, Problem{File: r.File, Line: r.Line, Message: message})
			}
		}
	}
	if problems != nil {
		return &CompileError{problems}
	}
	return nil
}

// suite is a set of tests and what they are run against.
type suite struct {
	rules, tests map[string]*ast.Module
	own          map[string]*ast.Module // those of the rules that it is about
	grants       []Grant
	limits       []RateLimit
	data         map[string]any

	results []TestResult
	cover   *cover.Cover
}

func (s *suite) run(ctx context.Context, src *source) error {
	modules, problems := src.compileTests(s.rules, s.tests)
	if problems != nil {
		return &CompileError{problems}
	}
	store, functions, err := newStore(ctx, s.grants, s.limits, s.data)
	if err != nil {
		return err
	}
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return err
	}
	defer store.Abort(ctx, txn)
	s.cover = cover.New()
	results, err := tester.NewRunner().
		SetCompiler(src.compiler().WithEnablePrintStatements(true)).
		SetStore(store).
		SetModules(modules).
		SetTimeout(testTimeout).
		SetCoverageQueryTracer(s.cover).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(true).
		AddCustomBuiltins([]*tester.Builtin{{Func: func(r *rego.Rego) { functions(r) }}}).
		RunTests(ctx, txn)
	if err != nil {
		return &CompileError{problemsOf("", err)}
	}
	for r := range results {
		s.results = append(s.results, testResult(r))
	}
	slices.SortFunc(s.results, func(a, b TestResult) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return ctx.Err()
}

// within runs a suite, and fails if that takes longer than it may.
func (s *suite) within(ctx context.Context, src *source, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the tests of a bundle take longer than %v", limit))
	defer cancel()
	if err := s.run(ctx, src); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return err
	}
	return nil
}

// compileTests returns copies of the rules and tests, which the test runner
// compiles itself, and what is wrong with them. Tests need not be strict.
func (s *source) compileTests(rules, tests map[string]*ast.Module) (map[string]*ast.Module, []Problem) {
	all := maps.Clone(rules)
	maps.Copy(all, tests)
	c := s.compiler().WithEnablePrintStatements(true)
	c.Compile(all)
	if problems, _, _ := s.failures(c); problems != nil {
		return nil, problems
	}
	return all, nil
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{
		Name: r.Package + "." + r.Name, Outcome: Passed,
		Output: string(r.Output), Took: r.Duration,
	}
	if r.Location != nil {
		t.File, t.Line = r.Location.File, r.Location.Row
	}
	switch {
	case r.Skip:
		t.Outcome = Skipped
	case r.Error != nil:
		t.Outcome, t.Error = Errored, r.Error.Error()
	case r.Fail:
		t.Outcome = Failed
		if r.FailedAt != nil && r.FailedAt.Location != nil {
			t.Error = fmt.Sprintf("%s:%d: false or undefined: %s", r.FailedAt.Location.File, r.FailedAt.Location.Row, r.FailedAt.Location.Text)
		}
		if cases := failedCases(r); cases != nil {
			t.Error = strings.TrimPrefix(t.Error+"; failed cases: "+strings.Join(cases, ", "), "; ")
		}
	}
	return t
}

// failedCases names the cases of a test with cases that have failed.
func failedCases(r *tester.Result) (names []string) {
	for name, one := range r.SubResults.Iter {
		if one.Fail && len(one.SubResults) == 0 {
			names = append(names, strings.Join(name, "/"))
		}
	}
	return names
}

// add reports on the given rules.
func (c *Coverage) add(cov *cover.Cover, rules map[string]*ast.Module) {
	report := cov.Report(rules)
	for _, file := range slices.Sorted(maps.Keys(rules)) {
		f := report.Files[file]
		if f == nil {
			continue // no line that could be covered
		}
		one := FileCoverage{File: file, Covered: f.CoveredLines, Lines: f.CoveredLines + f.NotCoveredLines}
		for _, r := range f.NotCovered {
			if n := len(one.Uncovered) - 1; n >= 0 && r.Start.Row <= one.Uncovered[n].To+1 {
				one.Uncovered[n].To = max(one.Uncovered[n].To, r.End.Row)
				continue
			}
			one.Uncovered = append(one.Uncovered, Lines{r.Start.Row, r.End.Row})
		}
		c.Files = append(c.Files, one)
	}
}
