package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/sandbox"
)

// TestLimitsOfACall checks that a call can be given less than its module, that
// what it exceeds then is named, that it cannot be given more, and that the next
// call has what the module has.
func TestLimitsOfACall(t *testing.T) {
	dir := t.TempDir()
	// Writes 2000 bytes to a new file, and answers with the errno.
	writes := newGuest()
	open := writes.wasi("path_open", i32+i32+i32+i32+i32+i64+i64+i32+i32, i32)
	write := writes.wasi("fd_write", i32+i32+i32+i32, i32)
	writes.allocator()
	writes.function("tool_call", i32+i32+i32+i32, i32, number(128), number('w'), store8, put(0, 1024), put(4, 2000),
		number(3), number(0), number(128), number(1), number(1), 0x42, 0xc0, 0, 0x42, 0, number(0), number(64), open, drop,
		number(64), load, number(0), number(1), number(8), write, 0x45, 0x21, 4, say(get(4)))
	writes.section("wasmgate", []byte(manifest))

	deep := newGuest() // recurs 50,000 deep
	down := deep.function("", i32, "", get(0), 0x04, 0x40, get(0), number(1), 0x6b, deep.self(), 0x0b)
	deep.allocator()
	deep.function("tool_call", i32+i32+i32+i32, i32, number(50_000), down, say(number(1)))
	deep.section("wasmgate", []byte(manifest))

	asks := newGuest() // 5 times
	call := asks.asks("http")
	asks.allocator()
	asks.function("tool_call", i32+i32+i32+i32, i32, ask(call), ask(call), ask(call), ask(call), ask(call), say(number(1)))
	asks.section("wasmgate", []byte(manifest))

	sleeps := newGuest() // 25 ms, twice
	poll := sleeps.wasi("poll_oneoff", i32+i32+i32+i32, i32)
	sleeps.allocator()
	sleeps.function("tool_call", i32+i32+i32+i32, i32, put(1024+24, 25e6),
		number(1024), number(2048), number(1), number(3000), poll, drop, number(1024), number(2048), number(1), number(3000), poll, drop, say(number(1)))
	sleeps.section("wasmgate", []byte(manifest))

	counts := reactor(number(100_000), 0x21, 4, 0x03, 0x40, get(4), number(1), 0x6b, 0x22, 4, 0x0d, 0, 0x0b, say(number(1)))
	grows := reactor(number(10), memoryGrow, number(-1), 0x46, 0x04, 0x40, unreachable, 0x0b, say(number(1)))
	talks := reactor(number(1024), number(' '), number(2000), 0xfc, 11, 0, number(1024), number('1'), store8, answer(0, number(1024), number(2000)))

	tests := map[string]struct {
		guest *guest
		less  sandbox.Limits
		want  string
	}{
		"fuel":       {counts, sandbox.Limits{Fuel: 1000}, "fuel: it needs more than 1000 instructions"},
		"time":       {sleeps, sandbox.Limits{Timeout: 5 * time.Millisecond}, "deadline: it ran longer than 5ms"},
		"memory":     {grows, sandbox.Limits{Memory: 2 << 16}, "memory: it needs more than 131072 bytes of memory"},
		"stack":      {deep, sandbox.Limits{Stack: 1 << 16}, "memory: it needs more than 65536 bytes of stack"},
		"output":     {talks, sandbox.Limits{Output: 100}, "guest: its output has more than 100 bytes"},
		"host calls": {asks, sandbox.Limits{HostCalls: 3}, "guest: it asks its host more than 3 times"},
		"files":      {writes, sandbox.Limits{Files: 1999}, "0"}, // which the guest gets as an error
	}
	r := newRuntime(t, sandbox.Config{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			grants := sandbox.Grants{HTTP: true, Dirs: []sandbox.Dir{{Path: dir, Write: true}}}
			call := func(m *sandbox.Module, l sandbox.Limits) string {
				host := fakeHost{file: func(context.Context) error { return nil }}
				os.Remove(filepath.Join(dir, "w")) // what is rewritten in place adds nothing
				res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Limits: l, Host: host})
				if err != nil {
					return err.Error()
				}
				return strings.TrimSpace(string(res.Output))
			}
			wide := compile(t, r, tt.guest.bytes(), sandbox.ModuleConfig{Grants: grants})
			for range 3 {
				if got := call(wide, tt.less); !strings.HasSuffix(got, tt.want) {
					t.Errorf("with less: %s, want %s", got, tt.want)
				}
				if got := call(wide, sandbox.Limits{}); got != "1" {
					t.Errorf("with what the module has: %s, want 1", got)
				}
			}
			narrow := compile(t, r, tt.guest.bytes(), sandbox.ModuleConfig{Grants: grants, Limits: tt.less})
			more := sandbox.Limits{Timeout: long, Fuel: 1e14, Memory: 1 << 30, Stack: 1 << 30, Output: 1 << 30, HostCalls: 1e6, Files: 1 << 30}
			if got := call(narrow, more); !strings.HasSuffix(got, tt.want) {
				t.Errorf("with more than the module has: %s, want %s", got, tt.want)
			}
		})
	}
}

// TestLogInjection has a guest write what looks like records of its own, and
// what moves a terminal's cursor: each write stays one record, with the text in
// quotes, and not more of it than the limit.
func TestLogInjection(t *testing.T) {
	const forged = "harmless\nlevel=ERROR msg=\"admin logged in\"\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\n\x1b[2J\x1b[31m\x00\x07\x9b\u2028\u202e\xff\" msg=x"
	guests := map[string]*guest{}
	for _, stream := range []int32{1, 2} {
		g := newGuest()
		write := g.wasi("fd_write", i32+i32+i32+i32, i32)
		g.allocator()
		g.function("tool_call", i32+i32+i32+i32, i32, number(0), get(argsPtr), store, number(4), get(argsLen), store,
			number(stream), number(0), number(1), number(8), write, drop, say(number(1)))
		guests[map[int32]string{1: "stdout", 2: "stderr"}[stream]] = g
	}
	g := newGuest()
	say1 := g.asks("log")
	g.allocator()
	g.function("tool_call", i32+i32+i32+i32, i32, number(3), get(argsPtr), get(argsLen), say1, say(number(1)))
	guests["the function log"] = g

	handlers := map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	}
	for by, g := range guests {
		wasm := g.section("wasmgate", []byte(manifest)).bytes()
		for as, handler := range handlers {
			t.Run(by+" as "+as, func(t *testing.T) {
				var log bytes.Buffer
				r := newRuntime(t, sandbox.Config{Log: slog.New(handler(&log)), Limits: sandbox.Limits{Log: 100}})
				m := compile(t, r, wasm, sandbox.ModuleConfig{Name: "m"})
				for _, text := range []string{forged, strings.Repeat("\n", 5000)} {
					log.Reset()
					if res, err := m.Call(t.Context(), "t", []byte(text), sandbox.CallConfig{}); err != nil || string(res.Output) != "1" {
						t.Fatalf("%s, %v, want 1", res.Output, err)
					}
					checkRecord(t, log.String(), as == "JSON")
				}
			})
		}
	}
}

// checkRecord checks that a log is one record, on one line that a terminal shows.
func checkRecord(t *testing.T, log string, isJSON bool) {
	t.Helper()
	line, rest, _ := strings.Cut(log, "\n")
	if rest != "" || line == "" || len(line) > 1000 {
		t.Errorf("%d lines of %d bytes, want one: %.500q", strings.Count(log, "\n"), len(log), log)
	}
	if strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		t.Errorf("the line has control characters: %q", line)
	}
	if !isJSON {
		if _, text, _ := strings.Cut(line, " text="); !strings.HasPrefix(text, `"`) {
			t.Errorf("the text is not quoted: %s", line)
		}
		return
	}
	var record struct{ Level, Msg, Module, Text string }
	if err := json.Unmarshal([]byte(line), &record); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if !strings.HasPrefix(record.Msg, "guest ") || record.Module != "m" || len(record.Text) > 110 { // of 100 bytes, some replaced by three
		t.Errorf("record = %+v", record)
	}
}

// TestLogIsBounded floods the log in every way: what is kept of a call has an
// end, whatever it writes.
func TestLogIsBounded(t *testing.T) {
	for name, a := range outputAttacks() {
		if a.code != "trap_fuel" {
			continue // does not write to the log
		}
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := newRuntime(t, sandbox.Config{Log: slog.New(slog.NewJSONHandler(&log, nil)), Limits: sandbox.Limits{Log: 1000, Fuel: 1e7}})
			m := compile(t, r, a.guest.bytes(), sandbox.ModuleConfig{Grants: a.grants})
			if _, err := m.Call(t.Context(), "t", []byte(evilArgs), sandbox.CallConfig{}); code(err) != "trap_fuel" {
				t.Fatalf("err = %v, want a trap_fuel", err)
			}
			if n := strings.Count(log.String(), "\n"); n == 0 || n > 1000/64+1 || log.Len() > n*200+6*1000 { // a byte may take six
				t.Errorf("%d records of %d bytes", n, log.Len())
			}
		})
	}
}

// TestWhatModulesWriteIsKept: bytes that a module has added to a folder count for its next calls,
// for a new version of it and in the next process, and not for others.
func TestWhatModulesWriteIsKept(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "state", "written.json")
	fills := newGuest() // adds 5000 bytes to a file named by its argument, and answers with the errno
	open := fills.wasi("path_open", i32+i32+i32+i32+i32+i64+i64+i32+i32, i32)
	size := fills.wasi("fd_filestat_set_size", i32+i64, i32)
	fills.allocator()
	fills.function("tool_call", i32+i32+i32+i32, i32,
		number(3), number(0), get(argsPtr), get(argsLen), number(1), 0x42, 0xc0, 0x80, 0x80, 0x02, 0x42, 0, number(0), number(64), open, drop,
		number(64), load, 0x42, 0x88, 0x27, size, 0x45, 0x21, 4, say(get(4)))
	fills.section("wasmgate", []byte(manifest))
	version := func(r *sandbox.Runtime, name string) *sandbox.Module {
		return compile(t, r, fills.bytes(), sandbox.ModuleConfig{
			Name: name, Limits: sandbox.Limits{Files: 20_000}, Grants: sandbox.Grants{Dirs: []sandbox.Dir{{Path: dir, Write: true}}},
		})
	}
	write := func(m *sandbox.Module) string {
		res, err := m.Call(t.Context(), "t", []byte(rand.Text()), sandbox.CallConfig{Host: fakeHost{file: func(context.Context) error { return nil }}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(res.Output))
	}
	process := func(name string) string {
		r := newRuntime(t, sandbox.Config{UsageFile: file})
		defer r.Close(t.Context())
		return write(version(r, name))
	}
	var got []string
	for _, name := range []string{"a", "a", "a", "b"} { // each file takes 9096 with its name
		got = append(got, process(name))
	}
	if want := []string{"1", "1", "0", "1"}; !slices.Equal(got, want) {
		t.Errorf("written in processes: %v, want %v", got, want)
	}
	var log bytes.Buffer
	r := newRuntime(t, sandbox.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	before, after := version(r, "a"), version(r, "a")
	if got := []string{write(before), write(after), write(before), write(after)}; !slices.Equal(got, []string{"1", "1", "0", "0"}) {
		t.Errorf("written by two versions at once: %v", got)
	}
	if told := log.String(); strings.Count(told, "\n") != 1 || !strings.Contains(strings.ReplaceAll(told, `"`, ""), "module=a folder="+dir+" limit=20000 key=limits.files_bytes") {
		t.Errorf("the log has %q", told)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.New(t.Context(), sandbox.Config{UsageFile: file}); err == nil || !strings.Contains(err.Error(), "to start at zero again, remove "+file) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
