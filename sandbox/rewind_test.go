package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

var load8 = []byte{0x2d, 0, 0} // i32.load8_u

// waiter is a command that draws eight letters, says S, and reads its input five functions deep.
// Then it prints the state that it can change, changes it, and does what the letter in its input
// says. A test can add code that runs before it reads.
func waiter(before func(closing []byte) []byte) *guest {
	const (
		vector, moved, length, opened = 0, 8, 16, 20
		letters, said, path, byteRead = 512, 2900, 2904, 2950
		input, counter, out           = 1024, 2048, 3000
	)
	g := newGuest()
	read := g.wasi("fd_read", i32+i32+i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	exit := g.wasi("proc_exit", i32, "")
	random := g.wasi("random_get", i32+i32, i32)
	sizes := g.wasi("args_sizes_get", i32+i32, i32)
	closing := g.wasi("fd_close", i32, i32)
	open := g.wasi("path_open", i32+i32+i32+i32+i32+i64+i64+i32+i32, i32)
	make := g.wasi("path_create_directory", i32+i32+i32, i32)
	digit := func(n ...any) []byte { return join(number('0'), join(n...), add) }
	at := func(address int32) []byte { return join(number(address), load) }
	when := func(letter int32, do ...any) []byte { // the letter is in {"name":"t","arguments":"x"}
		return join(number(input+25), load8, number(letter), 0x46, 0x04, 0x40, join(do...), 0x0b)
	}
	moves := func(call []byte, fd []byte, to, size []byte) []byte {
		return join(number(vector), to, store, number(vector+4), size, store, fd, number(vector), number(1), number(moved), call, drop)
	}
	say := g.function("", i32, "", number(out), at(length), add, get(0), store8, number(length), at(length), number(1), add, store)
	deep := g.self()
	g.function("", i32, i32, get(0), 0x04, 0x7f, get(0), number(1), 0x6b, deep, get(0), add, 0x05,
		moves(read, number(0), number(input), number(30)), number(0), 0x0b)
	recursion := g.self()
	g.function("", i32, i32, get(0), 0x04, 0x7f, get(0), number(1), 0x6b, recursion, get(0), add, 0x05, number(0), 0x0b)

	body := join(number(letters), number(8), random, drop, put(said, 'S'), moves(write, number(1), number(said), number(1)),
		number(5000), setGlobal, number(1), 0x21, 0)
	if before != nil {
		body = join(body, before(closing))
	}
	body = join(body, number(5), deep, get(0), add, 0x21, 0, digit(get(0)), say, // @
		number(counter), at(counter), number(1), add, store, digit(at(counter)), say,
		getGlobal, number(1), add, setGlobal, digit(getGlobal, number(5000), 0x6b), say,
		digit([]byte{0x3f, 0}), say,
		number(moved), number(12), sizes, drop, digit(at(moved)), say)
	for i := range int32(8) {
		body = join(body, number(letters+i), load8, number(15), 0x71, number('a'), add, say)
	}
	g.function("_start", "", "", body,
		when('m', number(3), memoryGrow, drop, put(3*65536, 7)),
		when('w', number(7), setGlobal, put(letters, -1), put(letters+4, -1), put(counter, 5), put(60000, 9)),
		when('o', put(path, 'f'), digit(number(3), number(0), number(path), number(1), number(0), 0x42, 2, 0x42, 0, number(0), number(opened), open), say,
			digit(at(opened)), say, moves(read, at(opened), number(byteRead), number(1)), number(byteRead), load8, say),
		when('p', put(path, 'g'), digit(number(3), number(path), number(1), make), say),
		when('c', digit(number(3), closing), say),
		when('d', number(20_000), recursion, drop),
		when('r', moves(read, number(0), number(byteRead), number(1)), number(byteRead), load8, say),
		when('l', forever),
		when('t', unreachable),
		when('a', put(said, 'E'), moves(write, number(2), number(said), number(1)), number(3), exit),
		when('q', moves(write, number(1), number(out), at(length)), number(0), exit),
		moves(write, number(1), number(out), at(length)))
	return g
}

// waiting compiles a waiter with a folder in which there is a file.
func waiting(t testing.TB, r *sandbox.Runtime, wasm []byte, cfg sandbox.ModuleConfig) *sandbox.Module {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("xyz"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Grants.Dirs = []sandbox.Dir{{Path: dir, Write: true}}
	cfg.Manifest = &sandbox.Manifest{
		Tools:    []sandbox.Tool{{Name: "t", InputSchema: []byte(`{"type":"object"}`)}},
		Snapshot: sandbox.SnapshotInput, Stdout: "text",
	}
	return compile(t, r, wasm, cfg)
}

// wait calls a waiter. It returns the letters that it drew, and what it said behind what it
// found, in which nothing may be of another call.
func wait(m *sandbox.Module, letter string, cfg sandbox.CallConfig) (drawn, more string, res sandbox.Result, err error) {
	if cfg.Host == nil {
		cfg.Host = fakeHost{file: func(context.Context) error { return nil }}
	}
	res, err = m.Call(context.Background(), "t", []byte(`"`+letter+`"`), cfg)
	if err != nil || res.IsError {
		return "", "", res, err
	}
	var whole struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(res.Output, &whole); err != nil {
		return "", "", res, err
	}
	text := whole.Content[0].Text
	const found = "S@1111"
	if !strings.HasPrefix(text, found) || len(text) < len(found)+8 {
		return "", "", res, fmt.Errorf("after %s it finds %q, not %s", letter, text, found)
	}
	return text[len(found):][:8], text[len(found)+8:], res, nil
}

// TestRewound: calls one after the other have one instance, and none finds anything of another,
// whatever the guest did to its memory, globals and descriptors, and however it ended.
func TestRewound(t *testing.T) {
	for name, copies := range map[string]bool{"as here": false, "by copying": true} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, sandbox.Config{})
			if copies {
				r.CopyMemories()
			}
			m := waiting(t, r, waiter(nil).bytes(), sandbox.ModuleConfig{})
			first, _, _, err := wait(m, "-", sandbox.CallConfig{})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"m": "", "w": "", "o": "04x", "c": "0", "d": "", "r": "\x00", "q": "", "-": "", "a": "E"}
			used := map[string]sandbox.Result{}
			rnd := rand.New(rand.NewPCG(seed.Of(t), 0))
			letters := []string{"m", "w", "o", "c", "d", "q", "-", "a"}
			for range 300 {
				letter := letters[rnd.IntN(len(letters))]
				drawn, more, res, err := wait(m, letter, sandbox.CallConfig{})
				if res.IsError {
					drawn, more = first, string(res.Output)
				}
				if err != nil || drawn != first || more != want[letter] {
					t.Fatalf("%s: %q, %q, %v; want %q, %q", letter, drawn, more, err, first, want[letter])
				}
				before, ok := used[letter]
				if used[letter] = res; ok && (res.Fuel != before.Fuel || res.MemoryPeak != before.MemoryPeak || res.HostCalls != before.HostCalls) {
					t.Errorf("%s: it took %+v, and %+v before", letter, res, before)
				}
			}
			if used["m"].MemoryPeak != 4*65536 || used["-"].MemoryPeak != 65536 {
				t.Errorf("peaks %d and %d", used["m"].MemoryPeak, used["-"].MemoryPeak)
			}
			for range 20 { // the fuel of a call is for one call
				if _, _, _, err := wait(m, "d", sandbox.CallConfig{Limits: sandbox.Limits{Fuel: used["d"].Fuel}}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A denial from before the guest read its input explains how a call ends.
func TestRewoundDenied(t *testing.T) {
	denied := func([]byte) []byte { return join(number(2000), memoryGrow, drop) }
	m := waiting(t, newRuntime(t, sandbox.Config{}), waiter(denied).bytes(), sandbox.ModuleConfig{})
	for range 3 {
		if _, _, _, err := wait(m, "a", sandbox.CallConfig{}); code(err) != "trap_memory" {
			t.Errorf("%v, want trap_memory", err)
		}
		if _, _, _, err := wait(m, "-", sandbox.CallConfig{}); err != nil {
			t.Error(err)
		}
	}
}

// A call has its own limit of files, also on an instance that had another call.
func TestRewoundFiles(t *testing.T) {
	m := waiting(t, newRuntime(t, sandbox.Config{}), waiter(nil).bytes(), sandbox.ModuleConfig{})
	for _, tt := range []struct {
		files int64
		want  string
	}{{100, "C"}, {100, "C"}, {0, "0"}, {100, "D"}} { // '0' and the errno: dquot, exist
		if _, more, _, err := wait(m, "p", sandbox.CallConfig{Limits: sandbox.Limits{Files: tt.files}}); err != nil || more != tt.want {
			t.Errorf("%d: %q, %v; want %q", tt.files, more, err, tt.want)
		}
	}
}

// Input that a call has not read is not read by the next.
func TestRewoundInput(t *testing.T) {
	m := waiting(t, newRuntime(t, sandbox.Config{}), waiter(nil).bytes(), sandbox.ModuleConfig{})
	for i := range 20 {
		letter, want := "r", "\x00" // its own has 27 bytes, and 30 are read
		if i%2 == 0 {
			letter, want = "r234567", "6"
		}
		if _, more, _, err := wait(m, letter, sandbox.CallConfig{}); err != nil || more != want {
			t.Errorf("%q, %v; want %q", more, err, want)
		}
	}
}

// TestRewoundNoMore: an instance that ends in any other way is replaced by another, and the
// call has the outcome that it would have.
func TestRewoundNoMore(t *testing.T) {
	m := waiting(t, newRuntime(t, sandbox.Config{}), waiter(nil).bytes(), sandbox.ModuleConfig{})
	for letter, tt := range map[string]struct {
		limits sandbox.Limits
		code   string
	}{
		"t": {sandbox.Limits{}, "trap_guest"},
		"l": {sandbox.Limits{Timeout: 50 * time.Millisecond}, "trap_deadline"},
		"d": {sandbox.Limits{Fuel: 100_000}, "trap_fuel"},
		"m": {sandbox.Limits{Memory: 2 * 65536}, "trap_memory"},
		"-": {sandbox.Limits{Output: 5}, "trap_guest"},
	} {
		first, _, _, err := wait(m, "-", sandbox.CallConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := wait(m, letter, sandbox.CallConfig{Limits: tt.limits}); code(err) != tt.code {
			t.Errorf("%s: %v, want %s", letter, err, tt.code)
		}
		if next, _, _, err := wait(m, "-", sandbox.CallConfig{}); err != nil || next == first {
			t.Errorf("after %s: %q, %v; it was %q before", letter, next, err, first)
		}
	}
}

// TestNotRewound: an instance that could not be put back completely serves one call.
func TestNotRewound(t *testing.T) {
	for name, tt := range map[string]struct {
		wasm []byte
		cfg  sandbox.ModuleConfig
	}{
		"it has closed what a new process has": {waiter(func(closing []byte) []byte { return join(number(3), closing, drop) }).bytes(), sandbox.ModuleConfig{}},
		"a new instance for each call":         {waiter(nil).bytes(), sandbox.ModuleConfig{Isolation: sandbox.IsolationInstance}},
		"it could change its table":            {tabled().bytes(), sandbox.ModuleConfig{}},
	} {
		m := waiting(t, newRuntime(t, sandbox.Config{}), tt.wasm, tt.cfg)
		seen := map[string]bool{}
		for range 10 {
			drawn, _, _, err := wait(m, "w", sandbox.CallConfig{})
			if err != nil || seen[drawn] {
				t.Errorf("%s: %v, or an instance has two calls", name, err)
			}
			seen[drawn] = true
			if m.Rewindable() {
				t.Errorf("%s: it can go back", name)
			}
		}
	}
}

// TestRewoundOften: an instance has many calls, but not for ever.
func TestRewoundOften(t *testing.T) {
	unraced.Long(t)
	m := waiting(t, newRuntime(t, sandbox.Config{}), waiter(nil).bytes(), sandbox.ModuleConfig{})
	seen := map[string]int{}
	var order []string
	for range sandbox.MaxRewound + 100 {
		drawn, _, _, err := wait(m, "-", sandbox.CallConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if seen[drawn]++; seen[drawn] == 1 {
			order = append(order, drawn)
		}
	}
	if len(order) != 2 || seen[order[0]] != sandbox.MaxRewound+1 {
		t.Errorf("instances had %v calls", seen)
	}
}

// TestRewoundFromWithin: a guest that exits within a function that its host has called does not
// go back, and one that reads its input there is ended.
func TestRewoundFromWithin(t *testing.T) {
	within := func(do func(read, exit []byte) []byte) []byte {
		g := newGuest()
		read := g.wasi("fd_read", i32+i32+i32+i32, i32)
		write := g.wasi("fd_write", i32+i32+i32+i32, i32)
		exit := g.wasi("proc_exit", i32, "")
		kv := g.asks("kv")
		g.function("cabi_realloc", i32+i32+i32+i32, i32, do(read, exit), number(40_000))
		first := join(put(0, 1024), put(4, 30), number(0), number(0), number(1), number(8), read, drop)
		asked := join(put(32, 0x7b7d7b), number(32), number(2), number(16), kv)
		says := join(put(64, 'E'), put(0, 64), put(4, 1), number(1), number(0), number(1), number(8), write, drop)
		g.function("_start", "", "", says, asked, first, asked, says, number(0), exit)
		return g.bytes()
	}
	for name, tt := range map[string]struct {
		wasm []byte
		want string
	}{
		"it exits": {within(func(_, exit []byte) []byte {
			return join(number(1024+25), load8, number('k'), 0x46, 0x04, 0x40, number(0), exit, 0x0b)
		}), ""},
		"it reads": {within(func(read, _ []byte) []byte {
			return join(put(0, 1024), put(4, 30), number(0), number(0), number(1), number(8), read, drop)
		}), "it reads its input from cabi_realloc"},
	} {
		t.Run(name, func(t *testing.T) {
			m := waiting(t, newRuntime(t, sandbox.Config{}), tt.wasm, sandbox.ModuleConfig{Grants: sandbox.Grants{KV: true}})
			for i := range 6 {
				letter, said := `"k"`, "E"
				if i%3 > 0 {
					letter, said = `"-"`, "EE"
				}
				res, err := m.Call(t.Context(), "t", []byte(letter), sandbox.CallConfig{})
				if tt.want == "" && (err != nil || string(res.Output) != `{"content":[{"text":"`+said+`","type":"text"}]}`) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%s, %v; want %s", res.Output, err, tt.want)
				}
			}
		})
	}
}

// A start function that reads the input has it, and so has what runs behind it.
func TestStandbyInStartFunction(t *testing.T) {
	g := newGuest()
	read := g.wasi("fd_read", i32+i32+i32+i32, i32)
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	exit := g.wasi("proc_exit", i32, "")
	g.function("", "", "", put(0, 1024), put(4, 512), number(0), number(0), number(1), number(8), read, drop, number(4), number(8), load, store)
	g.start = leb(3)
	g.function("_start", "", "", number(1), number(0), number(1), number(8), write, drop, number(0), exit)
	m := waiting(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{})
	for i := range 5 {
		want := fmt.Sprintf(`{"content":[{"text":"{\"name\":\"t\",\"arguments\":%d}","type":"text"}]}`, i)
		if res, err := m.Call(t.Context(), "t", fmt.Append(nil, i), sandbox.CallConfig{}); err != nil || string(res.Output) != want {
			t.Errorf("%s, %v; want %s", res.Output, err, want)
		}
		if m.Rewindable() {
			t.Error("it can go back to a function that has returned")
		}
	}
}

// TestRewoundLeavesNothing: in the end the process has what it had.
func TestRewoundLeavesNothing(t *testing.T) {
	before := takeVitals(t)
	for range 5 {
		r, err := sandbox.New(t.Context(), sandbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		m := waiting(t, r, waiter(nil).bytes(), sandbox.ModuleConfig{})
		var opened []int
		for _, letter := range []string{"o", "o", "o", "m", "t", "o", "a", "-"} {
			if _, _, _, err := wait(m, letter, sandbox.CallConfig{}); err != nil && letter != "t" {
				t.Fatal(err)
			}
			opened = append(opened, descriptors(t))
		}
		if opened[1] > opened[0] || opened[2] > opened[0] {
			t.Errorf("calls leave files open: %v descriptors", opened)
		}
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	takeVitals(t).check(t, before)
}

// tabled is a waiter with a table that it could write to.
func tabled() *guest {
	g := waiter(nil)
	g.table = []byte{0x70, 0, 1}
	g.function("", "", "", number(0), 0xd0, 0x70, 0x26, 0)
	return g
}

// TestRewoundAtOnce: calls at once have instances of their own, which go back while others run.
func TestRewoundAtOnce(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	m := waiting(t, r, waiter(nil).bytes(), sandbox.ModuleConfig{})
	seed := seed.Of(t)
	var wg sync.WaitGroup
	for i := range uint64(6) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			for range 60 {
				letter := string("mwocdqat-"[rnd.IntN(9)])
				_, more, res, err := wait(m, letter, sandbox.CallConfig{Caller: fmt.Sprint(i)})
				if (letter == "t") != (code(err) == "trap_guest") || letter == "o" && more != "04x" || letter == "a" && string(res.Output) != "E" {
					t.Errorf("%s: %q, %s, %v", letter, more, res.Output, err)
				}
			}
		})
	}
	wg.Wait()
}
