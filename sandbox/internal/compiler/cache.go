package compiler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
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

	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
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
	patience  time.Duration          // with other processes that compile
	print     func() (string, error) // returns the fingerprint of the engine

	kept   int64     // most bytes of all entries
	tidied time.Time // guarded by turn, as is
	added  int64     // since then
}

// Open opens the cache in a folder, which is made (0700) if need be, and removes from it
// what was not used for long. Without a folder it lasts until it is closed.
func Open(dir string) (c *Cache, err error) {
	c = &Cache{dir: dir, kept: maxKept, limits: bounds(), patience: 10 * slower * time.Minute}
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

// private makes a folder, and returns an error if others than its owner may use it, or if another
// user owns it.
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

// A Key is what a module is known by: a digest of all that it was made from.
type Key [sha256.Size]byte

// A Code is a module whose machine code the cache holds.
type Code struct {
	// Outline is what the engine of a runtime gets instead of the module. With the machine code the
	// engine makes the same of it, see [rewrite.Outline].
	Outline []byte
	Size    int64  // of the machine code, and some bytes for each function
	Kept    []byte // what else is to be known of the module
	note    note
}

// A note says that a module has been compiled within the bounds.
type note struct {
	Engine string `json:"engine"`         // its fingerprint
	Entry  string `json:"entry"`          // path in the cache
	Size   int64  `json:"size"`           // of the entry
	Sum    string `json:"sum,omitempty"`  // digest of the entry: the engine checks only its code, not the table before
	Kept   string `json:"kept,omitempty"` // digest of the file next to the note
}

// kept is the file next to a note that is of a [Key].
type kept struct{ Outline, Kept []byte }

func (c *Cache) file(key Key, suffix string) string {
	return filepath.Join(c.dir, hex.EncodeToString(key[:])+suffix)
}

// Look returns the module of a key, which is used now.
func (c *Cache) Look(key Key) (Code, bool) {
	n, ok := c.noted(c.file(key, noteSuffix))
	if !ok {
		return Code{}, false
	}
	b, err := os.ReadFile(c.file(key, keptSuffix))
	sum := sha256.Sum256(b)
	var k kept
	if err != nil || hex.EncodeToString(sum[:]) != n.Kept || gob.NewDecoder(bytes.NewReader(b)).Decode(&k) != nil {
		return Code{}, false
	}
	return Code{k.Outline, n.Size, k.Kept, n}, true
}

// Has reports whether the cache holds the module of a key. To look is not to use.
func (c *Cache) Has(key Key) bool {
	n, ok := c.look(c.file(key, noteSuffix))
	return ok && n.Kept != ""
}

// HasCode reports whether the cache holds the machine code of a module, under any key.
func (c *Cache) HasCode(wasm []byte) bool {
	_, ok := c.look(c.file(sha256.Sum256(wasm), noteSuffix))
	return ok
}

// Fill has the cache hold the machine code of a module, and know it by a key. Unless the
// code is there, under this key or another, it waits for its turn, and compiles the
// module. The error is a [*rewrite.CostError] if that takes too much.
func (c *Cache) Fill(ctx context.Context, key Key, wasm, keep []byte) (Code, error) {
	n, err := c.filled(ctx, wasm)
	if err != nil {
		return Code{}, err
	}
	code := Code{wasm, n.Size, keep, n}
	if n.Entry != "" { // an engine that interprets reads the module itself
		code.Outline = rewrite.Outline(wasm)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(kept{code.Outline, keep}); err != nil {
		return Code{}, err
	}
	sum := sha256.Sum256(b.Bytes())
	n.Kept = hex.EncodeToString(sum[:])
	if err := c.write(c.file(key, keptSuffix), b.Bytes()); err != nil {
		return Code{}, err
	}
	return code, c.writeNote(key, n)
}

// Loaded tells the cache that an engine has loaded a module. It returns [ErrGone] if the
// machine code was not there any more, or is not to be used: then the engine has
// compiled the outline, in which every function traps.
func (c *Cache) Loaded(code Code, failed error) error {
	if failed == nil && (code.note.Entry == "" || c.holds(code.note)) {
		return nil
	}
	if code.note.Entry != "" {
		_ = os.Remove(filepath.Join(c.dir, code.note.Entry)) // its notes agree with nothing then
	}
	return errors.Join(ErrGone, failed)
}

// ErrGone is why a module that was in the cache is not loaded: compile it again.
var ErrGone = errors.New("the machine code is no longer in the cache, or the engine does not accept it; compile the module again")

// filled returns the note of a module, which it compiles if there is none.
func (c *Cache) filled(ctx context.Context, wasm []byte) (note, error) {
	key := Key(sha256.Sum256(wasm))
	if n, ok := c.noted(c.file(key, noteSuffix)); ok {
		return n, nil
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return note{}, ctx.Err()
	}
	release, err := c.alone(ctx)
	if err != nil {
		return note{}, err
	}
	defer release()
	if n, ok := c.noted(c.file(key, noteSuffix)); ok {
		return n, nil
	}
	return c.fill(ctx, key, wasm)
}

// turn holds a token while a module is compiled: one at a time.
var turn = make(chan struct{}, 1)

// alone waits until no other process compiles into this folder. The system frees the
// lock of one that has ended; beyond its patience, and where there are no locks, a cache
// goes on without: then a module may be compiled twice, to the same end.
func (c *Cache) alone(ctx context.Context) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	release = func() { _ = f.Close() }
	for end := time.Now().Add(c.patience); time.Now().Before(end); {
		if locked, err := files.TryLock(f); locked || err != nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
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

func (c *Cache) writeNote(key Key, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return c.write(c.file(key, noteSuffix), b)
}

// noted returns a note that agrees with its entry, which is used now.
func (c *Cache) noted(file string) (note, bool) {
	n, ok := c.look(file)
	if ok {
		now := time.Now()
		_ = os.Chtimes(file, now, now) // as far as the file system takes it
	}
	return n, ok
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
	file := filepath.Join(c.dir, n.Entry)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() != n.Size {
		return false
	}
	sum, err := digest(file)
	return err == nil && sum == n.Sum
}

func digest(file string) (string, error) {
	b, err := os.ReadFile(file)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

// fill compiles a module in a folder of its own, and takes over what is left there, under
// the name by which the engine will look for it: that of the module's outline.
func (c *Cache) fill(ctx context.Context, key Key, wasm []byte) (n note, err error) {
	if n.Engine, err = c.print(); err != nil {
		return n, err
	}
	work, err := os.MkdirTemp(c.dir, workPrefix)
	if err != nil {
		return n, err
	}
	defer os.RemoveAll(work)
	if err := c.limits.compile(ctx, work, wasm); err != nil {
		return n, err
	}
	entry, size, err := made(filepath.Join(work, ofModule))
	if err != nil {
		return n, err
	}
	if size > c.limits.code {
		return n, costly("it has %d bytes of machine code, and may have %d", size, c.limits.code)
	}
	entry = filepath.Join(work, ofModule, entry)
	if n.Entry, _, err = made(filepath.Join(work, ofOutline)); err != nil {
		return n, err
	}
	n.Size = size
	if n.Entry != "" {
		if n.Sum, err = digest(entry); err == nil {
			err = c.adopt(entry, n.Entry)
		}
	}
	if err = errors.Join(err, c.writeNote(key, n)); err != nil {
		return n, err
	}
	c.tidy(time.Now(), size)
	return n, nil
}

// adopt moves a file into the cache, replacing a file that had no note.
func (c *Cache) adopt(file, entry string) error {
	to := filepath.Join(c.dir, entry)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(file, to)
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
	lockName     = "compiling.lock"
	noteSuffix   = ".json"
	keptSuffix   = ".module"

	// folders of the engine in one that is worked in
	ofModule  = "module"
	ofOutline = "outline"
)

// empty is the smallest module.
const empty = "\x00asm\x01\x00\x00\x00"

// fingerprint is where the engine would keep the empty module, which depends on all that
// its machine code does, such as the engine's version and the processor's features; and
// how entries are named.
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
	return ofOutline + " " + entry, err
}
