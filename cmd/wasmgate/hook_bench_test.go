//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkHook times a hook's decision as an agent waits for it: the whole program, the small
// one, and a program that does nothing, in turn. The metrics are medians.
func BenchmarkHook(b *testing.B) {
	dir := b.TempDir()
	build := func(name, from string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, from).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	whole, small := build("wasmgate", "."), build("wasmgate-hook", "../wasmgate-hook")
	state := filepath.Join(dir, "state")
	config := filepath.Join(dir, "wasmgate.yaml")
	write(config, "version: 1\nagents: {claude-code: {}}\n")
	write(filepath.Join(dir, "grants.yaml"), "- {to: [local], agents: [\"claude-code__*\"]}\n")
	serve := exec.CommandContext(b.Context(), whole, "--config", config, "serve", "--listen", "127.0.0.1:0")
	if err := serve.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	const event = `{"hook_event_name":"PreToolUse","session_id":"s%d","tool_use_id":"t%d","tool_name":"Bash","tool_input":{"command":"ls"}}`
	programs := []struct {
		name string
		args []string
	}{
		{"true", []string{"true"}}, {"wasmgate-hook", []string{small, "--state", state, "claude-code"}},
		{"wasmgate", []string{whole, "hook", "--state", state, "claude-code"}},
	}
	took := make([][]time.Duration, len(programs))
	n := 0
	ask := func(i int) error {
		n++
		c := exec.CommandContext(b.Context(), programs[i].args[0], programs[i].args[1:]...)
		c.Stdin = strings.NewReader(fmt.Sprintf(event, n, n))
		began := time.Now()
		out, err := c.CombinedOutput()
		took[i] = append(took[i], time.Since(began))
		if err == nil && len(out) > 0 {
			b.Fatalf("%s: %s", programs[i].name, out)
		}
		return err
	}
	for end := time.Now().Add(3 * time.Minute); ask(1) != nil; {
		if time.Now().After(end) {
			b.Fatal("the gateway does not answer")
		}
		took[1] = nil
		time.Sleep(20 * time.Millisecond)
	}
	took[1] = nil
	for b.Loop() {
		for i := range programs {
			if err := ask(i); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i, p := range programs {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, p.name+"-ms")
	}
}
