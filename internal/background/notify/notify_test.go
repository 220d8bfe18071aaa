package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/background/notify"
)

// TestOffer never blocks, and what has no room is said.
func TestOffer(t *testing.T) {
	var mu sync.Mutex
	var failures []string
	c := notify.NewChannel(nil, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err.Error())
	})
	c.About = []notify.Kind{notify.Approval}
	for range 66 {
		c.Offer(notify.Notice{Kind: notify.Approval})
		c.Offer(notify.Notice{Kind: notify.Audit}) // which it is not for
	}
	if len(failures) != 2 || !strings.Contains(failures[1], "2 notices came faster") {
		t.Errorf("failures %q", failures)
	}
}

// TestRun tries again, and gives up.
func TestRun(t *testing.T) {
	sent := make(chan notify.Notice, 10)
	tries := 0
	c := notify.NewChannel(func(_ context.Context, n notify.Notice) error {
		if tries++; tries == 1 {
			return errors.New("not now")
		}
		sent <- n
		return nil
	}, func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	c.Offer(notify.Notice{Kind: notify.Quarantine, Text: "x", Arguments: json.RawMessage(`{"a":1}`)})
	n := <-sent
	cancel()
	wg.Wait()
	if n.Title == "" || n.Arguments != nil || tries != 2 {
		t.Errorf("%+v after %d tries", n, tries)
	}
}

// TestCommand: a program gets a minimal environment and no more than its text, and its last
// words are in the error.
func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("WASMGATE_CANARY", "secret")
	if err := notify.Run(t.Context(), []string{"sh", "-c", `cat > "$1"; env >> "$1"`, "x", out}, []byte("text\n")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(b), "text\n") || strings.Contains(string(b), "secret") {
		t.Errorf("%q, %v", b, err)
	}
	err = notify.Run(t.Context(), []string{"sh", "-c", "echo why >&2; exit 4"}, nil)
	if err == nil || err.Error() != "sh: exit status 4: why" {
		t.Errorf("error %v", err)
	}
	if err := notify.Run(t.Context(), []string{"no-such-program"}, nil); err == nil {
		t.Error("a program that is not there was run")
	}
}

// TestDesktop shows fixed words through the desktop's program, and says when there is none.
func TestDesktop(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program that shows it is Linux's")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	out := filepath.Join(dir, "out")
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte("#!/bin/sh\nprintf '%s|' \"$@\" > '"+out+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := notify.Notice{Kind: notify.Approval, Title: "A call waits for your approval", Text: "--canary", Tool: "--canary"}
	if err := notify.Desktop(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil || string(b) != "--app-name=wasmgate|wasmgate|A call waits for your approval|" {
		t.Errorf("%q, %v", b, err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := notify.Desktop(t.Context(), n); !errors.Is(err, notify.ErrNoDesktop) {
		t.Errorf("error %v", err)
	}
}
