package extism_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

// TestHostileGuest does what no honest guest does. Each ends the guest with an
// error that names the host call, or does nothing.
func TestHostileGuest(t *testing.T) {
	unraced.Long(t)
	const last = math.MaxUint64
	type step = func(g *bare) (uint64, error)
	call := func(name string, args ...uint64) step {
		return func(g *bare) (uint64, error) { return g.try(name, args...) }
	}
	// at does a call on offsets relative to a fresh block of 16 bytes, the
	// last thing on the heap.
	at := func(name string, by uint64, args ...uint64) step {
		return func(g *bare) (uint64, error) {
			return g.try(name, append([]uint64{g.do("alloc", 16) + by}, args...)...)
		}
	}
	tests := map[string]struct {
		do   step
		want string // in the error; empty for none
	}{
		"load from nowhere":                       {call("load_u64", 0), "load_u64: 8 bytes at offset 0x0 are outside the heap"},
		"load below the first block":              {call("load_u8", 15), "load_u8: 1 bytes at offset 0xf"},
		"load the last word":                      {at("load_u64", 8), ""},
		"load a word that ends outside":           {at("load_u64", 9), "load_u64: 8 bytes at offset"},
		"load the last byte":                      {at("load_u8", 15), ""},
		"load a byte outside":                     {at("load_u8", 16), "load_u8: 1 bytes at offset"},
		"load at the end of the address space":    {call("load_u64", last-7), "load_u64: 8 bytes at offset 0xfffffffffffffff8"},
		"load at a negative offset":               {call("load_u8", last), "outside the heap"},
		"load at a huge offset":                   {call("load_u64", 1<<63), "outside the heap"},
		"load at an offset of more than 32 bits":  {at("load_u8", 1<<32), "outside the heap"},
		"store a word that ends outside":          {at("store_u64", 9, 1), "store_u64: 8 bytes at offset"},
		"store to nowhere":                        {call("store_u8", 0, 1), "store_u8: 1 bytes at offset 0x0"},
		"store at a negative offset":              {call("store_u64", last-3, 1), "outside the heap"},
		"load a byte after the input":             {call("input_load_u8", 20), "input_load_u8: 1 bytes at 20 are outside the input of 20 bytes"},
		"load a word that ends after the input":   {call("input_load_u64", 13), "input_load_u64: 8 bytes at 13 are outside the input of 20 bytes"},
		"load input at a negative offset":         {call("input_load_u64", last-7), "outside the input"},
		"set an output that ends outside":         {at("output_set", 0, 17), "output_set: 17 bytes at offset"},
		"set an output that wraps around":         {at("output_set", 0, last), "output_set: 18446744073709551615 bytes at offset"},
		"set an output at nowhere":                {call("output_set", 0, 1), "output_set: 1 bytes at offset 0x0"},
		"set nothing as output":                   {call("output_set", 0, 0), ""},
		"set an error in the middle of a block":   {at("error_set", 8), "error_set: there is no block at offset"},
		"set an error outside":                    {call("error_set", last), "error_set: there is no block at offset 0xffffffffffffffff"},
		"look up a name outside":                  {at("config_get", 1), "config_get: there is no block"},
		"look up no name":                         {call("config_get", 0), ""},
		"look up an endless name":                 {func(g *bare) (uint64, error) { return g.try("config_get", g.do("alloc", 4097)) }, "config_get: a name of 4097 bytes; 4096 are the most"},
		"get a variable of a name outside":        {call("var_get", 1<<40), "var_get: there is no block"},
		"set a variable to a value outside":       {at("var_set", 0, 3), "var_set: there is no block at offset 0x3"},
		"fill the variables":                      {fillVariables, "var_set: the variables need"},
		"log from outside":                        {call("log_info", 12345), "log_info: there is no block"},
		"request from outside":                    {call("http_request", 7, 0), "http_request: there is no block"},
		"request what is not JSON":                {func(g *bare) (uint64, error) { return g.try("http_request", g.put("{"), 0) }, "http_request: read the request:"},
		"request with a body outside":             {func(g *bare) (uint64, error) { return g.try("http_request", g.put("{}"), 9) }, "http_request: there is no block at offset 0x9"},
		"a message of hyper-mcp that is not JSON": {func(g *bare) (uint64, error) { return g.try("notify_logging_message", g.put("x")) }, "notify_logging_message: read the message:"},
		"a message of a level that is none":       {func(g *bare) (uint64, error) { return g.try("notify_logging_message", g.put(`{"level":"x"}`)) }, `a message of level "x"`},
		"allocate nothing":                        {call("alloc", 0), ""},
		"allocate all of the address space":       {call("alloc", last), "alloc: 18446744073709551615 bytes more than the 48 in use: the heap is full"},
		"allocate half of the address space":      {call("alloc", 1<<63), "the heap is full"},
		"allocate one more than the heap holds":   {call("alloc", 1<<20-47), "the heap is full, its limit is 1048576 bytes"},
		"allocate just what the heap holds":       {call("alloc", 917504), ""},
		"allocate again and again":                {func(g *bare) (uint64, error) { return repeat(g, "alloc", 1000) }, "the heap is full"},
		"let the host allocate again and again":   {func(g *bare) (uint64, error) { return repeat(g, "list_roots") }, "list_roots: 12 bytes more than the"},
		"free nowhere":                            {call("free", 0), ""},
		"free outside":                            {call("free", last), ""},
		"free in the middle of a block":           {at("free", 8), ""},
		"use a name that was freed":               {useFreed, "config_get: there is no block"},
		"an error of the embedder's HTTP":         {func(g *bare) (uint64, error) { return g.try("http_request", g.put("{}"), 0) }, "http_request: refused by the test"},
		"an error of the embedder's meter":        {call("alloc", 666), "out of the test's budget"},
	}
	guest := newBare(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := &bare{t, guest.mod, &extism.Plugin{Input: make([]byte, 20), MaxHeap: 1 << 20}}
			g.p.HTTP = func(context.Context, string, string, map[string][]string, []byte) (int, map[string][]string, []byte, error) {
				return 0, nil, nil, errors.New("refused by the test")
			}
			g.p.Charge = func(n int) error {
				if n == 666 {
					return errBudget
				}
				return nil
			}
			_, err := tt.do(g)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("err = %v, want one with %q", err, tt.want)
			}
			var host *extism.Error
			if err != nil && !errors.As(err, &host) && !errors.Is(err, errBudget) {
				t.Errorf("the error is untyped: %v", err)
			}
			if full := strings.Contains(tt.want, "heap is full"); full && !errors.Is(err, extism.ErrHeap) {
				t.Errorf("%v is not an ErrHeap", err)
			}
			if err != nil && strings.Contains(err.Error(), "Go runtime") {
				t.Errorf("the host panicked: %v", err)
			}
		})
	}
}

var errBudget = errors.New("out of the test's budget")

// repeat does a call again and again until it fails: each needs some of the heap.
func repeat(g *bare, name string, args ...uint64) (uint64, error) {
	for range 1 << 17 {
		if _, err := g.try(name, args...); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("it never ended")
}

func fillVariables(g *bare) (uint64, error) {
	g.p.MaxHeap = 0
	value := g.do("alloc", 100_000)
	for i := range 100 {
		if _, err := g.try("var_set", g.put(strings.Repeat("k", i+1)), value); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("it never ended")
}

func useFreed(g *bare) (uint64, error) {
	key := g.put("key")
	g.put("beside it, so that its place stays known")
	g.do("free", key)
	return g.try("config_get", key)
}

// TestNoCall checks a host call outside of any call of a plug-in.
func TestNoCall(t *testing.T) {
	g := newBare(t)
	_, err := g.mod.ExportedFunction("alloc").Call(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "alloc: no call of a plug-in is running") {
		t.Errorf("err = %v", err)
	}
}

func TestFree(t *testing.T) {
	g := newBare(t)
	a, b, c := g.put("aaaa"), g.put("bbbb"), g.put("cccc")
	g.do("free", b)
	if n := g.do("length", b) + g.do("length_unsafe", b); n != 0 {
		t.Errorf("a freed block has a length: %d", n)
	}
	if again := g.do("alloc", 3); again != b {
		t.Errorf("a block of the freed one's size is at %d, not at its %d", again, b)
	}
	g.do("free", b)
	g.do("free", b)
	if d, e := g.do("alloc", 4), g.do("alloc", 4); d == e || slices.Contains([]uint64{a, c}, d) || slices.Contains([]uint64{a, c}, e) {
		t.Errorf("after a double free, blocks are at %d and %d; in use were %d and %d", d, e, a, c)
	}
	if g.get(a) != "aaaa" || g.get(c) != "cccc" {
		t.Errorf("other blocks are %q and %q", g.get(a), g.get(c))
	}
}

// TestFreeLast checks that a buffer that grows by copying fits a heap of little
// more than it and its copy.
func TestFreeLast(t *testing.T) {
	g := newBare(t)
	g.p.MaxHeap = 1 << 20
	for n := uint64(1); n < 400_000; n += n/16 + 1 {
		g.do("free", g.do("alloc", n))
	}
	if n := g.do("memory_bytes"); n > 500_000 {
		t.Errorf("the heap has %d bytes", n)
	}
}

func TestInput(t *testing.T) {
	g := newBare(t)
	g.p.Input = []byte("0123456789")
	if n, at := g.do("input_length"), g.do("input_offset"); n != 10 || g.get(at) != "0123456789" {
		t.Errorf("the input has %d bytes: %q", n, g.get(at))
	}
	g.do("store_u8", g.do("input_offset"), 'x')
	if b := g.do("input_load_u8", 0); b != 'x' || string(g.p.Input) != "0123456789" {
		t.Errorf("the guest reads %#x, the caller's input is %q", b, g.p.Input)
	}
	g.do("free", g.do("input_offset"))
	if n := g.do("input_length"); n != 0 {
		t.Errorf("the freed input has %d bytes", n)
	}
	empty := &bare{t, g.mod, &extism.Plugin{}}
	if n := empty.do("input_length") + empty.do("input_offset"); n != 0 {
		t.Error("an empty input is somewhere")
	}
}

func TestReset(t *testing.T) {
	g := newBare(t)
	g.p.Input = []byte("in")
	at := g.put("text")
	g.do("output_set", at, 4)
	g.do("error_set", at)
	if g.do("error_get") != at || g.p.Err != "text" || string(g.p.Output) != "text" {
		t.Errorf("before: error %q, output %q", g.p.Err, g.p.Output)
	}
	g.do("reset")
	if n := g.do("length", at) + g.do("memory_bytes") + g.do("input_length") + g.do("error_get"); n != 0 || g.p.Err != "" || g.p.Output != nil {
		t.Errorf("after: %d, error %q, output %q", n, g.p.Err, g.p.Output)
	}
}

// TestResultsAreCopies checks that what the guest set stays, whatever it does
// to the memory.
func TestResultsAreCopies(t *testing.T) {
	g := newBare(t)
	at := g.put("text")
	g.do("output_set", at, 4)
	g.do("error_set", at)
	g.do("store_u8", at, 'x')
	g.do("free", at)
	if g.p.Err != "text" || string(g.p.Output) != "text" {
		t.Errorf("error %q, output %q", g.p.Err, g.p.Output)
	}
	g.do("error_set", 0)
	if g.p.Err != "" {
		t.Errorf("the error is still %q", g.p.Err)
	}
}

func TestBounds(t *testing.T) {
	g := newBare(t)
	var book logbook
	g.p.Log = book.log
	long := g.do("alloc", 100_000)
	g.do("store_u8", long, 0xff)
	g.do("log_trace", long)
	g.do("error_set", long)
	if len(book) != 1 || len(book[0]) != len("trace: ")+16<<10+2 || !strings.HasPrefix(book[0], "trace: \ufffd") {
		t.Errorf("logged %d messages, the first of %d bytes", len(book), len(book.String()))
	}
	if len(g.p.Err) != 64<<10+2 {
		t.Errorf("the error has %d bytes", len(g.p.Err))
	}
	none := &bare{t, g.mod, &extism.Plugin{MaxHeap: -1}}
	if _, err := none.try("alloc", 1); !errors.Is(err, extism.ErrHeap) {
		t.Errorf("a heap of less than nothing: %v", err)
	}
}

// TestJSONIsBounded: reading JSON takes many times its size, and cannot be interrupted. A request
// that cannot be sent is not read at all.
func TestJSONIsBounded(t *testing.T) {
	g := newBare(t)
	g.p.MaxHeap = 16 << 20
	const want = "4194305 bytes of JSON; 4194304 are the most"
	endless := g.do("alloc", 4<<20+1)
	if _, err := g.try("notify_logging_message", endless); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a message: %v", err)
	}
	g.p.NoHTTP = errors.New("not for you")
	if _, err := g.try("http_request", endless, 0); !errors.Is(err, g.p.NoHTTP) {
		t.Errorf("a request without HTTP: %v", err)
	}
	g.p.HTTP = func(context.Context, string, string, map[string][]string, []byte) (int, map[string][]string, []byte, error) {
		t.Error("it was sent")
		return 0, nil, nil, nil
	}
	if _, err := g.try("http_request", endless, 0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a request: %v", err)
	}
}

// TestVariables checks the variables that a call keeps itself.
func TestVariables(t *testing.T) {
	g := newBare(t)
	key, half := g.put("key"), g.do("alloc", 600_000)
	for range 5 { // one replaces the other, so that they need no room together
		g.do("var_set", key, half)
	}
	g.do("var_set", key, 0)
	if g.do("var_get", key) != 0 {
		t.Error("the variable is still there")
	}
	g.do("var_set", g.put("other"), half)
	g.do("var_set", key, g.put("value"))
	if got := g.get(g.do("var_get", key)); got != "value" {
		t.Errorf("the variable is %q", got)
	}
}

// TestCharge checks that every host call is charged for, and for what it moves.
func TestCharge(t *testing.T) {
	g := newBare(t)
	text := `{"level":"info","data":"` + strings.Repeat("m", 1000) + `"}`
	message := g.put(text)
	g.p.Charge = func(n int) error { return errBudget }
	for _, names := range extism.Imports() {
		for name, f := range names {
			args := []uint64{message, 1}[:len(f.Params)]
			if name == "input_load_u8" || name == "input_load_u64" {
				continue // there is no input; they are load_u8 and load_u64 of it
			}
			if _, err := g.try(name, args...); !errors.Is(err, errBudget) {
				t.Errorf("%s is free of charge: %v", name, err)
			}
		}
	}
	for name, least := range map[string]int{"config_get": 1000, "notify_logging_message": 1000, "log_warn": 1000, "error_set": 1000, "load_u64": 8, "store_u8": 1} {
		sum := 0
		g.p.Charge = nil
		message := g.put(text)
		g.p.Charge = func(n int) error { sum += n; return nil }
		g.do(name, []uint64{message, 1}[:len(extism.Imports()[module(name)][name].Params)]...)
		if sum < least {
			t.Errorf("%s is charged %d, want %d or more", name, sum, least)
		}
	}
}

func module(name string) string {
	for m, names := range maps.All(extism.Imports()) {
		if _, ok := names[name]; ok {
			return m
		}
	}
	return ""
}

// TestReentry has the embedder's functions call the guest again, on the same
// heap, while a host call is under way.
func TestReentry(t *testing.T) {
	g := newBare(t)
	request, body := g.put(`{"url":"u"}`), g.put("body")
	var nested int
	stir := func(ctx context.Context) { // changes the heap under the host call
		nested++
		g.do("free", body)
		for range 100 {
			g.do("store_u8", g.do("alloc", 5000), 'x')
		}
		for i := range uint64(4) {
			g.do("store_u8", body+i, 'x')
		}
	}
	g.p.HTTP = func(ctx context.Context, _, _ string, _ map[string][]string, body []byte) (int, map[string][]string, []byte, error) {
		stir(ctx)
		return 200, nil, slices.Concat(body, []byte(" back")), nil
	}
	kept := map[string]string{}
	g.p.SetVar = func(ctx context.Context, key string, value []byte) error {
		stir(ctx)
		kept[key] = string(value)
		return nil
	}
	g.p.Var = func(ctx context.Context, key string) ([]byte, bool, error) {
		stir(ctx)
		return []byte(kept[key]), true, nil
	}
	if got := g.get(g.do("http_request", request, body)); got != "body back" {
		t.Errorf("the response is %q", got)
	}
	if got := g.get(g.do("http_headers")); got != "{}" || g.do("http_status_code") != 200 {
		t.Errorf("the headers are %q", got)
	}
	key, value := g.put("key"), g.put("value")
	g.do("var_set", key, value)
	if got := g.get(g.do("var_get", key)); got != "value" || nested != 3 {
		t.Errorf("the variable is %q, after %d nested calls", got, nested)
	}
}
