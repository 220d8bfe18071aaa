package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/control"
)

// gateway is a backend that answers with what it was asked, and serves clients
// by repeating their lines.
type gateway struct{}

func (gateway) Handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "echo":
		return params, nil
	case "refuse":
		return nil, fmt.Errorf("wrapped: %w", &control.Error{Code: "refused_lookup", Message: "no such tool", Detail: json.RawMessage(`{"a":1}`)})
	case "break":
		return nil, errors.New("it broke")
	case "die":
		panic(http.ErrAbortHandler)
	default: // wait
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func (gateway) Client(as string, groups []string) (func(context.Context, io.Reader, io.Writer) error, error) {
	if as == "nobody" {
		return nil, &control.Error{Code: "principal", Message: "no principal"}
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintln("hello", as, strings.Join(groups, "+"))))
		for s := bufio.NewScanner(in); s.Scan() && s.Text() != "leave"; {
			fmt.Fprintln(out, s.Text())
		}
		fmt.Fprintln(out, "bye")
		return nil
	}, nil
}

// serve serves a gateway on a new state folder until the test or end ends it.
func serve(t *testing.T, state string) (end func()) {
	t.Helper()
	return serveBackend(t, state, gateway{})
}

func serveBackend(t *testing.T, state string, b control.Backend) (end func()) {
	t.Helper()
	lock, err := control.Acquire(state)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := control.Listen(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(ctx, ln, b, nil, 0); err != nil {
			t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		control.Remove(state)
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

func dial(t *testing.T, state string) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const holderEnv = "CONTROL_TEST_HOLD"

func TestMain(m *testing.M) {
	if state := os.Getenv(holderEnv); state != "" {
		if _, err := control.Acquire(state); err != nil {
			panic(err)
		}
		if _, err := control.Listen(context.Background(), state); err != nil {
			panic(err)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	os.Exit(m.Run())
}

// The lock of another process holds as long as it lives, and what it leaves behind when it is killed
// does not block the next process.
func TestLockOfAnotherProcess(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), holderEnv+"="+state)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Acquire(state); !errors.Is(err, control.ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
	_ = c.Process.Kill()
	_ = c.Wait()

	if _, err := os.Stat(filepath.Join(state, "control.sock")); err != nil {
		t.Fatal("the socket should be left behind:", err)
	}
	if _, err := control.Dial(t.Context(), state); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("a stale socket: error %v, want ErrNotRunning", err)
	}
	serve(t, state)
	dial(t, state)
}

func TestLockIsReleased(t *testing.T) {
	state := t.TempDir()
	one, err := control.Acquire(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.Acquire(state); !errors.Is(err, control.ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
	if err := one.Release(); err != nil {
		t.Fatal(err)
	}
	two, err := control.Acquire(state)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := two.Release(); err != nil {
			t.Error(err)
		}
	}
}

// A folder in which every user can write is no state folder: they would become the operator.
func TestOpenStateFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	for mode := range os.FileMode(0o1000) {
		if mode&0o700 != 0o700 {
			continue // others than root cannot use it
		}
		state := t.TempDir()
		if err := os.Chmod(state, mode); err != nil {
			t.Fatal(err)
		}
		l, err := control.Acquire(state)
		if (err == nil) != (mode&0o002 == 0) {
			t.Errorf("mode %03o: %v", mode, err)
		}
		if err != nil && !strings.Contains(err.Error(), "chmod 700 "+state) {
			t.Errorf("the error does not say what to do: %v", err)
		}
		if l != nil {
			l.Release()
		}
	}
}

func TestOnlyTheOwnerMayAsk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	state := filepath.Join(t.TempDir(), "state")
	serve(t, state)
	for path, want := range map[string]os.FileMode{state: 0o700, filepath.Join(state, "control.sock"): 0o600, filepath.Join(state, "lock"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (error %v)", path, info.Mode().Perm(), want, err)
		}
	}
}

// Paths that are longer than the address of a socket may be work on Linux, and
// are refused with what to do elsewhere.
func TestLongStatePath(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "state")
	if runtime.GOOS != "linux" {
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Listen(t.Context(), state); err == nil || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("error %v", err)
		}
		return
	}
	end := serve(t, state)
	var got string
	if err := dial(t, state).Call(t.Context(), "echo", "x", &got); err != nil || got != "x" {
		t.Errorf("%q, error %v", got, err)
	}
	end()
	if _, err := os.Stat(filepath.Join(state, "control.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestCall(t *testing.T) {
	state := t.TempDir()
	serve(t, state)
	c := dial(t, state)
	var got map[string]any
	if err := c.Call(t.Context(), "echo", map[string]any{"a": "<b>"}, &got); err != nil || !cmp.Equal(got, map[string]any{"a": "<b>"}) {
		t.Errorf("%v, error %v", got, err)
	}

	want := &control.Error{Code: "refused_lookup", Message: "no such tool", Detail: json.RawMessage(`{"a":1}`)}
	var e *control.Error
	if err := c.Call(t.Context(), "refuse", nil, &got); !errors.As(err, &e) || !cmp.Equal(e, want) {
		t.Errorf("error %#v, want %#v", err, want)
	}
	if err := c.Call(t.Context(), "break", nil, &got); !errors.As(err, &e) || !cmp.Equal(e, &control.Error{Message: "it broke"}) {
		t.Errorf("error %#v", err)
	}
	if err := c.Call(t.Context(), "echo", strings.Repeat("a", 17<<20), &got); !errors.As(err, &e) || !strings.Contains(e.Message, "too large") {
		t.Errorf("a request that is too large: error %v", err)
	}
	for name, note := range map[string]func(json.RawMessage){"": nil, ", heard": func(json.RawMessage) {}} {
		if err := c.CallNoted(t.Context(), "die", nil, &got, note); err == nil || !strings.Contains(err.Error(), "ended before it answered") {
			t.Errorf("a gateway that ends in the middle of a request%s: error %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Call(ctx, "wait", nil, &got); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the end of the context", err)
	}
}

// relay starts a relay, and returns the client's ends of it.
func relay(t *testing.T, ctx context.Context, c *control.Client, as string) (to *io.PipeWriter, from *bufio.Reader, ended <-chan error) {
	in, to := io.Pipe()
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- c.Relay(ctx, as, nil, in, out)
		in.Close()
		out.Close()
	}()
	return to, bufio.NewReader(r), done
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	return strings.TrimSuffix(s, "\n")
}

func TestRelay(t *testing.T) {
	state := t.TempDir()
	end := serve(t, state)
	c := dial(t, state)

	t.Run("lines pass both ways until the client has said all", func(t *testing.T) {
		to, from, ended := relay(t, t.Context(), c, "alice")
		fmt.Fprintln(to, "one")
		fmt.Fprintln(to, "two")
		for _, want := range []string{"hello alice", "one", "two"} {
			if got := line(t, from); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		to.Close()
		if got := line(t, from); got != "bye" { // what the gateway sends last still comes
			t.Errorf("%q, want bye", got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("a client that is offered some groups", func(t *testing.T) {
		var out bytes.Buffer
		if err := c.Relay(t.Context(), "alice", []string{"a", "b&group=c"}, strings.NewReader("leave\n"), &out); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "hello alice a+b&group=c\nbye\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("the gateway ends it", func(t *testing.T) {
		to, from, ended := relay(t, t.Context(), c, "alice")
		fmt.Fprintln(to, "leave")
		line(t, from)
		line(t, from)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("the context ends it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, from, ended := relay(t, ctx, c, "alice")
		line(t, from)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a client that the gateway refuses", func(t *testing.T) {
		_, _, ended := relay(t, t.Context(), c, "nobody")
		var e *control.Error
		if err := <-ended; !errors.As(err, &e) || e.Code != "principal" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the end of the gateway ends it", func(t *testing.T) {
		_, from, ended := relay(t, t.Context(), c, "alice")
		line(t, from)
		end()
		<-ended
		if err := c.Relay(t.Context(), "alice", nil, strings.NewReader(""), io.Discard); !errors.Is(err, control.ErrNotRunning) {
			t.Errorf("error %v, want ErrNotRunning", err)
		}
	})
}

// A request to the socket that is not one of ours is answered, but not served.
func TestOtherRequests(t *testing.T) {
	state := t.TempDir()
	serve(t, state)
	conn, err := net.Dial("unix", filepath.Join(state, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /v1/echo HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := line(t, bufio.NewReader(conn)); !strings.Contains(got, "405") {
		t.Errorf("answer %q", got)
	}
}

func TestHammer(t *testing.T) {
	state := t.TempDir()
	serve(t, state)
	var wg sync.WaitGroup
	for p := range 8 {
		c := dial(t, state)
		wg.Go(func() {
			for i := range 20 {
				want, got := fmt.Sprintf("%d/%d", p, i), ""
				if err := c.Call(t.Context(), "echo", want, &got); err != nil || got != want {
					t.Errorf("%q, want %q (error %v)", got, want, err)
				}
				var out strings.Builder
				if err := c.Relay(t.Context(), "p", nil, strings.NewReader(want+"\n"), &out); err != nil || out.String() != "hello p\n"+want+"\nbye\n" {
					t.Errorf("relay of %q: %q, error %v", want, out.String(), err)
				}
			}
		})
	}
	wg.Wait()
}

// A socket that lingers answers commands that are connected until they have gone.
func TestLinger(t *testing.T) {
	state := t.TempDir()
	ln, err := control.Listen(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(ctx, ln, gateway{}, nil, time.Hour) }()
	c := dial(t, state)
	var got string
	for i := range 3 {
		if err := c.Call(t.Context(), "echo", "hello", &got); err != nil || got != "hello" {
			t.Errorf("call %d: %q, error %v", i, got, err)
		}
		leave()
	}
	c.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it stays though nobody is connected")
	}
}
