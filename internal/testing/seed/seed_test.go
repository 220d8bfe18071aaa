package seed_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestOf(t *testing.T) {
	t.Setenv("WASMGATE_SEED", "")
	of := seed.Of(t)
	if again := seed.Of(t); again != of {
		t.Errorf("a test has the seeds %d and %d", of, again)
	}
	t.Run("another", func(t *testing.T) {
		if other := seed.Of(t); other == of {
			t.Errorf("two tests have the seed %d", other)
		}
	})
	t.Setenv("WASMGATE_SEED", "7")
	if given := seed.Of(t); given != 7 {
		t.Errorf("the seed is %d, not the one that was given", given)
	}
	t.Setenv("WASMGATE_SEED", "random")
	if a, b := seed.Of(t), seed.Of(t); a == b {
		t.Errorf("%d was drawn twice", a)
	}
}
