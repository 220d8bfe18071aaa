package hook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestMain says what the hook makes of the processes above it, where a test asks for that.
func TestMain(m *testing.M) {
	if agent := os.Getenv("HOOK_TEST_AGENT"); agent != "" {
		fmt.Print(headless(agent))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// terminal opens a new pseudo terminal, which no other process uses (pts(4)).
func terminal(t *testing.T) *os.File {
	t.Helper()
	all, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	t.Cleanup(func() { all.Close() })
	var n int32
	for _, request := range []uintptr{syscall.TIOCSPTLCK, syscall.TIOCGPTN} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, all.Fd(), request, uintptr(unsafe.Pointer(&n))); errno != 0 {
			t.Skip("no terminal can be made here:", errno)
		}
	}
	one, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	t.Cleanup(func() { one.Close() })
	return one
}

// A prompt is a person's only if the agent reads from a terminal, and got none when it was
// started.
func TestHeadless(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		agent, program string
		args           []string
		terminal       bool
		entry          string // CLAUDE_CODE_ENTRYPOINT
		want           string
	}{
		"at a terminal":                         {agent: "codex", program: "codex", terminal: true, want: "false"},
		"its prompt comes through a pipe":       {agent: "codex", program: "codex", want: "true"},
		"its prompt is an argument":             {agent: "codex", program: "codex", args: []string{"exec"}, terminal: true, want: "true"},
		"a shell at a terminal is not an agent": {agent: "codex", program: "other", terminal: true, want: "true"},
		"a project says that somebody does":     {agent: "claude-code", program: "claude", entry: "cli", want: "true"},
		"the agent says that no one does":       {agent: "claude-code", program: "claude", entry: "sdk-cli", terminal: true, want: "true"},
		"an agent that is not known":            {agent: "other", program: "other", terminal: true, want: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), tt.program)
			if err := os.WriteFile(program, []byte("#!/bin/sh\n'"+self+"'\nexit\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), program, tt.args...)
			c.Env = append(os.Environ(), "HOOK_TEST_AGENT="+tt.agent, "CLAUDE_CODE_ENTRYPOINT="+tt.entry)
			if c.Stdin = strings.NewReader(""); tt.terminal {
				c.Stdin = terminal(t)
			}
			out, err := c.Output()
			if err != nil || string(out) != tt.want {
				t.Errorf("%q, %v; want %s", out, err, tt.want)
			}
		})
	}
}
