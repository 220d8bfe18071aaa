package kv_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
)

// Many goroutines use a few namespaces, and even fewer stay in memory: each goroutine finds what it
// wrote last, no quota is passed, and all values are in the files.
func TestHammer(t *testing.T) {
	const workers, rounds, spaces = 8, 40, 4
	dir := filepath.Join(t.TempDir(), "kv")
	o := kv.Options{Loaded: 1, Keys: workers + 1}
	s := open(t, dir, o)
	of := func(i int) options.ModuleNamespace { return options.ModuleNamespace{Tool: fmt.Sprint(i % spaces)} }
	for w := range workers { // so that no extra key takes the place of one
		for i := range spaces {
			set(t, s, of(i), fmt.Sprint("worker ", w), "", 0)
		}
	}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			key := fmt.Sprint("worker ", w)
			for r := range rounds {
				n := of(w + r)
				set(t, s, n, key, fmt.Sprint(r), 0)
				want(t, s, n, key, fmt.Sprint(r))
				if err := s.Set(t.Context(), n, fmt.Sprint("extra ", w), nil, 0); err != nil && !errors.Is(err, kv.ErrQuota) {
					t.Error(err)
				}
				if keys, err := s.List(t.Context(), n, ""); err != nil || len(keys) > workers+1 {
					t.Errorf("%d keys, %v", len(keys), err)
				}
				if _, err := s.Delete(t.Context(), n, fmt.Sprint("extra ", w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s.Close()

	s = open(t, dir, o)
	for w := range workers {
		for r := rounds - spaces; r < rounds; r++ {
			want(t, s, of(w+r), fmt.Sprint("worker ", w), fmt.Sprint(r))
		}
	}
}

// Close waits for operations under way: every value that was set without an error is in the file.
func TestCloseWhileInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{})
	written := make([]int, 4)
	var all sync.WaitGroup
	for w := range written {
		all.Go(func() {
			for i := 1; ; i++ {
				if err := s.Set(t.Context(), ns, fmt.Sprint(w), []byte(fmt.Sprint(i)), 0); errors.Is(err, kv.ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				written[w] = i
				if w == 0 && i == 20 {
					go s.Close()
				}
			}
		})
	}
	all.Wait()
	s.Close()
	s = open(t, dir, kv.Options{})
	for w, n := range written {
		if n > 0 {
			want(t, s, ns, fmt.Sprint(w), fmt.Sprint(n))
		}
	}
}
