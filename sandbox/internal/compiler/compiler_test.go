package compiler

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

func TestMain(m *testing.M) {
	Main()
	if dir := os.Getenv(lockEnv); dir != "" {
		holdLock(dir)
		return
	}
	os.Exit(m.Run())
}

// leb is an unsigned number (WebAssembly Core 2.0, 5.2.2).
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func sized(b []byte) []byte { return append(leb(len(b)), b...) }

func section(id byte, b ...[]byte) []byte {
	return append([]byte{id}, sized(bytes.Join(b, nil))...)
}

// calls is a module with a function from some values to as many, which calls another
// such function so many times: two bytes each.
func calls(values, times int) []byte {
	numbers := append(leb(values), bytes.Repeat([]byte{0x7f}, values)...)
	var gets []byte
	for i := range values {
		gets = append(gets, append([]byte{0x20}, leb(i)...)...)
	}
	body := func(code []byte) []byte { return sized(bytes.Join([][]byte{{0}, gets, code, {0x0b}}, nil)) }
	return bytes.Join([][]byte{
		[]byte(empty),
		section(1, leb(1), []byte{0x60}, numbers, numbers),
		section(3, leb(2), leb(0), leb(0)),
		section(10, leb(2), body(nil), body(bytes.Repeat([]byte{0x10, 0}, times))),
	}, nil)
}

// tooMuch compiles ever larger modules until one takes too much, because how much one takes
// depends on the machine, and returns that error.
func tooMuch(ctx context.Context, c *Cache) error {
	c.limits.code, c.limits.memory = 1<<40, max(c.limits.memory, 16<<30)
	for times := 600; ; times *= 2 {
		wasm := calls(1000, times)
		if _, err := c.Fill(ctx, keyOf(wasm), wasm, nil); err != nil {
			return err
		}
	}
}

func open(t *testing.T, dir string) *Cache {
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// keyOf is a key of a module, as a runtime has others.
func keyOf(wasm []byte) Key { return sha256.Sum256(append([]byte("key"), wasm...)) }

// noteOf is the note of a module, under the module's own digest.
func noteOf(t *testing.T, c *Cache, wasm []byte) (file string, n note) {
	file = c.file(sha256.Sum256(wasm), noteSuffix)
	b, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(b, &n)); err != nil {
		t.Fatal(err)
	}
	return file, n
}

func fill(t *testing.T, c *Cache, wasm []byte) Code {
	t.Helper()
	code, err := c.Fill(t.Context(), keyOf(wasm), wasm, []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := calls(10, 10)
	first := open(t, dir)
	code := fill(t, first, wasm)
	_, n := noteOf(t, first, wasm)
	entry := filepath.Join(dir, n.Entry)
	made, err := os.Stat(entry)
	if err != nil || code.Size != made.Size() || code.Size < 1000 || len(code.Outline) > len(wasm)+64 || bytes.Contains(code.Outline, bytes.Repeat([]byte{0x10, 0}, 10)) {
		t.Fatal(code, made, err)
	}
	// Another process finds it, and its engine loads it: nothing is compiled again.
	c := open(t, dir)
	again, ok := c.Look(keyOf(wasm))
	if !ok || again.Size != code.Size || string(again.Kept) != "kept" || !bytes.Equal(again.Outline, code.Outline) || !c.Has(keyOf(wasm)) || c.Has(keyOf(nil)) || !c.HasCode(wasm) || c.HasCode(calls(1, 1)) {
		t.Errorf("%v, found: %v", again, ok)
	}
	engine := wazero.NewRuntimeWithConfig(t.Context(), Config().WithCompilationCache(c.Engine()))
	defer engine.Close(t.Context())
	_, err = engine.CompileModule(t.Context(), again.Outline)
	check(t, c.Loaded(again, err))
	if now, err := os.Stat(entry); err != nil || !os.SameFile(made, now) {
		t.Error("the entry was made again", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, workPrefix+"*")); left != nil {
		t.Error("left:", left)
	}
}

// seven is a module with one function, f, which returns 7, after some instructions on it.
func seven(more ...byte) []byte {
	body := slices.Concat([]byte{0, 0x41, 7}, more, []byte{0x0b})
	return slices.Concat([]byte(empty), section(1, leb(1), []byte{0x60, 0, 1, 0x7f}), section(3, leb(1), leb(0)),
		section(7, leb(1), []byte{1, 'f', 0, 0}), section(10, leb(1), sized(body)))
}

// run has a new engine load a module of a cache, and calls its function f.
func run(t *testing.T, c *Cache, code Code) (uint64, error) {
	engine := wazero.NewRuntimeWithConfig(t.Context(), Config().WithCompilationCache(c.Engine()))
	defer engine.Close(t.Context())
	compiled, err := engine.CompileModule(t.Context(), code.Outline)
	if err := c.Loaded(code, err); err != nil {
		return 0, err
	}
	m, err := engine.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig())
	check(t, err)
	results, err := m.ExportedFunction("f").Call(t.Context())
	check(t, err)
	return results[0], nil
}

// A loaded module does what the module does, and not what its outline does.
func TestLoadedIsTheModule(t *testing.T) {
	wasm := seven()
	dir := filepath.Join(t.TempDir(), "cache")
	code := fill(t, open(t, dir), wasm)
	if got, err := run(t, open(t, dir), code); err != nil || got != 7 {
		t.Error(got, err)
	}
	for name, spoil := range map[string]func(entry string) error{
		"gone":    os.Remove,
		"cut off": func(entry string) error { return os.Truncate(entry, code.Size-5) },
		"another": func(entry string) error {
			b, err := os.ReadFile(entry)
			b[len(b)/2] ^= 1
			return errors.Join(err, os.WriteFile(entry, b, 0o600))
		},
	} {
		c := open(t, dir)
		check(t, spoil(filepath.Join(dir, code.note.Entry)))
		if _, err := run(t, c, code); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
		if c.Has(keyOf(wasm)) {
			t.Error(name, "is still held")
		}
		fill(t, c, wasm)
	}
}

// If the machine code of a module is as large as that of its outline, the code itself tells them
// apart: if the module's was removed, the engine leaves the outline's in its place.
func TestOutlineOfTheSameSize(t *testing.T) {
	var wasm []byte
	for n := range 60 { // of sign extensions from 16 bits, and of 7 and 64 bits and back, until the sizes agree
		try := seven(append(bytes.Repeat([]byte{0xc1}, n%12), bytes.Repeat([]byte{0xac, 0xa7}, n/12)...)...)
		work := t.TempDir()
		check(t, compileBoth(t.Context(), work, try, 1))
		_, module, err := made(filepath.Join(work, ofModule))
		check(t, err)
		if _, outline, err := made(filepath.Join(work, ofOutline)); err == nil && module == outline {
			wasm = try
			break
		}
	}
	if wasm == nil {
		t.Skip("no module is as large as its outline, on this processor")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, dir)
	code := fill(t, c, wasm)
	check(t, os.Remove(filepath.Join(dir, code.note.Entry)))
	if got, err := run(t, c, code); !errors.Is(err, ErrGone) {
		t.Errorf("loaded, and returns %d: %v", got, err)
	}
	again := open(t, dir) // the other engine has it in memory
	if got, err := run(t, again, fill(t, again, wasm)); err != nil || got != 7 {
		t.Error(got, err)
	}
}

// locked has a test hold the lock of a cache's folder, as another process does.
func locked(t *testing.T, c *Cache) *os.File {
	f, err := os.OpenFile(filepath.Join(c.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	check(t, err)
	t.Cleanup(func() { _ = f.Close() })
	if ok, err := files.TryLock(f); !ok || err != nil {
		t.Fatal("the lock is not free", err)
	}
	return f
}

// A module that another process compiles is waited for, and not compiled again.
func TestProcessesCompileInTurn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, other := open(t, dir), open(t, dir)
	wasm := calls(10, 10)
	lock := locked(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Fill(ctx, keyOf(wasm), wasm, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("it does not wait:", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Fill(t.Context(), keyOf(wasm), wasm, nil)
		done <- err
	}()
	n, err := other.fill(t.Context(), sha256.Sum256(wasm), wasm)
	check(t, err)
	made, err := os.Stat(filepath.Join(dir, n.Entry))
	check(t, errors.Join(err, lock.Close()))
	check(t, <-done)
	if now, err := os.Stat(filepath.Join(dir, n.Entry)); err != nil || !os.SameFile(made, now) {
		t.Error("it was compiled twice", err)
	}
}

// A process that holds the lock for too long does not keep others from compiling.
func TestPatienceEnds(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"))
	locked(t, c)
	c.patience = 30 * time.Millisecond
	fill(t, c, calls(10, 10))
}

// A lock that a process left when it was killed while it compiled blocks no other process.
func TestLockOfTheDead(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"))
	self, err := executable()
	check(t, err)
	holder := exec.CommandContext(t.Context(), self)
	holder.Env = append(os.Environ(), lockEnv+"="+c.dir)
	holder.Stderr = os.Stderr
	out, err := holder.StdoutPipe()
	check(t, errors.Join(err, holder.Start()))
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatal(line, err)
	}
	if file, err := os.OpenFile(filepath.Join(c.dir, lockName), os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	} else if ok, err := files.TryLock(file); ok || file.Close() != nil {
		t.Fatal("the other process does not hold the lock", err)
	}
	check(t, holder.Process.Kill())
	_ = holder.Wait()
	c.patience = time.Hour
	fill(t, c, calls(10, 10))
}

// lockEnv names the folder whose lock a process of this test takes, and keeps for as long as it lives.
const lockEnv = "WASMGATE_TEST_LOCK"

func holdLock(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		_, err = files.TryLock(f)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	time.Sleep(time.Minute) // it is killed before
	_ = f.Close()
}

// Files that no note names are not read: neither what an engine left that had no bounds, nor
// another engine's, nor half of it.
func TestCacheIsReadOnlyIfItAgrees(t *testing.T) {
	wasm := calls(10, 10)
	write := func(t *testing.T, file string, n note) {
		b, err := json.Marshal(n)
		check(t, err)
		check(t, os.WriteFile(file, b, 0o600))
	}
	for name, spoil := range map[string]func(t *testing.T, dir, file string, n note){
		"no note": func(t *testing.T, dir, file string, n note) { check(t, os.Remove(file)) },
		"another engine": func(t *testing.T, dir, file string, n note) {
			n.Engine = "outline wazero-v0.0.0-none/0"
			write(t, file, n)
		},
		"no JSON": func(t *testing.T, dir, file string, n note) { check(t, os.WriteFile(file, []byte("{"), 0o600)) },
		"another size": func(t *testing.T, dir, file string, n note) {
			check(t, os.Truncate(filepath.Join(dir, n.Entry), n.Size-1))
		},
		"another place": func(t *testing.T, dir, file string, n note) {
			check(t, os.Rename(filepath.Join(dir, n.Entry), filepath.Join(dir, "..", "entry")))
			n.Entry = "../entry"
			write(t, file, n)
		},
		"no entry": func(t *testing.T, dir, file string, n note) { check(t, os.Remove(filepath.Join(dir, n.Entry))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			c := open(t, dir)
			size := fill(t, c, wasm).Size
			file, n := noteOf(t, c, wasm)
			before, err := os.Stat(filepath.Join(dir, n.Entry))
			check(t, err)
			spoil(t, dir, file, n)
			if again := fill(t, c, wasm).Size; again != size {
				t.Error(again, "bytes, before", size)
			}
			_, n = noteOf(t, c, wasm)
			if after, err := os.Stat(filepath.Join(dir, n.Entry)); err != nil || os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
				t.Error("the entry was not made again", err)
			}
		})
	}
	for name, spoil := range map[string]func(t *testing.T, c *Cache, note, kept string){
		"nothing kept":       func(t *testing.T, c *Cache, note, kept string) { check(t, os.Remove(kept)) },
		"another thing kept": func(t *testing.T, c *Cache, note, kept string) { check(t, os.WriteFile(kept, []byte("x"), 0o600)) },
		"that of another": func(t *testing.T, c *Cache, note, kept string) {
			fill(t, c, calls(1, 1))
			check(t, os.Rename(c.file(keyOf(calls(1, 1)), keptSuffix), kept))
		},
		"the module's own note": func(t *testing.T, c *Cache, note, kept string) {
			check(t, os.Rename(c.file(sha256.Sum256(wasm), noteSuffix), note))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, filepath.Join(t.TempDir(), "cache"))
			fill(t, c, wasm)
			spoil(t, c, c.file(keyOf(wasm), noteSuffix), c.file(keyOf(wasm), keptSuffix))
			if code, ok := c.Look(keyOf(wasm)); ok {
				t.Errorf("found %v", code)
			}
		})
	}
}

// TestFlippedBits: no bit of an entry can change without being found before the engine reads
// it. The engine's own checksum leaves out the table of functions, by which it would jump.
func TestFlippedBits(t *testing.T) {
	wasm := seven()
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, dir)
	code := fill(t, c, wasm)
	entry := filepath.Join(dir, code.note.Entry)
	whole, err := os.ReadFile(entry)
	check(t, err)
	for i := range whole {
		whole[i] ^= 1 << (i % 8)
		check(t, os.WriteFile(entry, whole, 0o600))
		if c.Has(keyOf(wasm)) {
			t.Errorf("byte %d of %d is changed, and the entry is held for whole", i, len(whole))
		}
		whole[i] ^= 1 << (i % 8)
	}
	check(t, os.WriteFile(entry, whole, 0o600))
	if !c.Has(keyOf(wasm)) {
		t.Error("the whole entry is not held")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A module that takes too much is refused, and leaves nothing behind. How much one takes depends on the machine, so they grow
// until one does, each in a folder of its own.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*limits)
		wasm func(times int) []byte
		want string
		skip bool
	}{
		"memory": {func(l *limits) { l.memory = 48 << 20 }, func(times int) []byte { return calls(1000, 100*times) },
			"more than 48 MiB of memory", runtime.GOOS != "linux" && runtime.GOOS != "windows"},
		"CPU": {func(l *limits) { l.cpu, l.code, l.memory = time.Second, 1<<40, max(l.memory, 16<<30) }, func(times int) []byte { return calls(1000, 600*times) },
			"more than 1s of CPU", false},
		"machine code": {func(l *limits) { l.code = 1 << 20 }, func(times int) []byte { return calls(100*times, 1000) },
			"bytes of machine code, and may have 1048576", false},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.skip {
				t.Skip("this system does not bound it")
			}
			if name == "CPU" {
				unraced.Long(t)
			}
			var dir string
			var c *Cache
			var err error
			for times := 1; err == nil; times *= 2 {
				dir = filepath.Join(t.TempDir(), "cache")
				c = open(t, dir)
				tt.set(&c.limits)
				wasm := tt.wasm(times)
				_, err = c.Fill(t.Context(), keyOf(wasm), wasm, nil)
			}
			var cost *rewrite.CostError
			if !errors.As(err, &cost) || !strings.Contains(err.Error(), "too costly to compile: it ") || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
			check(t, os.Remove(filepath.Join(dir, lockName)))
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			entries, _ := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*"))
			if len(left) > 1 || entries != nil { // the folder of the engine itself
				t.Error("left:", left, entries)
			}
			c.limits = bounds()
			if _, err := c.Fill(t.Context(), keyOf(nil), calls(1, 1), nil); err != nil {
				t.Error("the next module:", err)
			}
		})
	}
}

// A child that does not get the processor is ended one day, and that is not said to be the
// module's fault.
func TestBusyMachine(t *testing.T) {
	c := open(t, "")
	c.limits.time = 100 * time.Millisecond
	err := tooMuch(t.Context(), c)
	if _, blamed := errors.AsType[*rewrite.CostError](err); blamed || !strings.Contains(err.Error(), "within 100ms, in which the compiler had ") || !strings.Contains(err.Error(), "too busy") {
		t.Error(err)
	}
	if l := bounds(); l.time < 20*l.cpu {
		t.Errorf("a child that may have %v of CPU is ended after %v", l.cpu, l.time)
	}
}

// A system that counts by ticks can end a child that by its own clock has had less CPU.
func TestCPUByTicks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no such signal")
	}
	child := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprint("exit ", cpuSpent))
	err := child.Run()
	if cost, ok := errors.AsType[*rewrite.CostError](bounds().ending(child.ProcessState, err, "")); !ok || !strings.Contains(cost.Reason, "of CPU") {
		t.Error(err)
	}
}

// Wherever memory ends, in the compiler's heap or when the engine maps machine code, which
// panics then, it is said as what it is. With less than it begins with, a child has none for
// the runtime of Go, which can end in any way.
func TestMemoryEndsAnywhere(t *testing.T) {
	unraced.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("the limit of memory is that of Linux")
	}
	fill := func(mb uint64, wasm []byte) error {
		c := open(t, "")
		c.limits.memory = mb << 20
		_, err := c.Fill(t.Context(), keyOf(wasm), wasm, nil)
		return err
	}
	wasm, compiled := calls(400, 100), 0
	least := uint64(48)
	for fill(least, calls(1, 1)) != nil && least < 400 {
		least += 4
	}
	for mb := least + 8; compiled < 2 && mb < 400; mb += 4 { // a child of the same limit does not always need the same
		err := fill(mb, wasm)
		if err == nil {
			compiled++
			continue
		}
		if cost, ok := errors.AsType[*rewrite.CostError](err); !ok || !strings.Contains(cost.Reason, "MiB of memory") {
			t.Errorf("%d MiB: %v", mb, err)
		}
	}
	if compiled == 0 {
		t.Error("it never compiles: the test tests little")
	}
}

func TestWhatIsInvalidIsSaid(t *testing.T) {
	_, err := open(t, "").Fill(t.Context(), keyOf(nil), []byte("no module"), nil)
	var cost *rewrite.CostError
	if err == nil || errors.As(err, &cost) || !strings.Contains(err.Error(), "invalid magic number") {
		t.Error(err)
	}
}

func TestFillEndsWithItsContext(t *testing.T) {
	c := open(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := tooMuch(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A child whose gateway is gone does not go on.
func TestChildEndsWithTheGateway(t *testing.T) {
	self, err := executable()
	check(t, err)
	for times := 600; ; times *= 2 { // until it has not compiled the module before it sees the end
		dir := t.TempDir()
		c := exec.CommandContext(t.Context(), self)
		c.Args, c.Dir = []string{childName, fmt.Sprint(16 << 30), "60"}, dir
		c.Stderr = os.Stderr
		prepare(c)
		in, err := c.StdinPipe()
		check(t, err)
		check(t, c.Start())
		check(t, gob.NewEncoder(in).Encode(order{dir, calls(1000, times)}))
		check(t, in.Close())
		if err := c.Wait(); err != nil {
			if c.ProcessState.ExitCode() != 3 {
				t.Error(err)
			}
			return
		}
	}
}

// A child has nothing of the environment, in which secrets are.
func TestChildHasNoSecrets(t *testing.T) {
	secret := rand.Text()
	t.Setenv("WASMGATE_TEST_SECRET", secret)
	for _, v := range environment() {
		if strings.Contains(v, secret) || !strings.HasPrefix(v, "SystemRoot=") {
			t.Errorf("a child gets %s", v)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	c, done := open(t, ""), make(chan error)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		done <- tooMuch(ctx, c)
	}()
	seen := 0
	for until := time.Now().Add(3 * time.Minute); seen == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		files, _ := filepath.Glob("/proc/self/task/*/children")
		for _, file := range files {
			b, _ := os.ReadFile(file)
			for _, pid := range strings.Fields(string(b)) {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				if !strings.HasPrefix(string(line), childName) { // not yet
					continue
				}
				env, err := os.ReadFile("/proc/" + pid + "/environ")
				if err != nil { // it has ended
					continue
				}
				if seen++; strings.Contains(string(env), secret) {
					t.Error("a child has the secret in its environment")
				}
			}
		}
	}
	end()
	<-done
	if seen == 0 {
		t.Error("no child was seen")
	}
}

func TestOnlyItsOwnerMayUseTheFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such bits")
	}
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o770))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "open to others (mode 0770): chmod 700 it") {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	check(t, os.Chmod(dir, 0o700))
	check(t, os.Chown(dir, 12345, -1))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, dir)
	used, unused := calls(3, 3), calls(4, 4)
	fill(t, c, used)
	fill(t, c, unused)
	now := time.Now()
	old := now.Add(-maxAge - time.Hour)
	age := func(path string) { check(t, os.Chtimes(path, old, old)) }
	notes := func(wasm []byte) []string {
		return []string{c.file(keyOf(wasm), noteSuffix), c.file(sha256.Sum256(wasm), noteSuffix)}
	}
	for _, file := range notes(unused) {
		age(file)
	}
	entries, err := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*"))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		age(e) // what counts is when an entry was last used, and its note has that
	}
	work, stray := filepath.Join(dir, workPrefix+"dead"), filepath.Join(filepath.Dir(entries[0]), "stray")
	check(t, errors.Join(os.Mkdir(work, 0o700), os.WriteFile(stray, nil, 0o600)))
	age(work)
	age(stray)
	c = open(t, dir)
	if !c.Has(keyOf(used)) || c.Has(keyOf(unused)) {
		t.Error("kept:", c.Has(keyOf(used)), c.Has(keyOf(unused)))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*")); len(left) != 1 {
		t.Error("entries left:", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+keptSuffix)); len(left) != 1 {
		t.Error("kept of modules:", left)
	}
	if _, err := os.Stat(work); err == nil {
		t.Error("the folder of a process that is gone is left")
	}
}

// Beyond the size what was used last stays.
func TestPruneBySize(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"))
	now := time.Now()
	var all [][]byte
	for i := range 3 {
		all = append(all, calls(3, i+1))
		fill(t, c, all[i])
		at := now.Add(time.Duration(i-3) * time.Minute)
		for _, key := range []Key{keyOf(all[i]), sha256.Sum256(all[i])} {
			check(t, os.Chtimes(c.file(key, noteSuffix), at, at))
		}
	}
	c.kept = 1
	c.prune(now)
	for i, wasm := range all {
		if _, loads := c.look(c.file(sha256.Sum256(wasm), noteSuffix)); (loads || c.Has(keyOf(wasm))) != (i == 2) {
			t.Error("module", i, "kept:", loads, c.Has(keyOf(wasm)))
		}
	}
}
