package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/program"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// output runs a command, which must succeed, and returns what it prints.
func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", c.Args, err, out, &stderr)
	}
	return string(out)
}

func TestEmbed(t *testing.T) {
	unraced.Long(t)
	want := "Oslo: sunny\nrefused: refused_authorize\nrefused: refused_validate_input\n"
	if got := output(t, exec.CommandContext(t.Context(), "go", "run", "./embed")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPolicy(t *testing.T) {
	unraced.Long(t)
	wasmgate := program.Build(t, false)
	out := output(t, exec.CommandContext(t.Context(), wasmgate, "policy", "test", "--config", "policy/wasmgate.yaml"))
	if !strings.Contains(out, " 0 failed, 0 skipped, 4 of yours") {
		t.Errorf("got %s", out)
	}
}

func TestTool(t *testing.T) {
	unraced.Long(t)
	wasmgate, module := program.Build(t, false), filepath.Join(t.TempDir(), "tool.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", module, "./tool")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	output(t, build)
	manifest, err := os.ReadFile("tool/tool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(module, ".wasm")+".yaml", manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), wasmgate, "sandbox", "run", module)
	run.Stdin = strings.NewReader(`{"text": "one two\nthree"}`)
	if got := output(t, run); got != "{\"words\":3}\n" {
		t.Errorf("got %q", got)
	}
}
