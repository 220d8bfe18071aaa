// Package seed gives random tests their seeds.
package seed

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of returns the seed of a test, and logs it. It follows from the test's name, so that a run says the
// same of the same code each time. WASMGATE_SEED is another: a number, or "random" for one that is drawn.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed, err := choose(os.Getenv("WASMGATE_SEED"), t.Name())
	if err != nil {
		t.Fatalf("WASMGATE_SEED is neither a number nor random: %v", err)
	}
	t.Logf("seed %d: WASMGATE_SEED=%[1]d repeats it", seed)
	return seed
}

// Rand returns a source of random numbers with the seed of a test. One goroutine at a time may use it.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}

func choose(wanted, name string) (uint64, error) {
	switch wanted {
	case "":
		h := fnv.New64a()
		_, _ = h.Write([]byte(name))
		return h.Sum64(), nil
	case "random":
		return rand.Uint64(), nil
	}
	return strconv.ParseUint(wanted, 10, 64)
}
