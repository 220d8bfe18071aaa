package rewrite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// generatedFor is how long generated modules are compared. WASMGATE_GENERATED says
// otherwise, for example 1h.
const generatedFor = 10 * time.Second

// TestGenerated compares generated modules: plain, metered and sealed, compiled
// and interpreted. What each call returns, or the trap that ends it, what it asks
// of the host, memory and globals are the same; and a sealed one that is put back
// does the same again.
func TestGenerated(t *testing.T) {
	unraced.Long(t)
	length := generatedFor
	if s := os.Getenv("WASMGATE_GENERATED"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := seed.Of(t)
	counts := map[string]int{}
	enough := func() bool {
		return counts["sealed"] > 0 && counts["calls that end"] >= counts["modules"] && counts["calls that trap"] > 0
	}
	for end := time.Now().Add(length); (time.Now().Before(end) || !enough() && counts["modules"] < 100) && !t.Failed(); seed++ { // a busy machine compares few in its time
		compareGenerated(t, seed, counts)
	}
	t.Logf("%v", counts)
	if !enough() {
		t.Errorf("too little was compared: %v", counts)
	}
}

func compareGenerated(t *testing.T, seed uint64, counts map[string]int) {
	r := seeded(seed)
	wasm := generate(r)
	defer rewrite.AccessesAtOnce(1 << r.IntN(12))()
	broken := rewrite.DividesForRemainders() // of the compiler, on this processor
	defer rewrite.DivideForRemainders(broken || r.IntN(2) == 0)()
	bare := withoutCustom(wasm)
	compiled, interpreted := wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()
	want, _ := run(t, interpreted, bare, nil, 0)
	counts["modules"]++
	counts["calls that trap"] += strings.Count(want, "trap")
	counts["calls that end"] += strings.Count(want, "ends")
	compare := func(name string, cfg wazero.RuntimeConfig, wasm []byte, s *rewrite.Sealed, slice int64) (spent []string) {
		got, spent := run(t, cfg, wasm, s, slice)
		if got != want {
			t.Errorf("seed %d, %s: %s", seed, name, difference(want, got))
		}
		return spent
	}
	if !broken {
		compare("compiled", compiled, bare, nil, 0)
	}
	m, err := rewrite.Decode(wasm)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	out, err := m.Meter()
	if costly := (*rewrite.CostError)(nil); errors.As(err, &costly) {
		counts["too costly"]++
		return
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if code := machineCode(t, out); code > m.Cost().Code {
		t.Errorf("seed %d: machine code of %d bytes was estimated at %d", seed, code, m.Cost().Code)
	}
	// With no slice the meter is asked at each charge, so that nothing waits in a local.
	each := compare("metered", compiled, out, nil, 0)
	if once := compare("metered, in one slice", compiled, out, nil, 1<<40); !slices.Equal(each, once) {
		t.Errorf("seed %d: calls spend %v in one slice, charged one by one %v", seed, once, each)
	}
	compare("metered and interpreted", interpreted, out, nil, 1000)
	s, err := seal(wasm)
	if err != nil {
		return
	}
	counts["sealed"]++
	compare("sealed", compiled, s.WASM, s, 1000)
	compare("sealed and interpreted", interpreted, s.WASM, s, 1000)
}

// difference is the first line that differs.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%.200s, plain %.200s", b[i], a[i])
		}
	}
	return fmt.Sprintf("%d lines, plain %d", len(b), len(a))
}

// run calls all that a module exports, in order, and returns what came of it, and the
// fuel of each call that did not trap. A sealed one is put back and does it again.
func run(t *testing.T, cfg wazero.RuntimeConfig, wasm []byte, s *rewrite.Sealed, slice int64) (what string, spent []string) {
	engine := wazero.NewRuntimeWithConfig(t.Context(), cfg.WithCoreFeatures(api.CoreFeaturesV2))
	defer engine.Close(context.WithoutCancel(t.Context()))
	granted := provide(t, engine, slice)
	var did strings.Builder
	host := engine.NewHostModuleBuilder("h")
	host.NewFunctionBuilder().WithFunc(func(n uint32) uint32 { fmt.Fprintf(&did, "a %d\n", n); return n*7 + 1 }).Export("a")
	host.NewFunctionBuilder().WithFunc(func(n uint64) { fmt.Fprintf(&did, "b %d\n", n) }).Export("b")
	if _, err := host.Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{engine: engine}
	var m api.Module
	var err error
	if s != nil {
		m, err = w.begin(t, s, wazero.NewModuleConfig())
	} else {
		m, err = engine.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithStartFunctions())
	}
	if err != nil {
		if !strings.Contains(err.Error(), "wasm error") {
			t.Errorf("instantiate: %v", err)
		}
		return "the start function traps\n", nil
	}
	before := state(m, s)
	did.Reset()
	spent = callAll(t, m, &did, granted)
	first := did.String()
	if s != nil && m.Memory().Size() == uint32(len(before.memory)) {
		before.restore(m)
		did.Reset()
		callAll(t, m, &did, granted)
		if again := did.String(); again != first {
			t.Errorf("put back, it does something else: %s", difference(first, again))
		}
	}
	return first, spent
}

func callAll(t *testing.T, m api.Module, did *strings.Builder, granted *int64) (spent []string) {
	used := func() int64 {
		if fuel := m.ExportedGlobal(rewrite.MeterGlobal); fuel != nil {
			return *granted - int64(fuel.Get())
		}
		return 0
	}
	var names []string
	for name := range m.ExportedFunctionDefinitions() {
		if strings.HasPrefix(name, "f") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names[:min(len(names), 20)] {
		m.ExportedGlobal("g0").(api.MutableGlobal).Set(rounds)
		f := m.ExportedFunction(name)
		args := make([]uint64, len(f.Definition().ParamTypes()))
		for j := range args {
			args[j] = uint64(uint32(i * (j + 3)))
		}
		before := used()
		results, err := f.Call(t.Context(), args...)
		if err != nil {
			fmt.Fprintf(did, "%s: trap %s\n", name, cause(err))
		} else {
			fmt.Fprintf(did, "%s ends: %x\n", name, results)
			spent = append(spent, fmt.Sprintf("%s %d", name, used()-before))
		}
	}
	fmt.Fprintf(did, "memory %s, globals %x %x %x\n", memory(m), m.ExportedGlobal("g0").Get(), m.ExportedGlobal("g1").Get(), m.ExportedGlobal("g2").Get())
	return spent
}

// A stateOf is what a sealed module can change.
type stateOf struct {
	memory  []byte
	globals []uint64
}

func state(m api.Module, s *rewrite.Sealed) (of stateOf) {
	if s == nil {
		return of
	}
	b, _ := m.Memory().Read(0, m.Memory().Size())
	of.memory = slices.Clone(b)
	for i := range s.Globals {
		of.globals = append(of.globals, m.ExportedGlobal(rewrite.GlobalName(i)).Get())
	}
	return of
}

func (of stateOf) restore(m api.Module) {
	m.Memory().Write(0, of.memory)
	for i, v := range of.globals {
		m.ExportedGlobal(rewrite.GlobalName(i)).(api.MutableGlobal).Set(v)
	}
}
