package kv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

var ns = options.ModuleNamespace{Tenant: "acme", Tool: "notes"}

func open(t testing.TB, dir string, o kv.Options) *kv.Store {
	t.Helper()
	s, err := kv.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func set(t testing.TB, s *kv.Store, ns options.ModuleNamespace, key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Set(t.Context(), ns, key, []byte(value), ttl); err != nil {
		t.Fatal(err)
	}
}

// want checks the value of a key; "-" is none.
func want(t testing.TB, s *kv.Store, ns options.ModuleNamespace, key, value string) {
	t.Helper()
	got, found, err := s.Get(t.Context(), ns, key)
	if err != nil || found != (value != "-") || found && string(got) != value {
		t.Errorf("%s of %v: %q, %v, %v; want %q", key, ns, got, found, err, value)
	}
}

// both runs a test with a directory and in memory.
func both(t *testing.T, test func(t *testing.T, dir string)) {
	t.Run("in memory", func(t *testing.T) { test(t, "") })
	t.Run("in a directory", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "kv")) })
}

func TestStore(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		s := open(t, dir, kv.Options{})
		want(t, s, ns, "a", "-")
		set(t, s, ns, "a/1", "one", 0)
		set(t, s, ns, "a/2", "", 0)
		set(t, s, ns, "b", "three\x00\xff", 0)
		set(t, s, ns, "a/1", "uno", 0)
		want(t, s, ns, "a/1", "uno")
		want(t, s, ns, "a/2", "")
		want(t, s, ns, "b", "three\x00\xff")
		if keys, err := s.List(t.Context(), ns, "a/"); err != nil || !slices.Equal(keys, []string{"a/1", "a/2"}) {
			t.Errorf("keys %v, %v", keys, err)
		}
		if found, err := s.Delete(t.Context(), ns, "a/1"); err != nil || !found {
			t.Errorf("deleted: %v, %v", found, err)
		}
		if found, err := s.Delete(t.Context(), ns, "a/1"); err != nil || found {
			t.Errorf("deleted again: %v, %v", found, err)
		}
		if keys, err := s.List(t.Context(), ns, ""); err != nil || !slices.Equal(keys, []string{"a/2", "b"}) {
			t.Errorf("keys %v, %v", keys, err)
		}
	})
}

func TestValuesAreCopies(t *testing.T) {
	s := open(t, "", kv.Options{})
	value := []byte("value")
	if err := s.Set(t.Context(), ns, "a", value, 0); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	got, _, _ := s.Get(t.Context(), ns, "a")
	got[1] = 'X'
	want(t, s, ns, "a", "value")
}

// Names that escape, collide or are alike stay apart, and in the directory.
func TestNamespaces(t *testing.T) {
	names := [][2]string{
		{"", "a"}, {"a", "a"}, {"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"a", "A"}, {"A", "a"}, {"1:a", "b"}, {"1", ":ab"},
		{"..", "x"}, {"", "../x"}, {"", "../../x"}, {"/etc", "passwd"}, {"", "/etc/passwd"}, {"a/b", "c"}, {"a", "b/c"}, {`a\b`, "c"},
		{"", "."}, {"", ".."}, {"a\x00", "b"}, {"a", "\x00b"}, {"", "CON"}, {"", "x.tmp"}, {"", strings.Repeat("x", 512)}, {"é", "x"}, {"e\u0301", "x"},
	}
	both(t, func(t *testing.T, dir string) {
		s := open(t, dir, kv.Options{})
		for i, n := range names {
			set(t, s, options.ModuleNamespace{Tenant: n[0], Tool: n[1]}, "key", fmt.Sprint(i), 0)
		}
		for i, n := range names {
			want(t, s, options.ModuleNamespace{Tenant: n[0], Tool: n[1]}, "key", fmt.Sprint(i))
		}
		if dir == "" {
			return
		}
		beside, err := os.ReadDir(filepath.Dir(dir))
		inside := files(t, dir)
		if err != nil || len(beside) != 1 || len(inside) != len(names) {
			t.Errorf("%d files in the directory for %d namespaces; beside it %v, %v", len(inside), len(names), beside, err)
		}
	})
}

func TestNotValid(t *testing.T) {
	long := strings.Repeat("x", 513)
	tests := map[string]struct {
		ns  options.ModuleNamespace
		key string
		ttl time.Duration
	}{
		"no key":                  {ns, "", 0},
		"a key that is too long":  {ns, long, 0},
		"a key that is not text":  {ns, "\xff", 0},
		"a lifetime below zero":   {ns, "a", -1},
		"no tool":                 {options.ModuleNamespace{Tenant: "acme"}, "a", 0},
		"a tool too long":         {options.ModuleNamespace{Tool: long}, "a", 0},
		"a tool that is not text": {options.ModuleNamespace{Tool: "\xff"}, "a", 0},
		"a tenant too long":       {options.ModuleNamespace{Tenant: long, Tool: "notes"}, "a", 0},
		"a tenant of no text":     {options.ModuleNamespace{Tenant: "\xff", Tool: "notes"}, "a", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", kv.Options{})
			if err := s.Set(t.Context(), tt.ns, tt.key, nil, tt.ttl); !errors.Is(err, kv.ErrInvalid) {
				t.Errorf("set: %v", err)
			}
			if tt.ttl != 0 {
				return
			}
			if _, _, err := s.Get(t.Context(), tt.ns, tt.key); !errors.Is(err, kv.ErrInvalid) {
				t.Errorf("get: %v", err)
			}
			if _, err := s.Delete(t.Context(), tt.ns, tt.key); !errors.Is(err, kv.ErrInvalid) {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]kv.Options{
		"keys below zero": {Keys: -1}, "value bytes below zero": {ValueBytes: -1}, "bytes below zero": {Bytes: -1},
		"loaded below zero": {Loaded: -1}, "more bytes than a file can have": {Bytes: 33 << 20},
	} {
		if _, err := kv.Open("", o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestQuotas(t *testing.T) {
	const k = "0123456789" // ten bytes
	tests := map[string]struct {
		o        kv.Options
		allowed  []string // values of the keys a, b, ...
		refused  string   // value of the next one
		replaced string   // value that the first one may still take
	}{
		"keys":                     {kv.Options{Keys: 2}, []string{k, k}, "", k + k},
		"bytes of a value":         {kv.Options{ValueBytes: 10}, []string{k}, k + "x", k},
		"bytes in all":             {kv.Options{Bytes: 22}, []string{k, k}, "", k},
		"bytes in all, by its key": {kv.Options{Bytes: 11}, []string{k}, "", ""},
		"keys by default":          {kv.Options{}, make([]string, 1024), "", k},
		"a value by default":       {kv.Options{}, []string{strings.Repeat("x", 64<<10)}, strings.Repeat("x", 64<<10+1), k},
		"bytes by default":         {kv.Options{}, slices.Repeat([]string{strings.Repeat("x", 65_000)}, 16), strings.Repeat("x", 65_000), k},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", tt.o)
			key := func(i int) string { return string(rune('a' + i)) }
			for i, v := range tt.allowed {
				set(t, s, ns, key(i), v, 0)
			}
			next := key(len(tt.allowed))
			if err := s.Set(t.Context(), ns, next, []byte(tt.refused), 0); !errors.Is(err, kv.ErrQuota) {
				t.Errorf("err = %v", err)
			}
			want(t, s, ns, next, "-")
			set(t, s, ns, key(0), tt.replaced, 0)
			set(t, s, options.ModuleNamespace{Tenant: "other", Tool: ns.Tool}, "a", tt.allowed[0], 0) // another one's quota is its own
			if _, err := s.Delete(t.Context(), ns, key(0)); err != nil {
				t.Fatal(err)
			}
			set(t, s, ns, key(0), tt.allowed[0], 0) // what was deleted is free again
		})
	}
}

func TestExpiry(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, dir, kv.Options{Keys: 2})
			set(t, s, ns, "short", "1", time.Minute)
			set(t, s, ns, "long", "2", time.Hour)
			if err := s.Set(t.Context(), ns, "more", nil, 0); !errors.Is(err, kv.ErrQuota) {
				t.Errorf("err = %v", err)
			}
			time.Sleep(time.Minute - 1)
			want(t, s, ns, "short", "1")
			time.Sleep(time.Nanosecond)
			want(t, s, ns, "short", "-")
			if keys, err := s.List(t.Context(), ns, ""); err != nil || !slices.Equal(keys, []string{"long"}) {
				t.Errorf("keys %v, %v", keys, err)
			}
			if found, err := s.Delete(t.Context(), ns, "short"); err != nil || found {
				t.Errorf("deleted: %v, %v", found, err)
			}
			set(t, s, ns, "more", "3", 0) // what has expired is free again
			set(t, s, ns, "long", "4", 0) // and a new value has its own lifetime
			time.Sleep(1000 * time.Hour)
			want(t, s, ns, "more", "3")
			want(t, s, ns, "long", "4")
		})
	})
}

// Every operation on a closed store is an error, and closing it again is none.
func TestClosed(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		s := open(t, dir, kv.Options{})
		set(t, s, ns, "a", "1", 0)
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := s.Get(t.Context(), ns, "a"); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("err = %v", err)
		}
		if err := s.Set(t.Context(), ns, "a", nil, 0); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("err = %v", err)
		}
	})
}

// Without a directory, the number of namespaces is limited. One whose values have expired makes room
// for another.
func TestFewNamespacesFitInMemoryAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "", kv.Options{Loaded: 2})
		a, b, c := options.ModuleNamespace{Tool: "a"}, options.ModuleNamespace{Tool: "b"}, options.ModuleNamespace{Tool: "c"}
		set(t, s, a, "k", "1", 0)
		set(t, s, b, "k", "1", time.Minute)
		if err := s.Set(t.Context(), c, "k", nil, 0); !errors.Is(err, kv.ErrQuota) {
			t.Errorf("err = %v", err)
		}
		want(t, s, a, "k", "1")
		time.Sleep(time.Minute)
		set(t, s, c, "k", "1", 0) // in the place of b, which holds nothing any more
		want(t, s, a, "k", "1")
	})
}

// Random operations leave what a map has, over restarts and with namespaces that
// come and go.
func TestLikeAMap(t *testing.T) {
	random := seed.Rand(t)
	dir := filepath.Join(t.TempDir(), "kv")
	s := open(t, dir, kv.Options{Loaded: 2})
	model := map[options.ModuleNamespace]map[string]string{}
	for range 500 {
		n := options.ModuleNamespace{Tool: fmt.Sprint(random.IntN(4))}
		key := fmt.Sprint(random.IntN(5))
		if model[n] == nil {
			model[n] = map[string]string{}
		}
		switch random.IntN(8) {
		case 0, 1, 2:
			value := fmt.Sprint(random.Int())
			set(t, s, n, key, value, 0)
			model[n][key] = value
		case 3, 4:
			_, had := model[n][key]
			if found, err := s.Delete(t.Context(), n, key); err != nil || found != had {
				t.Fatalf("deleted: %v, %v; want %v", found, err, had)
			}
			delete(model[n], key)
		case 5:
			s.Close()
			s = open(t, dir, kv.Options{Loaded: 2})
		default:
			value, ok := model[n][key]
			if !ok {
				value = "-"
			}
			want(t, s, n, key, value)
		}
	}
}

func TestValues(t *testing.T) {
	both(t, func(t *testing.T, dir string) {
		n := 0
		storetest.Values(t, func(t *testing.T, o kv.Options) []*kv.Store {
			at := dir
			if n++; dir != "" {
				at = filepath.Join(dir, fmt.Sprint(n))
			}
			s := open(t, at, o)
			return []*kv.Store{s, s, s}
		})
	})
}
