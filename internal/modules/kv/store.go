package kv

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/files"
)

const (
	// maxKey and maxName bound a key, and the name of a tenant or tool, in bytes.
	maxKey  = 512
	maxName = 512
	// maxBytes bounds Options.Bytes: files are written whole.
	maxBytes = 32 << 20
)

var (
	// ErrQuota is wrapped by an error about a quota. The tool may see its text.
	ErrQuota = errors.New("quota exceeded")
	// ErrInvalid is wrapped by an error about a key, a lifetime or a namespace. The tool may see its
	// text.
	ErrInvalid = errors.New("not valid")
	// ErrCorrupt is wrapped by an error about a file that is not as it was written. Every use of the
	// namespace fails until the file is restored or removed.
	ErrCorrupt = errors.New("file is corrupt")
	// ErrClosed is the error of a closed Store.
	ErrClosed = errors.New("kv: the store is closed")
)

// Options are quotas. Zero means the default; a negative number is an error.
type Options struct {
	Keys       int // in a namespace; default 1024
	ValueBytes int // of one value; default 64 KiB
	Bytes      int // of all keys and values in a namespace; default 1 MiB, at most 32 MiB
	// Loaded is how many unused namespaces stay in memory; others are read again. Without a directory
	// it is how many there can be. Default 64.
	Loaded int
	// Shared keeps the values in place of a directory, where several gateways see them.
	Shared options.ModuleValues
}

func (o Options) withDefaults() (Options, error) {
	for _, n := range []struct {
		name         string
		value        *int
		normal, most int
	}{
		{"Keys", &o.Keys, 1024, 1 << 20},
		{"ValueBytes", &o.ValueBytes, 64 << 10, maxBytes},
		{"Bytes", &o.Bytes, 1 << 20, maxBytes},
		{"Loaded", &o.Loaded, 64, 1 << 20},
	} {
		if *n.value < 0 || *n.value > n.most {
			return o, fmt.Errorf("kv: %s is %d; 0 to %d are possible", n.name, *n.value, n.most)
		}
		if *n.value == 0 {
			*n.value = n.normal
		}
	}
	return o, nil
}

// fit refuses more keys, or bytes of all keys and values, than a namespace may have.
func (o Options) fit(keys, bytes int) error {
	if keys > o.Keys {
		return fmt.Errorf("kv: there are %d keys, and no more are possible: %w", o.Keys, ErrQuota)
	}
	if bytes > o.Bytes {
		return fmt.Errorf("kv: keys and values would have %d bytes; at most %d are allowed: %w", bytes, o.Bytes, ErrQuota)
	}
	return nil
}

// A Store keeps values by namespace and key. It may be used from several
// goroutines: changes to one namespace happen one after the other, those to
// different ones at the same time.
type Store struct {
	dir   string // "" keeps all in memory
	o     Options
	users sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[options.ModuleNamespace]*slot
	idle   *list.List // of *slot that are unused; the one used last is in front
}

// A slot is the place of a namespace in memory. It belongs to its Store, and is
// guarded by the Store's mutex.
type slot struct {
	ns    options.ModuleNamespace
	space *space
	users int
	idle  *list.Element // nil while there are users
}

// Open returns the store in a directory, which it makes (0700) if there is none.
// It refuses one that other users may look into. Without a directory all is kept
// in memory, until Close.
func Open(dir string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		if err := prepare(dir); err != nil {
			return nil, fmt.Errorf("kv: open: %w", err)
		}
	}
	return &Store{dir: dir, o: o, slots: map[options.ModuleNamespace]*slot{}, idle: list.New()}, nil
}

// prepare makes dir, and removes what a process that died has left unfinished.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has no such bits
		return fmt.Errorf("other users may look into %s (mode %o); run chmod 700 on it, or choose another", dir, info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range entries {
		if strings.HasSuffix(f.Name(), files.Temporary) {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close waits for running operations and forgets what is in memory. Operations
// that come later fail with [ErrClosed].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.users.Wait()

	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.slots)
	s.idle.Init()
	return nil
}

// Get returns the value of key, if there is one. The value is the caller's.
func (s *Store) Get(ctx context.Context, ns options.ModuleNamespace, key string) (value []byte, found bool, err error) {
	if err := check(ns, key); err != nil {
		return nil, false, err
	}
	if s.o.Shared != nil {
		return s.o.Shared.Get(ctx, ns, key)
	}
	err = s.use(ns, func(sp *space) error {
		var e entry
		e, found = sp.get(key, time.Now())
		value = slices.Clone(e.Value)
		return nil
	})
	return value, found, err
}

// Set gives key a value, which expires after ttl; zero means never. An error
// leaves the value that it had.
func (s *Store) Set(ctx context.Context, ns options.ModuleNamespace, key string, value []byte, ttl time.Duration) error {
	if err := check(ns, key); err != nil {
		return err
	}
	if ttl < 0 {
		return fmt.Errorf("kv: a lifetime of %v: %w", ttl, ErrInvalid)
	}
	if len(value) > s.o.ValueBytes {
		return fmt.Errorf("kv: a value has %d bytes; at most %d are allowed: %w", len(value), s.o.ValueBytes, ErrQuota)
	}
	if s.o.Shared != nil {
		return s.o.Shared.Set(ctx, ns, key, value, ttl, func(keys, bytes int) error { return s.o.fit(keys+1, bytes+len(key)+len(value)) })
	}
	e := entry{Value: slices.Clone(value)}
	now := time.Now()
	if ttl > 0 {
		e.Expires = now.Add(ttl).UTC().Round(0) // the wall's time: it outlives the process
	}
	return s.use(ns, func(sp *space) error { return sp.set(key, e, now, s.o) })
}

// Delete removes key, and reports whether it had a value.
func (s *Store) Delete(ctx context.Context, ns options.ModuleNamespace, key string) (found bool, err error) {
	if err := check(ns, key); err != nil {
		return false, err
	}
	if s.o.Shared != nil {
		return s.o.Shared.Delete(ctx, ns, key)
	}
	err = s.use(ns, func(sp *space) (err error) {
		found, err = sp.remove(key, time.Now())
		return err
	})
	return found, err
}

// List returns the keys that begin with prefix, in order.
func (s *Store) List(ctx context.Context, ns options.ModuleNamespace, prefix string) (keys []string, err error) {
	if err := checkNames(ns); err != nil {
		return nil, err
	}
	if s.o.Shared != nil {
		return s.o.Shared.List(ctx, ns, prefix)
	}
	err = s.use(ns, func(sp *space) error {
		keys = sp.list(prefix, time.Now())
		return nil
	})
	return keys, err
}

// check refuses a key, or a namespace, that cannot be.
func check(ns options.ModuleNamespace, key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("kv: a key is 1 to %d bytes of UTF-8: %w", maxKey, ErrInvalid)
	}
	return checkNames(ns)
}

func checkNames(ns options.ModuleNamespace) error {
	if ns.Tool == "" || len(ns.Tenant) > maxName || len(ns.Tool) > maxName || !utf8.ValidString(ns.Tenant) || !utf8.ValidString(ns.Tool) {
		return fmt.Errorf("kv: namespace of tenant %.40q and tool %.40q: %w", ns.Tenant, ns.Tool, ErrInvalid)
	}
	return nil
}

// path is the file of ns. Names are hashed: whatever they hold, the file is in
// the directory, and the length in front keeps ("a", "bc") from ("ab", "c").
func (s *Store) path(ns options.ModuleNamespace) string {
	if s.dir == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(ns.Tenant), ns.Tenant, ns.Tool))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:]))
}

// use calls f with the namespace, loaded and locked. The lock is held while its file is read and
// written, which keeps changes in order. Only users of the same namespace wait for it.
func (s *Store) use(ns options.ModuleNamespace, f func(*space) error) error {
	sl, err := s.take(ns)
	if err != nil {
		return err
	}
	defer s.release(sl)
	sl.space.mu.Lock()
	defer sl.space.mu.Unlock()
	if err := sl.space.load(); err != nil {
		return err
	}
	return f(sl.space)
}

func (s *Store) take(ns options.ModuleNamespace) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	sl, ok := s.slots[ns]
	if !ok {
		if s.dir == "" && len(s.slots) >= s.o.Loaded && !s.sweep() {
			return nil, fmt.Errorf("kv: no room for another namespace, because %d are in memory: %w", s.o.Loaded, ErrQuota)
		}
		sl = &slot{ns: ns, space: &space{ns: ns, path: s.path(ns)}}
		s.slots[ns] = sl
	}
	if sl.idle != nil {
		s.idle.Remove(sl.idle)
		sl.idle = nil
	}
	sl.users++
	s.users.Add(1)
	return sl, nil
}

// release ends a use. A namespace that is in a file is dropped from memory if others were used more
// recently.
func (s *Store) release(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.users.Done()
	if sl.users--; sl.users > 0 {
		return
	}
	sl.idle = s.idle.PushFront(sl)
	for s.dir != "" && s.idle.Len() > s.o.Loaded {
		s.drop(s.idle.Back().Value.(*slot))
	}
}

// sweep drops the idle namespaces that hold nothing any more, and reports whether there were any.
func (s *Store) sweep() (dropped bool) {
	for e := s.idle.Front(); e != nil; {
		sl := e.Value.(*slot)
		e = e.Next()
		if sl.space.empty(time.Now()) {
			s.drop(sl)
			dropped = true
		}
	}
	return dropped
}

func (s *Store) drop(sl *slot) {
	s.idle.Remove(sl.idle)
	delete(s.slots, sl.ns)
}
