package storetest

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/files/state"
)

// Documents tests documents. Open returns one that was never written, as several gateways have it.
func Documents(t *testing.T, open func(*testing.T) []state.Document) {
	for name, test := range map[string]func(*testing.T, []state.Document){
		"a document that was never written":   testNoDocument,
		"what one writes all read":            testShared,
		"no change is lost":                   testNoneLost,
		"an error changes nothing":            testRefusedChange,
		"a removed document is absent":        testDocumentRemoved,
		"no two versions have one generation": testGenerations,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func put(t *testing.T, d state.Document, text string) {
	t.Helper()
	must(t, d.Change(t.Context(), func([]byte) ([]byte, error) {
		if text == "" {
			return nil, nil
		}
		return []byte(text), nil
	}))
}

// load returns what a document holds and its generation.
func load(t *testing.T, d state.Document, seen uint64) (string, uint64) {
	t.Helper()
	raw, generation, err := d.Load(t.Context(), seen)
	must(t, err)
	return string(raw), generation
}

func testNoDocument(t *testing.T, all []state.Document) {
	for _, d := range all {
		if raw, generation, err := d.Load(t.Context(), 0); raw != nil || generation != 0 || err != nil {
			t.Errorf("%q, generation %d, %v", raw, generation, err)
		}
		if d.Name() == "" {
			t.Error("it has no name")
		}
	}
}

func testShared(t *testing.T, all []state.Document) {
	for i, d := range all {
		want := strconv.Itoa(i)
		put(t, d, want)
		for j, other := range all {
			got, generation := load(t, other, 0)
			if got != want || generation == 0 {
				t.Errorf("%d reads %q of %d in generation %d", j, got, i, generation)
			}
			if got, again := load(t, other, generation); got != "" || again != generation {
				t.Errorf("seen already: %q, generation %d after %d", got, again, generation)
			}
		}
	}
}

func testNoneLost(t *testing.T, all []state.Document) {
	const each = 10
	var wg sync.WaitGroup
	for _, d := range all {
		for range each {
			wg.Go(func() {
				err := d.Change(t.Context(), func(raw []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(raw)) // 0 of one that is not there
					return []byte(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if got, _ := load(t, all[0], 0); got != strconv.Itoa(each*len(all)) {
		t.Errorf("%s of %d changes are kept", got, each*len(all))
	}
}

func testRefusedChange(t *testing.T, all []state.Document) {
	put(t, all[0], "before")
	_, generation := load(t, all[0], 0)
	refused := errors.New("no")
	err := all[0].Change(t.Context(), func([]byte) ([]byte, error) { return []byte("after"), refused })
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	for _, d := range all {
		if got, now := load(t, d, 0); got != "before" || now != generation {
			t.Errorf("%q in generation %d, before in %d", got, now, generation)
		}
	}
}

func testDocumentRemoved(t *testing.T, all []state.Document) {
	put(t, all[0], "before")
	_, generation := load(t, all[0], 0)
	put(t, all[0], "")
	put(t, all[0], "") // there is nothing to remove
	for _, d := range all {
		if got, now := load(t, d, generation); got != "" || now == generation {
			t.Errorf("%q in generation %d, before in %d", got, now, generation)
		}
		if got, _ := load(t, d, 0); got != "" {
			t.Errorf("%q is there", got)
		}
	}
}

func testGenerations(t *testing.T, all []state.Document) {
	var last uint64
	for i := range 20 {
		put(t, all[i%len(all)], strconv.Itoa(i))
		got, generation := load(t, all[(i+1)%len(all)], last)
		if got != strconv.Itoa(i) || generation == last {
			t.Fatalf("%q in generation %d after %d", got, generation, last)
		}
		last = generation
	}
}
