package rewrite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A command is one of a script that the tool wast2json made of a test of the
// WebAssembly specification.
type command struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	As         string `json:"as"`
	ModuleType string `json:"module_type"`
	Action     struct {
		Type   string  `json:"type"`
		Module string  `json:"module"`
		Field  string  `json:"field"`
		Args   []value `json:"args"`
	} `json:"action"`
}

type value struct {
	Type  string          `json:"type"`
	Lane  string          `json:"lane_type"`
	Value json.RawMessage `json:"value"`
}

// words returns a value as the engine takes it.
func (v value) words(t *testing.T) []uint64 {
	var one string
	var lanes []string
	if json.Unmarshal(v.Value, &one) == nil {
		if one == "null" || one == "" {
			return []uint64{0}
		}
		n := number(t, one)
		if v.Type == "externref" {
			n++ // 0 is null
		}
		if strings.HasSuffix(v.Type, "32") {
			n = uint64(uint32(n))
		}
		return []uint64{n}
	}
	if err := json.Unmarshal(v.Value, &lanes); err != nil {
		t.Fatalf("value %s: %v", v.Value, err)
	}
	words, bits := []uint64{0, 0}, 128/len(lanes)
	for i, lane := range lanes {
		n := number(t, lane) & (1<<bits - 1)
		words[i*bits/64] |= n << (i * bits % 64)
	}
	return words
}

func number(t *testing.T, s string) uint64 {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

// features are all that the engine has: what the rewriting does not support
// it has to refuse by itself.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
	experimental.CoreFeaturesThreads | experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesTypedFunctionReferences

// A form is how modules are run.
type form string

const (
	plain   form = "plain"
	metered form = "metered"
	sealed  form = "sealed" // those that are fit for it; the others metered
)

// A world is an engine with the modules of one script.
type world struct {
	engine wazero.Runtime
	form   form
	named  map[string]api.Module
	last   api.Module
	sealed int // modules that were
}

var errRefused = errors.New("refused")

func newWorld(t testing.TB, f form) *world {
	w := &world{engine: wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(features)), form: f, named: map[string]api.Module{}}
	t.Cleanup(func() { w.engine.Close(context.WithoutCancel(t.Context())) })
	if f != plain {
		provide(t, w.engine, 50)
	}
	return w
}

// provide makes the meter: so little a time that it is called often. It returns how much
// was granted.
func provide(t testing.TB, engine wazero.Runtime, slice int64) (granted *int64) {
	i64, granted := []api.ValueType{api.ValueTypeI64}, new(int64)
	fuel := func(_ context.Context, m api.Module, stack []uint64) {
		m.ExportedGlobal(rewrite.BehindGlobal).(api.MutableGlobal).Set(uint64(slice))
		left := int64(stack[0])
		stack[0] = uint64(max(left, 0) + slice)
		*granted += int64(stack[0]) - left
	}
	if _, err := engine.NewHostModuleBuilder(rewrite.MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(fuel), i64, i64).Export(rewrite.MeterFunction).Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return granted
}

func meter(wasm []byte) ([]byte, error) {
	m, err := rewrite.Decode(wasm)
	if err != nil {
		return nil, err
	}
	rewind(m)
	return m.Meter()
}

// instantiate returns errRefused, with the reason, if the rewriting refuses.
func (w *world) instantiate(t *testing.T, wasm []byte, name string) (api.Module, error) {
	cfg := wazero.NewModuleConfig().WithName(name)
	if w.form == plain {
		return w.engine.InstantiateWithConfig(t.Context(), wasm, cfg)
	}
	if w.form == sealed {
		s, err := seal(wasm)
		var unfit *rewrite.UnfitError
		switch {
		case err == nil:
			m, err := w.begin(t, s, cfg)
			if err == nil {
				w.sealed++
			}
			return m, err
		case !errors.As(err, &unfit):
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
	}
	out, err := meter(wasm)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return w.engine.InstantiateWithConfig(t.Context(), out, cfg)
}

func seal(wasm []byte) (*rewrite.Sealed, error) {
	m, err := rewrite.Decode(wasm)
	if err != nil {
		return nil, err
	}
	rewind(m)
	return m.Seal()
}

// rewind has every import that can be called again be called again.
func rewind(m *rewrite.Module) {
	any := func(rewrite.Import) bool { return true }
	m.Rewind(any, any)
}

// begin does what the sealed module leaves to its host. Its globals have their
// initial values already.
func (w *world) begin(t *testing.T, s *rewrite.Sealed, cfg wazero.ModuleConfig) (api.Module, error) {
	m, err := w.engine.InstantiateWithConfig(t.Context(), s.WASM, cfg)
	if err != nil {
		return nil, err
	}
	for i := range s.Globals {
		g := m.ExportedGlobal(rewrite.GlobalName(i)).(api.MutableGlobal)
		g.Set(g.Get())
	}
	if len(s.Memory) > 0 && !m.Memory().Write(0, s.Memory) {
		t.Error("the data does not fit into the memory")
	}
	if s.Start {
		_, err = m.ExportedFunction(rewrite.StartFunction).Call(t.Context())
	}
	return m, err
}

// Value types that the engine's interface has no names for.
const (
	vector  api.ValueType = 0x7b
	funcref api.ValueType = 0x70
)

// invoke returns results and, of an error, its innermost cause.
func (w *world) invoke(t *testing.T, c command) (results []uint64, cause string) {
	m := w.last
	if c.Action.Module != "" {
		m = w.named[c.Action.Module]
	}
	if c.Action.Type == "get" {
		return []uint64{m.ExportedGlobal(c.Action.Field).Get()}, ""
	}
	f := m.ExportedFunction(c.Action.Field)
	if f == nil {
		return nil, "no such function"
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.words(t)...)
	}
	results, err := f.Call(t.Context(), args...)
	for ; err != nil; err = errors.Unwrap(err) {
		cause = err.Error()
	}
	results = slices.Clone(results)
	for at, i := 0, 0; at < len(results); at, i = at+1, i+1 {
		switch f.Definition().ResultTypes()[i] {
		case vector:
			at++ // takes two words
		case funcref:
			results[at] = min(results[at], 1) // a pointer: null or not
		}
	}
	return results, cause
}

// suite returns the folder in which the engine's module has the test suite.
func suite(t testing.TB) (string, error) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest"), err
}

// counts of a run over the suite.
type counts struct {
	modules, sealed, refused, invalid, actions, skipped int
	reasons                                             map[string]int
}

// TestSpecification runs the test suite of the WebAssembly specification, as
// the engine's module ships it, plain and rewritten: every module is accepted by
// both or neither, and every action has the same results or the same trap.
func TestSpecification(t *testing.T) {
	if testing.Short() {
		t.Skip("runs some thousand modules")
	}
	root, err := suite(t)
	if err != nil {
		t.Skipf("the engine's module cannot be found: %v", err)
	}
	for _, suite := range []string{"v1", "v2", "tail-call", "extended-const", "threads", "exception-handling", "typed-function-references"} {
		for _, f := range []form{metered, sealed} {
			if unraced.Short() && (suite == "v1" || f == metered) { // what v2 has as well, and what sealing begins with
				continue
			}
			t.Run(suite+"/"+string(f), func(t *testing.T) { runSuite(t, root, suite, f) })
		}
	}
}

func runSuite(t *testing.T, root, suite string, f form) {
	dir := filepath.Join(root, suite, "testdata")
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(scripts) == 0 {
		t.Skipf("the engine's module ships no %s (%v)", dir, err)
	}
	spectest, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	n := counts{reasons: map[string]int{}}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".json"), func(t *testing.T) { n.run(t, script, spectest, f) })
	}
	t.Logf("%d modules ran, %d of them sealed, %d were refused by the rewriting alone, %d by both; %d actions were the same, %d skipped with their module",
		n.modules, n.sealed, n.refused, n.invalid, n.actions, n.skipped)
	for reason, count := range n.reasons {
		t.Logf("refused %d: %s", count, reason)
	}
	if refusable := suite == "threads" || suite == "exception-handling" || suite == "typed-function-references"; !refusable && n.refused > n.modules/50 {
		t.Errorf("%d of %d modules were refused", n.refused, n.modules)
	}
	if f == sealed && suite == "v1" && n.sealed < n.modules/2 {
		t.Errorf("%d of %d modules were sealed", n.sealed, n.modules)
	}
}

func (n *counts) run(t *testing.T, script string, spectest []byte, f form) {
	b, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Commands []command `json:"commands"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	expected, got := newWorld(t, plain), newWorld(t, f)
	for _, w := range []*world{expected, got} {
		if _, err := w.instantiate(t, spectest, "spectest"); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range s.Commands {
		switch c.Type {
		case "register":
		case "module", "assert_invalid", "assert_malformed", "assert_unlinkable", "assert_uninstantiable":
			name := ""
			if next := i + 1; next < len(s.Commands) && s.Commands[next].Type == "register" {
				name = s.Commands[next].As
			}
			if c.ModuleType != "text" {
				n.module(t, filepath.Dir(script), c, name, expected, got)
			}
		case "assert_return", "assert_trap", "assert_exhaustion", "assert_exception", "action":
			n.action(t, c, expected, got)
		default:
			t.Errorf("line %d: unknown command %s", c.Line, c.Type)
		}
	}
}

// module gives a module to both worlds.
func (n *counts) module(t *testing.T, dir string, c command, name string, expected, got *world) {
	wasm, err := os.ReadFile(filepath.Join(dir, c.Filename))
	if err != nil {
		t.Fatal(err)
	}
	a, errA := expected.instantiate(t, wasm, name)
	before := got.sealed
	b, errB := got.instantiate(t, wasm, name)
	switch {
	case errA == nil && errB == nil:
		n.modules++
		n.sealed += got.sealed - before
	case errA == nil && errors.Is(errB, errRefused):
		n.refused++
		n.reasons[errB.Error()]++
		a = nil
	case errA != nil && errB != nil:
		n.invalid++
	default:
		t.Errorf("line %d, %s: plain %v, %s %v", c.Line, c.Filename, errA, got.form, errB)
	}
	if c.Type == "module" {
		expected.last, got.last = a, b
		expected.named[c.Name], got.named[c.Name] = a, b
	}
}

// action carries one out in both worlds.
func (n *counts) action(t *testing.T, c command, expected, got *world) {
	if c.Action.Module == "" && got.last == nil || c.Action.Module != "" && got.named[c.Action.Module] == nil {
		n.skipped++
		return
	}
	a, causeA := expected.invoke(t, c)
	b, causeB := got.invoke(t, c)
	if !slices.Equal(a, b) || causeA != causeB {
		t.Errorf("line %d: %s: plain %v %q, %s %v %q", c.Line, c.Action.Field, a, causeA, got.form, b, causeB)
	}
	n.actions++
}
