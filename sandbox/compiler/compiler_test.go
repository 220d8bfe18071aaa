package compiler

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

func TestMain(m *testing.M) {
	Main()
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

// note of the only module in a cache.
func theNote(t *testing.T, dir string) (file string, n note) {
	notes, err := filepath.Glob(filepath.Join(dir, "*"+noteSuffix))
	if err != nil || len(notes) != 1 {
		t.Fatal("notes:", notes, err)
	}
	b, err := os.ReadFile(notes[0])
	if err := errors.Join(err, json.Unmarshal(b, &n)); err != nil {
		t.Fatal(err)
	}
	return notes[0], n
}

func fill(t *testing.T, c *Cache, wasm []byte) int64 {
	size, err := c.Fill(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func TestFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := calls(10, 10)
	size := fill(t, open(t, dir), wasm)
	_, n := theNote(t, dir)
	entry := filepath.Join(dir, n.Entry)
	made, err := os.Stat(entry)
	if err != nil || size != made.Size() || size < 1000 {
		t.Fatal(size, made, err)
	}
	// Another process finds it, and its engine loads it: nothing is compiled again.
	c := open(t, dir)
	if again := fill(t, c, wasm); again != size {
		t.Error(again, "bytes, before", size)
	}
	engine := wazero.NewRuntimeWithConfig(t.Context(), Config().WithCompilationCache(c.Engine()))
	defer engine.Close(t.Context())
	if _, err := engine.CompileModule(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(entry); err != nil || !os.SameFile(made, now) {
		t.Error("the entry was made again", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, workPrefix+"*")); left != nil {
		t.Error("left:", left)
	}
}

// What a note does not vouch for is not read: neither what an engine left that had no
// bounds, nor another engine's, nor half of it.
func TestCacheIsReadOnlyIfItAgrees(t *testing.T) {
	wasm := calls(10, 10)
	for name, spoil := range map[string]func(t *testing.T, dir, file string, n note){
		"no note": func(t *testing.T, dir, file string, n note) { check(t, os.Remove(file)) },
		"another engine": func(t *testing.T, dir, file string, n note) {
			n.Engine = "wazero-v0.0.0-none/0"
			b, err := json.Marshal(n)
			check(t, err)
			check(t, os.WriteFile(file, b, 0o600))
		},
		"no JSON": func(t *testing.T, dir, file string, n note) { check(t, os.WriteFile(file, []byte("{"), 0o600)) },
		"another size": func(t *testing.T, dir, file string, n note) {
			check(t, os.Truncate(filepath.Join(dir, n.Entry), n.Size-1))
		},
		"another place": func(t *testing.T, dir, file string, n note) {
			check(t, os.Rename(filepath.Join(dir, n.Entry), filepath.Join(dir, "..", "entry")))
			n.Entry = "../entry"
			b, err := json.Marshal(n)
			check(t, err)
			check(t, os.WriteFile(file, b, 0o600))
		},
		"no entry": func(t *testing.T, dir, file string, n note) { check(t, os.Remove(filepath.Join(dir, n.Entry))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			c := open(t, dir)
			size := fill(t, c, wasm)
			file, n := theNote(t, dir)
			before, err := os.Stat(filepath.Join(dir, n.Entry))
			check(t, err)
			spoil(t, dir, file, n)
			if again := fill(t, c, wasm); again != size {
				t.Error(again, "bytes, before", size)
			}
			_, n = theNote(t, dir)
			if after, err := os.Stat(filepath.Join(dir, n.Entry)); err != nil || os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
				t.Error("the entry was not made again", err)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A module that takes too much is refused, and leaves nothing behind.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*limits)
		wasm []byte
		want string
		skip bool
	}{
		"memory":       {func(l *limits) { l.memory = 48 << 20 }, calls(1000, 100), "more than 48 MiB of memory", runtime.GOOS != "linux" && runtime.GOOS != "windows"},
		"CPU":          {func(l *limits) { l.cpu = time.Second }, calls(1000, 600), "more than 1s of CPU", false},
		"time":         {func(l *limits) { l.time = 100 * time.Millisecond }, calls(1000, 600), "more than 100ms", false},
		"machine code": {func(l *limits) { l.code = 1 << 20 }, calls(100, 1000), "bytes of machine code, and may have 1048576", false},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.skip {
				t.Skip("this system does not bound it")
			}
			dir := filepath.Join(t.TempDir(), "cache")
			c := open(t, dir)
			tt.set(&c.limits)
			_, err := c.Fill(t.Context(), tt.wasm)
			var cost *rewrite.CostError
			if !errors.As(err, &cost) || !strings.Contains(err.Error(), "too costly to compile: it ") || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			entries, _ := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*"))
			if len(left) > 1 || entries != nil { // the folder of the engine itself
				t.Error("left:", left, entries)
			}
			if _, err := c.Fill(t.Context(), calls(1, 1)); err != nil {
				t.Error("the next module:", err)
			}
		})
	}
}

func TestWhatIsInvalidIsSaid(t *testing.T) {
	_, err := open(t, "").Fill(t.Context(), []byte("no module"))
	var cost *rewrite.CostError
	if err == nil || errors.As(err, &cost) || !strings.Contains(err.Error(), "invalid magic number") {
		t.Error(err)
	}
}

func TestFillEndsWithItsContext(t *testing.T) {
	c := open(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Fill(ctx, calls(1000, 600)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A child whose gateway is gone does not go on.
func TestChildEndsWithTheGateway(t *testing.T) {
	self, err := executable()
	check(t, err)
	dir := t.TempDir()
	l := bounds()
	c := exec.CommandContext(t.Context(), self)
	c.Args, c.Dir = []string{childName, "1073741824", "60"}, dir
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	check(t, err)
	check(t, c.Start())
	check(t, gob.NewEncoder(in).Encode(order{dir, calls(1000, 600)}))
	check(t, in.Close())
	err = c.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || c.ProcessState.UserTime() > l.cpu/4 {
		t.Error(err)
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
	age(c.noteFile(unused))
	entries, err := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*"))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		age(e) // what counts is when an entry was last used, of which its note tells
	}
	work, stray := filepath.Join(dir, workPrefix+"dead"), filepath.Join(filepath.Dir(entries[0]), "stray")
	check(t, errors.Join(os.Mkdir(work, 0o700), os.WriteFile(stray, nil, 0o600)))
	age(work)
	age(stray)
	c = open(t, dir)
	if !c.Has(used) || c.Has(unused) {
		t.Error("kept:", c.Has(used), c.Has(unused))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, enginePrefix+"*", "*")); len(left) != 1 {
		t.Error("entries left:", left)
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
		check(t, os.Chtimes(c.noteFile(all[i]), at, at))
	}
	c.kept = 1
	c.prune(now)
	if c.Has(all[0]) || c.Has(all[1]) || !c.Has(all[2]) {
		t.Error("kept:", c.Has(all[0]), c.Has(all[1]), c.Has(all[2]))
	}
}
