package lock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	documents "github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

// Several processes share the folder and the lockfile of one gateway.
func TestFiles(t *testing.T) {
	storetest.Pins(t, func(t *testing.T) (all []storetest.Pinner) {
		first := newRig(t, options.PinTrustFirst)
		for range 3 {
			r := first.again(t)
			all = append(all, storetest.Pinner{Pins: r.Pins, Approve: func(_ context.Context, pins []lock.Pin) error {
				_, err := lock.Approve(r.options.File, pins)
				return errors.Join(err, r.Reload("local"))
			}, Follow: func() error { return r.Reload("") }})
		}
		return all
	})
}

// away is a folder of documents that can be away.
type away struct {
	dir  string
	gone bool
}

func (a *away) document(name string) options.Document {
	return awayDocument{a, documents.File(filepath.Join(a.dir, filepath.FromSlash(name)))}
}

type awayDocument struct {
	*away
	documents.Document
}

var errAway = errors.New("away")

func (a awayDocument) Load(ctx context.Context, seen uint64) ([]byte, uint64, error) {
	if a.gone {
		return nil, 0, errAway
	}
	return a.Document.Load(ctx, seen)
}

func (a awayDocument) Change(ctx context.Context, f func([]byte) ([]byte, error)) error {
	if a.gone {
		return errAway
	}
	return a.Document.Change(ctx, f)
}

// While what is shared is away nothing new is trusted. Once it is back, what could not be kept is.
func TestSharedAway(t *testing.T) {
	docs := &away{dir: t.TempDir()}
	share := func() *rig {
		r := newRig(t, options.PinTrustFirst)
		if err := r.Share(docs.document); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, other := share(), share()
	a, changed := named("a", "reads"), named("a", "reads everything")
	docs.gone = true
	r.connected("s", program("x"), a)
	want(t, "while it is away", r.callable("s", a))
	if !r.Unkept() {
		t.Error("all is kept")
	}
	docs.gone = false
	if took, err := r.Follow("other", nil); !took || err != nil {
		t.Errorf("%t, %v", took, err)
	}
	want(t, "once it is back", r.callable("s", a), "a")
	if took, err := r.Follow("other", []string{"keys"}); took || err != nil || r.Unkept() {
		t.Errorf("took over again: %t, %v", took, err)
	}
	other.connected("s", program("x"), changed)
	want(t, "elsewhere", other.callable("s", changed))

	docs.gone = true
	if _, err := r.Follow("other", []string{"pins"}); !errors.Is(err, errAway) {
		t.Errorf("error %v", err)
	}
	want(t, "of before", r.callable("s", a), "a")
	docs.gone = false

	review, err := other.Review("s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Approve(t.Context(), review.Approval); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*rig{r, other} {
		if _, err := one.Follow("other", []string{"pins"}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "the version approved elsewhere", other.callable("s", changed), "a")
	want(t, "the version that was trusted", r.callable("s", a), "a")
	if _, err := os.Stat(r.options.File); !os.IsNotExist(err) {
		t.Errorf("a lockfile: %v", err)
	}
}
