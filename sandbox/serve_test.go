package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A client speaks to a server that runs in the sandbox.
type client struct {
	t     *testing.T
	in    *sandbox.Pipe
	lines *bufio.Scanner
	ended chan error
}

func serve(t *testing.T, m *sandbox.Module) *client {
	out, stdout := io.Pipe()
	c := &client{t, sandbox.NewPipe(), bufio.NewScanner(out), make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		err := m.Serve(ctx, c.in, stdout, sandbox.ServeConfig{})
		stdout.Close()
		c.ended <- err
	}()
	return c
}

// ask sends a request and returns the answer to it.
func (c *client) ask(id int, method, params string) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		return err.Error()
	}
	for c.lines.Scan() {
		if strings.Contains(c.lines.Text(), fmt.Sprintf(`"id":%d`, id)) {
			return c.lines.Text()
		}
	}
	return ""
}

func (c *client) begin() {
	c.t.Helper()
	if got := c.hello(); !strings.Contains(got, `"guest"`) {
		c.t.Fatalf("initialize: %s", got)
	}
}

// hello is the handshake. It returns what the server answers.
func (c *client) hello() string {
	c.t.Helper()
	got := c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	_, _ = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n") // to a server that may have ended
	return got
}

// TestServe runs an MCP server written in Go on the official SDK, unchanged, in
// the sandbox: it answers, keeps its state, waits longer than its time limit for
// input, and ends when a request spins.
func TestServe(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an MCP server with the Go toolchain")
	}
	var log bytes.Buffer
	r := newRuntime(t, sandbox.Config{CacheDir: cache, Log: slog.New(slog.NewTextHandler(&log, nil))})
	wasm := goGuest(t, filepath.Join("testdata", "mcpserver"), "exe")
	limited := func(limit time.Duration) *sandbox.Module {
		return compile(t, r, wasm, sandbox.ModuleConfig{Name: "guest", Server: true, Limits: sandbox.Limits{Timeout: limit}})
	}
	m := limited(long)
	c := serve(t, m)
	c.begin()
	call := func(c *client, id int, tool string) string {
		return c.ask(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"text":"abc"}}`, tool))
	}
	steps := []struct{ tool, want string }{{"upper", "ABC"}, {"count", `"xx"`}, {"nap", "rested"}, {"count", `"xxxx"`}}
	for i, s := range steps {
		if got := call(c, i+1, s.tool); !strings.Contains(got, s.want) {
			t.Fatalf("%s: %s, want %s", s.tool, got, s.want)
		}
	}
	other := serve(t, m)
	other.begin()
	if got := call(other, 1, "count"); !strings.Contains(got, `"x"`) {
		t.Errorf("another run found %s", got)
	}
	other.in.Close()
	if err := <-other.ended; err != nil {
		t.Errorf("at the end of its input: %v", err)
	}

	timelimit.Grow(t, 700*time.Millisecond, func(limit time.Duration) error {
		c = serve(t, limited(limit))
		got := c.hello()
		if strings.Contains(got, `"guest"`) {
			time.Sleep(limit * 5 / 4)
			got = call(c, 9, "upper")
		}
		if !strings.Contains(got, "ABC") {
			return fmt.Errorf("after a wait: %s", got)
		}
		return nil
	})
	if got := call(c, 10, "spin"); got != "" {
		t.Errorf("a tool that spins answered %s", got)
	}
	var trap *sandbox.Trap
	if err := <-c.ended; !errors.As(err, &trap) || trap.Kind != sandbox.TrapDeadline {
		t.Errorf("a tool that spins ended with %v", err)
	}
	if _, err := c.in.Write(make([]byte, 1<<20)); err == nil {
		t.Error("a server that has ended takes input")
	}
	if !strings.Contains(log.String(), "ready") {
		t.Errorf("its stderr was not logged: %s", log.String())
	}
	if _, err := m.Call(t.Context(), "upper", nil, sandbox.CallConfig{}); err == nil {
		t.Error("a server has tools that can be called")
	}
}

// TestServeEndsWithItsContext checks that a server that waits for input ends.
func TestServeEndsWithItsContext(t *testing.T) {
	m := compile(t, newRuntime(t, sandbox.Config{}), command(1, 0).bytesWithout(), sandbox.ModuleConfig{Server: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Serve(ctx, sandbox.NewPipe(), io.Discard, sandbox.ServeConfig{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the context's own", err)
	}
	if _, err := newRuntime(t, sandbox.Config{}).Compile(t.Context(), reactor(number(0)).bytesWithout(), sandbox.ModuleConfig{Server: true}); err == nil {
		t.Error("a reactor was taken for a server")
	}
}

// TestServeBoundsLines checks that a server cannot fill memory with a line that
// never ends.
func TestServeBoundsLines(t *testing.T) {
	flood := newGuest()
	write := flood.wasi("fd_write", i32+i32+i32+i32, i32)
	exit := flood.wasi("proc_exit", i32, "")
	flood.function("_start", "", "", put(0, 1024), put(4, 512),
		loop(number(1), number(0), number(1), number(8), write, 0x04, 0x40, number(7), exit, 0x0b))
	m := compile(t, newRuntime(t, sandbox.Config{}), flood.bytes(), sandbox.ModuleConfig{Server: true})
	var out bytes.Buffer
	err := m.Serve(t.Context(), sandbox.NewPipe(), &out, sandbox.ServeConfig{MaxLine: 10_000})
	if code(err) != "trap_guest" || out.Len() > 10_000 {
		t.Errorf("%v after %d bytes, want an exit when the write fails", err, out.Len())
	}
}

// TestServeLogsLines checks that a line is one record, in however many pieces it is written.
func TestServeLogsLines(t *testing.T) {
	g := newGuest()
	write := g.wasi("fd_write", i32+i32+i32+i32, i32)
	says := func(text string) []byte { // of up to four bytes
		word := binary.LittleEndian.Uint32([]byte(text + "\x00\x00\x00\x00"))
		return join(put(100, int32(word)), put(0, 100), put(4, int32(len(text))), number(2), number(0), number(1), number(8), write, drop)
	}
	g.function("_start", "", "", says("pan"), says("ic"), says(": x\n"), says("\n"), says("a\nb"), says("c"))
	var log bytes.Buffer
	r := newRuntime(t, sandbox.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	m := compile(t, r, g.bytes(), sandbox.ModuleConfig{Server: true})
	if err := m.Serve(t.Context(), sandbox.NewPipe(), io.Discard, sandbox.ServeConfig{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`text="panic: x"`, "text=a\n", "text=bc\n"} {
		if !strings.Contains(log.String(), want) || strings.Count(log.String(), "guest log") != 3 {
			t.Errorf("no %s, or not 3 records:\n%s", want, log.String())
		}
	}
}
