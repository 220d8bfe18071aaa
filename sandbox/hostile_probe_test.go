package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/sandbox"
)

type panicHost struct{ webHost }

func (panicHost) HTTP(context.Context, sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	var m map[string]int
	m["token-abc"] = 1
	return sandbox.HTTPResponse{}, nil
}

func TestProbeZeroPages(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	g := newGuest()
	g.pages = 0
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(500), memoryGrow, drop, number(1024))
	g.function("tool_call", i32+i32+i32+i32, i32, say(number(1)))
	g.section("wasmgate", []byte(manifest))
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
	for range 3 {
		res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Limits: sandbox.Limits{Memory: 1 << 16}})
		t.Log(string(res.Output), err, res.MemoryPeak, res.Fuel)
	}
}

func TestProbeHostPanic(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	g := newGuest()
	http := g.link("wasmgate", "http", join(0, g.typ(i32+i32+i32, "")))
	g.function("cabi_realloc", i32+i32+i32+i32, i32, getGlobal, getGlobal, get(3), add, setGlobal)
	g.function("tool_call", i32+i32+i32+i32, i32, get(argsPtr), get(argsLen), number(64), http, say(number(1)))
	g.section("wasmgate", []byte(manifest))
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Grants: sandbox.Grants{HTTP: true}})
	_, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Host: &panicHost{}})
	t.Log(err)
	n, err := m.CheckIdle()
	t.Log(n, err)
}

func TestProbeDup(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	for _, n := range []string{"wasmgate:fuel", "wasmgate:global:0", "wasmgate:start"} {
		g := reactor(say(number(1)))
		if n == "wasmgate:start" {
			g.start = leb(2)
			g.function("", "", "")
		}
		g.exports = append(g.exports, join(name(n), 3, 0))
		_, err := r.Compile(t.Context(), g.bytes(), sandbox.ModuleConfig{})
		t.Log(n, err)
	}
}

func TestProbeSessionStacks(t *testing.T) {
	g := newGuest()
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	// f(n): if n f(n-1)
	deep := g.function("", i32, "", get(0), 0x04, 0x40, get(0), number(1), 0x6b, 0x10, 1, 0x0b)
	g.function("tool_call", i32+i32+i32+i32, i32, number(50000), deep, say(number(1)))
	g.section("wasmgate", []byte(strings.Replace(manifest, "{", `{"isolation":"session",`, 1)))
	m := compile(t, newRuntime(t, sandbox.Config{}), g.bytes(), sandbox.ModuleConfig{})
	var ms runtime.MemStats
	for i := range 20 {
		res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Session: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err, res.Fuel)
		}
		runtime.GC()
		runtime.ReadMemStats(&ms)
		if i%5 == 0 {
			t.Log(i, ms.HeapInuse>>20, res.Fuel, res.Took)
		}
	}
}

func rss() string {
	b, _ := os.ReadFile("/proc/self/status")
	for l := range strings.Lines(string(b)) {
		if strings.HasPrefix(l, "VmHWM") {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

func TestProbeRequest(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	g := newGuest()
	http := g.link("wasmgate", "http", join(0, g.typ(i32+i32+i32, "")))
	g.pages = 64
	// memory: {"headers":{"a":["","",....   written by a loop of i32 stores of `"",`
	g.function("cabi_realloc", i32+i32+i32+i32, i32, number(1024))
	fill := join(number(900), memoryGrow, drop,
		// local4 = 70000
		number(70000), 0x21, 4,
		0x03, 0x40, get(4), number('"'|'"'<<8|','<<16), store, get(4), number(3), add, 0x22, 4, number(62000000), 0x48, 0x0d, 0, 0x0b)
	head := `{"headers":{"a":[`
	var h []byte
	for i := 0; i < len(head); i++ {
		h = join(h, number(int32(70000-len(head)+i)), number(int32(head[i])), store8)
	}
	for i, c := range []byte("\"\"]}}") {
		h = join(h, number(int32(60070000+i)), number(int32(c)), store8)
	}
	g.function("tool_call", i32+i32+i32+i32, i32, fill, h, number(int32(70000-len(head))), number(60000000+5+17), number(64), http, say(number(1)))
	g.section("wasmgate", []byte(manifest))
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Grants: sandbox.Grants{HTTP: true}, Limits: sandbox.Limits{Timeout: 1000 * time.Millisecond}})
	t.Log(rss())
	at := time.Now()
	res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{Host: &webHost{}})
	t.Log(string(res.Output), err, res.Fuel, time.Since(at), rss())
}

func probe(t *testing.T, name string, wasm []byte) {
	t.Run(name, func(t *testing.T) {
		r := newRuntime(t, sandbox.Config{})
		at := time.Now()
		m, err := r.Compile(t.Context(), wasm, sandbox.ModuleConfig{})
		t.Logf("%d bytes compile %v: %v %s", len(wasm), time.Since(at), err, rss())
		if err != nil {
			return
		}
		for range 2 {
			at = time.Now()
			_, err = m.Call(t.Context(), "t", nil, sandbox.CallConfig{Limits: sandbox.Limits{Timeout: 100 * time.Millisecond}})
			t.Logf("call %v: %v %s unfit %q", time.Since(at), err, rss(), m.Unfit())
		}
	})
}

func TestProbeBombs(t *testing.T) {
	ok := func(pre ...any) *guest { return reactor(join(pre...), say(number(1))) }
	n := 1
	fmt.Sscan(os.Getenv("N"), &n)
	only := os.Getenv("BOMB")
	run := func(name string, f func() []byte) {
		if only == "" || only == name {
			probe(t, name, f())
		}
	}
	run("nested blocks", func() []byte {
		return ok(bytes.Repeat([]byte{0x02, 0x40}, 100_000*n), bytes.Repeat([]byte{0x0b}, 100_000*n)).bytes()
	})
	run("nested loops", func() []byte {
		return ok(bytes.Repeat([]byte{0x03, 0x40}, 100_000*n), bytes.Repeat([]byte{0x0b}, 100_000*n)).bytes()
	})
	run("nested ifs", func() []byte {
		return ok(bytes.Repeat([]byte{0x41, 1, 0x04, 0x40}, 100_000*n), bytes.Repeat([]byte{0x0b}, 100_000*n)).bytes()
	})
	run("long function", func() []byte { return ok(bytes.Repeat([]byte{0x41, 1, 0x1a}, 1000_000*n)).bytes() })
	run("long function of calls", func() []byte {
		return ok(bytes.Repeat(join(number(1), number(1), number(1), number(1), 0x10, 0, 0x1a), 100_000*n)).bytes()
	})
	run("deep stack", func() []byte {
		return ok(bytes.Repeat([]byte{0x20, 0}, 100_000*n), bytes.Repeat([]byte{0x6a}, 100_000*n-1), 0x1a).bytes()
	})
	run("br_table", func() []byte {
		return ok(0x02, 0x40, number(0), 0x0e, leb(uint32(1000_000*n)), bytes.Repeat([]byte{0}, 1000_000*n+1), 0x0b).bytes()
	})
	with := func(g *guest, id byte, body []byte, before byte) []byte {
		// inserts a section before the one with id before
		b := g.bytes()
		out := append([]byte{}, b[:8]...)
		for at := 8; at < len(b); {
			sid := b[at]
			size, k := binary.Uvarint(b[at+1:])
			end := at + 1 + k + int(size)
			if sid == before {
				out = append(out, id)
				out = append(out, leb(uint32(len(body)))...)
				out = append(out, body...)
			}
			if sid != id {
				out = append(out, b[at:end]...)
			}
			at = end
		}
		return out
	}
	run("elements", func() []byte {
		g := ok()
		g.table = join(0x70, 0, leb(1<<18))
		k := 1 << 18
		seg := join(0, number(0), 0x0b, leb(uint32(k)), bytes.Repeat([]byte{0}, k))
		return with(g, 9, join(leb(uint32(20*n)), bytes.Repeat(seg, 20*n)), 10)
	})
	run("elements unsealed", func() []byte {
		g := reactor(number(0), 0x25, 0, number(0), 0x26, 0)
		g = reactor(number(0), 0xd0, 0x70, 0x26, 0, say(number(1)))
		g.table = join(0x70, 0, leb(1<<18))
		k := 1 << 18
		seg := join(0, number(0), 0x0b, leb(uint32(k)), bytes.Repeat([]byte{0}, k))
		return with(g, 9, join(leb(uint32(20*n)), bytes.Repeat(seg, 20*n)), 10)
	})
	run("globals", func() []byte {
		g := ok()
		gl := join(0x7f, 1, number(0), 0x0b)
		return with(g, 6, join(leb(uint32(1000_000*n)), bytes.Repeat(gl, 1000_000*n)), 7)
	})
	run("immutable globals", func() []byte {
		g := ok()
		gl := join(0x7f, 1, number(0), 0x0b)
		return with(g, 6, join(leb(uint32(1000_000*n)), gl, bytes.Repeat(join(0x7f, 0, number(0), 0x0b), 1000_000*n-1)), 7)
	})
	run("exports", func() []byte {
		g := ok()
		for i := range 500_000 * n {
			g.exports = append(g.exports, join(name(fmt.Sprint(i)), 0, 0))
		}
		return g.bytes()
	})
	run("params", func() []byte {
		g := ok()
		g.types = append(g.types, join(0x60, leb(uint32(1000_000*n)), bytes.Repeat([]byte{0x7f}, 1000_000*n), 0))
		g.functions = append(g.functions, leb(uint32(len(g.types)-1)))
		g.code = append(g.code, []byte{2, 0, 0x0b})
		return g.bytes()
	})
	run("params of an import", func() []byte {
		g := ok()
		g.types = append(g.types, join(0x60, leb(uint32(1000_000*n)), bytes.Repeat([]byte{0x7f}, 1000_000*n), 0))
		return g.bytes()
	})
	run("many types", func() []byte {
		g := ok()
		for i := range 65000 {
			g.types = append(g.types, join(0x60, leb(uint32(100*n)), bytes.Repeat([]byte{0x7f}, 100*n), 1, 0x7c+i%4))
		}
		return g.bytes()
	})
	run("functions", func() []byte {
		g := ok()
		for range 60000 {
			g.functions = append(g.functions, leb(uint32(0)))
			g.code = append(g.code, []byte{4, 0, 0x41, 0, 0x0b})
		}
		return g.bytes()
	})
}
