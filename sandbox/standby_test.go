package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// standbyModule returns a command whose instances wait for their input.
func standbyModule(t *testing.T, cfg sandbox.ModuleConfig) (*sandbox.Runtime, *sandbox.Module) {
	t.Helper()
	r, err := sandbox.New(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	manifest := sandbox.Manifest{
		Tools:    []sandbox.Tool{{Name: "a", InputSchema: []byte(`{"type":"object"}`)}, {Name: "b", InputSchema: []byte(`{"type":"object"}`)}},
		Snapshot: sandbox.SnapshotInput,
	}
	cfg.Manifest = &manifest
	m, err := r.Compile(t.Context(), echo(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

// echo is a command that answers with what it reads in one go.
func echo() []byte {
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	name := func(s string) string { return string([]byte{byte(len(s))}) + s }
	const wasi = "wasi_snapshot_preview1"
	body := "\x00" + // the vector at 0 has 32 KiB from 64 on, and the number of bytes goes to 8
		"\x41\x00\x41\xc0\x00\x36\x02\x00" + "\x41\x04\x41\x80\x80\x02\x36\x02\x00" +
		"\x41\x00\x41\x00\x41\x01\x41\x08\x10\x00\x1a" + // fd_read(0, 0, 1, 8)
		"\x41\x04\x41\x08\x28\x02\x00\x36\x02\x00" +
		"\x41\x01\x41\x00\x41\x01\x41\x08\x10\x01\x1a" + // fd_write(1, 0, 1, 8)
		"\x0b"
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00") +
		section(2, "\x02"+name(wasi)+name("fd_read")+"\x00\x00"+name(wasi)+name("fd_write")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+name("memory")+"\x02\x00"+name("_start")+"\x00\x02") +
		section(10, "\x01"+name(body)))
}

// Each call has its own tool, arguments and figures, whichever standby serves it, and so do calls
// at once.
func TestStandby(t *testing.T) {
	_, m := standbyModule(t, sandbox.ModuleConfig{Name: "echo"})
	one := func(tool string, i int) error {
		args := fmt.Sprintf(`{"i":%d}`, i)
		res, err := m.Call(t.Context(), tool, []byte(args), sandbox.CallConfig{Caller: tool})
		if want := fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args); err != nil || string(res.Output) != want {
			return fmt.Errorf("%s, %v; want %s", res.Output, err, want)
		}
		if res.Fuel == 0 || res.Fuel > 1e5 || res.MemoryPeak != 64<<10 {
			return fmt.Errorf("it took %+v", res)
		}
		return nil
	}
	for i := range 20 {
		if err := one([]string{"a", "b"}[i%2], i); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				if err := one([]string{"a", "b"}[(i+j)%2], i*100+j); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The limits, the context and the host of a call are those of the call.
func TestStandbyLimits(t *testing.T) {
	_, m := standbyModule(t, sandbox.ModuleConfig{Name: "echo"})
	for range 3 {
		if _, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{}); err != nil {
			t.Fatal(err)
		}
		var trap *sandbox.Trap
		if _, err := m.Call(t.Context(), "a", []byte(`"`+strings.Repeat("x", 5000)+`"`), sandbox.CallConfig{Limits: sandbox.Limits{Fuel: 10}}); !errors.As(err, &trap) || trap.Kind != sandbox.TrapFuel {
			t.Errorf("fuel: %v", err)
		}
		if _, err := m.Call(t.Context(), "a", []byte(`"`+strings.Repeat("x", 5000)+`"`), sandbox.CallConfig{Limits: sandbox.Limits{Output: 100}}); !errors.As(err, &trap) {
			t.Errorf("output: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Call(ended, "a", nil, sandbox.CallConfig{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a call whose context has ended: %v", err)
		}
	}
}

// The error that a standby ended of before its call is not the caller's.
func TestStandbyThatHasEnded(t *testing.T) {
	_, m := standbyModule(t, sandbox.ModuleConfig{Name: "echo"})
	for range 3 {
		if _, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{}); err != nil {
			t.Fatal(err)
		}
		if n := m.EndStandbys(); n == 0 {
			t.Error("there is no standby behind a call")
		}
	}
}

// If there are no calls for a time, one of the instances that wait is left.
func TestStandbysAreTrimmed(t *testing.T) {
	r, m := standbyModule(t, sandbox.ModuleConfig{Name: "echo"})
	if _, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{}); err != nil {
		t.Fatal(err)
	}
	m.StartStandby()
	r.Trim(time.Minute)
	if n := m.Standbys(); n < 2 {
		t.Errorf("%d instances wait, a minute after a call", n)
	}
	r.Trim(3 * time.Minute)
	if n := m.Standbys(); n != 1 {
		t.Errorf("%d instances wait, three minutes after a call, want 1", n)
	}
}

// A standby waits for longer than a call may take, and ends with its module.
func TestStandbyWaits(t *testing.T) {
	unraced.Long(t)
	var r *sandbox.Runtime
	var m *sandbox.Module
	timelimit.Grow(t, time.Second, func(limit time.Duration) error {
		r, m = standbyModule(t, sandbox.ModuleConfig{Name: "echo", Limits: sandbox.Limits{Timeout: limit}})
		if _, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{}); err != nil {
			return err
		}
		time.Sleep(limit * 5 / 4)
		_, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{})
		return err
	})
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := m.Call(t.Context(), "a", nil, sandbox.CallConfig{}); err == nil {
		t.Error("a module that is closed was called")
	}
}
