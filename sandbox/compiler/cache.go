package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

// costly refuses a module because of what compiling it takes.
func costly(format string, a ...any) error {
	return &rewrite.CostError{Reason: fmt.Sprintf(format, a...)}
}

// A Cache keeps compiled modules. Use it from several goroutines; several processes may
// use one folder. It must be closed.
type Cache struct {
	dir       string
	temporary bool // the folder ends with the cache
	engine    wazero.CompilationCache
	limits    limits
	print     func() (string, error) // returns the fingerprint of the engine

	kept   int64     // most bytes of all entries
	tidied time.Time // guarded by turn, as is
	added  int64     // since then
}

// Open opens the cache in a folder, which is made (0700) if need be, and removes from it
// what was not used for long. Without a folder it lasts until it is closed.
func Open(dir string) (c *Cache, err error) {
	c = &Cache{dir: dir, kept: maxKept, limits: bounds()}
	if dir == "" {
		c.temporary = true
		if c.dir, err = os.MkdirTemp("", "wasmgate-code-"); err != nil {
			return nil, err
		}
	}
	if err := private(c.dir); err != nil {
		return nil, err
	}
	c.tidy(time.Now(), 0)
	if c.engine, err = wazero.NewCompilationCacheWithDir(c.dir); err != nil {
		return nil, err
	}
	c.print = sync.OnceValues(c.fingerprint)
	return c, nil
}

// private makes a folder, and returns an error if others than its owner may use it, or
// if its owner is somebody else.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && runtime.GOOS != "windows" { // Windows has no such bits
		return fmt.Errorf("%s is open to others (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	if !own(info) {
		return fmt.Errorf("%s belongs to another user: who writes there runs code here; choose another folder", dir)
	}
	return nil
}

// Engine is what the engine of a runtime reads, whose configuration must be [Config].
func (c *Cache) Engine() wazero.CompilationCache { return c.engine }

// Config is the configuration of all engines that share a cache.
func Config() wazero.RuntimeConfig { return wazero.NewRuntimeConfig().WithDebugInfoEnabled(false) }

// Close closes the engine. It must follow the end of all runtimes that use it.
func (c *Cache) Close(ctx context.Context) error {
	err := c.engine.Close(ctx)
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// A note lies beside an entry of the cache, and says that the module has been compiled
// within the bounds.
type note struct {
	Engine string `json:"engine"` // its fingerprint
	Entry  string `json:"entry"`  // path in the cache
	Size   int64  `json:"size"`   // of the entry: its machine code, and some bytes for each function
}

func (c *Cache) noteFile(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+noteSuffix)
}

// Fill has the cache hold the machine code of a module, and returns how many bytes it
// has. Unless it is there, which takes some milliseconds, it waits for its turn, and
// compiles the module. The error is a [*rewrite.CostError] if that takes too much.
func (c *Cache) Fill(ctx context.Context, wasm []byte) (int64, error) {
	file := c.noteFile(wasm)
	if size, ok := c.noted(file); ok {
		return size, nil
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if size, ok := c.noted(file); ok {
		return size, nil
	}
	return c.fill(ctx, wasm, file)
}

// turn holds a token while a module is compiled: one at a time.
var turn = make(chan struct{}, 1)

// Has reports whether the cache holds the machine code of a module.
func (c *Cache) Has(wasm []byte) bool {
	_, ok := c.noted(c.noteFile(wasm))
	return ok
}

// FillAs is as [Cache.Fill], and has the cache know the module by a key as well, from
// which it was made.
func (c *Cache) FillAs(ctx context.Context, key, wasm []byte) error {
	if _, err := c.Fill(ctx, wasm); err != nil {
		return err
	}
	b, err := os.ReadFile(c.noteFile(wasm))
	if err != nil {
		return err
	}
	return c.write(c.noteFile(key), b)
}

// HasAs is as [Cache.Has] for a key. To look is not to use.
func (c *Cache) HasAs(key []byte) bool {
	_, ok := c.look(c.noteFile(key))
	return ok
}

// write writes a file in one step.
func (c *Cache) write(file string, b []byte) error {
	work, err := os.MkdirTemp(c.dir, workPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	draft := filepath.Join(work, "note")
	return errors.Join(os.WriteFile(draft, b, 0o600), os.Rename(draft, file))
}

// noted returns the size of an entry that its note agrees with, which is used now.
func (c *Cache) noted(file string) (int64, bool) {
	n, ok := c.look(file)
	if ok {
		now := time.Now()
		_ = os.Chtimes(file, now, now) // as far as the file system takes it
	}
	return n.Size, ok
}

// look reads a note, if it agrees with its entry.
func (c *Cache) look(file string) (note, bool) {
	var n note
	b, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(b, &n) != nil {
		return n, false
	}
	if engine, err := c.print(); err != nil || n.Engine != engine || n.Size > c.limits.code {
		return n, false
	}
	if n.Entry != "" && !c.holds(n) { // an engine that interprets makes none
		return n, false
	}
	return n, true
}

func (c *Cache) holds(n note) bool {
	if !filepath.IsLocal(n.Entry) {
		return false
	}
	info, err := os.Lstat(filepath.Join(c.dir, n.Entry))
	return err == nil && info.Mode().IsRegular() && info.Size() == n.Size
}

// fill compiles a module in a folder of its own, and takes over what is left there.
func (c *Cache) fill(ctx context.Context, wasm []byte, file string) (int64, error) {
	engine, err := c.print()
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp(c.dir, workPrefix)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	if err := c.limits.compile(ctx, work, wasm); err != nil {
		return 0, err
	}
	entry, size, err := made(work)
	if err != nil {
		return 0, err
	}
	if size > c.limits.code {
		return 0, costly("it has %d bytes of machine code, and may have %d", size, c.limits.code)
	}
	if err := c.adopt(work, entry); err != nil {
		return 0, err
	}
	b, err := json.Marshal(note{Engine: engine, Entry: entry, Size: size})
	if err != nil {
		return 0, err
	}
	if err := c.write(file, b); err != nil {
		return 0, err
	}
	c.tidy(time.Now(), size)
	return size, nil
}

// adopt moves an entry into the cache, in the place of what was there without a note.
func (c *Cache) adopt(work, entry string) error {
	if entry == "" {
		return nil
	}
	to := filepath.Join(c.dir, entry)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, entry), to)
}

// made returns what an engine has left in a folder of its own: one entry at most.
func made(work string) (entry string, size int64, err error) {
	files, err := filepath.Glob(filepath.Join(work, enginePrefix+"*", "*"))
	if err != nil || len(files) == 0 {
		return "", 0, err
	}
	if len(files) > 1 {
		return "", 0, fmt.Errorf("the engine has made %d files", len(files))
	}
	info, err := os.Lstat(files[0])
	if err != nil {
		return "", 0, err
	}
	entry, err = filepath.Rel(work, files[0])
	return entry, info.Size(), err
}

// enginePrefix is how the folder begins in which the engine keeps its entries, whose
// name has its version and the platform.
const (
	enginePrefix = "wazero-"
	workPrefix   = "work-"
	noteSuffix   = ".json"
)

// empty is the smallest module.
const empty = "\x00asm\x01\x00\x00\x00"

// fingerprint is where the engine would keep the empty module: it depends on all that
// its machine code does, such as the engine's version and the processor's features.
func (c *Cache) fingerprint() (string, error) {
	work, err := os.MkdirTemp(c.dir, workPrefix)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := compileHere(context.Background(), work, []byte(empty), 1); err != nil { // of no call
		return "", err
	}
	entry, _, err := made(work)
	return entry, err
}
