package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// Values tests what modules keep. Open returns an empty store with quotas, as several gateways have it.
func Values(t *testing.T, open func(*testing.T, kv.Options) []*kv.Store) {
	for name, test := range map[string]func(*testing.T, []*kv.Store){
		"what one keeps all have":            testValueShared,
		"a namespace is its tool's alone":    testNamespaces,
		"quotas are of all":                  testQuotas,
		"no more than the quota at once":     testQuotasAtOnce,
		"a value expires":                    testValueExpires,
		"what is not valid is refused":       testValueInvalid,
		"keys are listed by their beginning": testValueList,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, kv.Options{Keys: 4, ValueBytes: 10, Bytes: 30})) })
	}
}

var notes = options.ModuleNamespace{Tenant: "acme", Tool: "s__notes"}

// wants checks that all have a value; "-" is none.
func wants(t *testing.T, all []*kv.Store, ns options.ModuleNamespace, key, value string) {
	t.Helper()
	for i, s := range all {
		got, found, err := s.Get(t.Context(), ns, key)
		if err != nil || found != (value != "-") || found && string(got) != value {
			t.Errorf("gateway %d has %q for %q of %v, %t, %v; want %q", i, got, key, ns, found, err, value)
		}
	}
}

func testValueShared(t *testing.T, all []*kv.Store) {
	for i, s := range all {
		wants(t, all, notes, "a\x00é", "-")
		value := fmt.Sprintf("%d\x00\xff", i)
		must(t, s.Set(t.Context(), notes, "a\x00é", []byte(value), 0))
		wants(t, all, notes, "a\x00é", value)
		must(t, s.Set(t.Context(), notes, "a\x00é", nil, 0))
		wants(t, all, notes, "a\x00é", "")
		for j := range 2 {
			found, err := all[(i+1)%len(all)].Delete(t.Context(), notes, "a\x00é")
			if err != nil || found != (j == 0) {
				t.Errorf("deletion %d: %t, %v", j, found, err)
			}
		}
	}
}

func testNamespaces(t *testing.T, all []*kv.Store) {
	names := [][2]string{{"", "a"}, {"a", "a"}, {"a", "bc"}, {"ab", "c"}, {"a\x00", "b"}, {"a", "\x00b"}, {"a", "A"}, {"é", "x"}, {"e\u0301", "x"}, {`a" "b`, "c"}, {"a", `b" "c`}}
	for i, n := range names {
		must(t, all[i%len(all)].Set(t.Context(), options.ModuleNamespace{Tenant: n[0], Tool: n[1]}, "key", fmt.Append(nil, i), 0))
	}
	for i, n := range names {
		wants(t, all, options.ModuleNamespace{Tenant: n[0], Tool: n[1]}, "key", fmt.Sprint(i))
	}
}

func testQuotas(t *testing.T, all []*kv.Store) {
	set := func(i int, key, value string) error {
		return all[i%len(all)].Set(t.Context(), notes, key, []byte(value), 0)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, kv.ErrQuota) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range 4 {
		must(t, set(i, fmt.Sprint(i), "v"))
	}
	refused("a fifth key", set(1, "4", ""))
	refused("a long value", set(2, "0", strings.Repeat("x", 11)))
	must(t, set(1, "0", strings.Repeat("x", 10))) // 11 + 2 + 2 + 2 bytes
	must(t, set(2, "1", strings.Repeat("x", 10)))
	refused("more bytes", set(0, "2", strings.Repeat("x", 7)))
	wants(t, all, notes, "2", "v")
	must(t, set(0, "2", strings.Repeat("x", 5)))
	must(t, all[1].Set(t.Context(), options.ModuleNamespace{Tool: notes.Tool}, "a", []byte("of another"), 0))
	_, err := all[2].Delete(t.Context(), notes, "1")
	must(t, err)
	must(t, set(0, "4", strings.Repeat("x", 10))) // what was deleted is free again
}

func testQuotasAtOnce(t *testing.T, all []*kv.Store) {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if err := all[i%len(all)].Set(t.Context(), notes, fmt.Sprint(i), nil, 0); err != nil && !errors.Is(err, kv.ErrQuota) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys, err := all[0].List(t.Context(), notes, ""); err != nil || len(keys) != 4 {
		t.Errorf("%q, %v", keys, err)
	}
}

func testValueExpires(t *testing.T, all []*kv.Store) {
	must(t, all[0].Set(t.Context(), notes, "long", []byte("v"), time.Hour))
	for _, key := range []string{"a", "b", "c"} {
		must(t, all[0].Set(t.Context(), notes, key, []byte("v"), 50*time.Millisecond))
	}
	timelimit.Wait(t, "values expire", func() bool {
		keys, err := all[1].List(t.Context(), notes, "")
		must(t, err)
		return slices.Equal(keys, []string{"long"})
	})
	wants(t, all, notes, "a", "-")
	wants(t, all, notes, "long", "v")
	if found, err := all[2].Delete(t.Context(), notes, "a"); err != nil || found {
		t.Errorf("a value that has expired is deleted: %t, %v", found, err)
	}
	for _, key := range []string{"d", "e", "f"} { // what has expired is free again
		must(t, all[1].Set(t.Context(), notes, key, []byte("v"), 0))
	}
}

func testValueInvalid(t *testing.T, all []*kv.Store) {
	long := strings.Repeat("x", 513)
	for _, bad := range []struct {
		ns  options.ModuleNamespace
		key string
	}{{notes, ""}, {notes, long}, {notes, "\xff"}, {options.ModuleNamespace{}, "a"}, {options.ModuleNamespace{Tool: long}, "a"}, {options.ModuleNamespace{Tenant: "\xff", Tool: "t"}, "a"}} {
		for _, s := range all {
			_, _, get := s.Get(t.Context(), bad.ns, bad.key)
			_, remove := s.Delete(t.Context(), bad.ns, bad.key)
			for _, err := range []error{get, remove, s.Set(t.Context(), bad.ns, bad.key, nil, 0)} {
				if !errors.Is(err, kv.ErrInvalid) {
					t.Errorf("%.20q of %.40q: %v", bad.key, bad.ns, err)
				}
			}
		}
	}
	if err := all[0].Set(t.Context(), notes, "a", nil, -1); !errors.Is(err, kv.ErrInvalid) {
		t.Errorf("a lifetime below zero: %v", err)
	}
}

func testValueList(t *testing.T, all []*kv.Store) {
	for i, key := range []string{"é", "a%", "a_b", "b"} {
		must(t, all[i%len(all)].Set(t.Context(), notes, key, nil, 0))
	}
	for prefix, want := range map[string][]string{"": {"a%", "a_b", "b", "é"}, "a": {"a%", "a_b"}, "a%": {"a%"}, "é": {"é"}, "c": nil, "bb": nil} {
		for _, s := range all {
			if keys, err := s.List(t.Context(), notes, prefix); err != nil || !slices.Equal(keys, want) {
				t.Errorf("%q begins %q, %v", prefix, keys, err)
			}
		}
	}
}
