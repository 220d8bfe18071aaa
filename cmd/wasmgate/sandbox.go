package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/config"
	"github.com/wasmgate/wasmgate/sandbox"
)

func (c *cli) newSandbox() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sandbox",
		Short:   "Run a WASM tool by itself",
		Example: "  echo '{\"text\":\"hello\"}' | wasmgate sandbox run tool.wasm --tool hash",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newSandboxRun(), notYet("inspect"), notYet("new"))
	return cmd
}

type sandboxFlags struct {
	tool, memory string
	timeout      time.Duration
	fuel         uint64
}

func (c *cli) newSandboxRun() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "run MODULE",
		Short: "Run a tool of a WASM module, without the gate",
		Long: `Runs a tool of a module on the arguments that standard input holds as JSON, and prints its output;
what it used goes to standard error. MODULE is a file, or "embedded" for the tools that come
with wasmgate. Nothing is validated, sanitized or recorded: it is for who writes tools.`,
		Example: "  echo '{\"text\":\"hello\",\"algorithm\":\"sha256\"}' | wasmgate sandbox run embedded --tool hash",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"http", "dir"} {
				if cmd.Flags().Changed(name) {
					return misuse("--%s: not in this version", name)
				}
			}
			return c.sandboxRun(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "tool to run; not needed if the module has one")
	flags.DurationVar(&f.timeout, "timeout", 0, "wall time, such as 1s (default: the sandbox's, 5s)")
	flags.StringVar(&f.memory, "memory", "", "linear memory, such as 64MiB (default: the sandbox's, 64MiB)")
	flags.Uint64Var(&f.fuel, "fuel", 0, "instructions (default: the sandbox's, which time ends first)")
	flags.StringArray("http", nil, "origin that may be reached: not in this version")
	flags.StringArray("dir", nil, "folder that may be read: not in this version")
	return cmd
}

func (c *cli) sandboxRun(ctx context.Context, module string, f sandboxFlags) (err error) {
	if f.timeout < 0 {
		return misuse("--timeout is negative")
	}
	limits := sandbox.Limits{Timeout: f.timeout, Fuel: f.fuel}
	if f.memory != "" {
		if limits.Memory, err = parseSize(f.memory); err != nil {
			return misuse("--memory: %v", err)
		}
	}
	dirs, err := config.UserDirs()
	if err != nil {
		return err
	}
	runtime, err := sandbox.New(ctx, sandbox.Config{
		CacheDir: filepath.Join(dirs.State, "wasm"), Log: slog.New(slog.NewTextHandler(c.err, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close(ctx)) }()
	m, err := loadModule(ctx, runtime, module, limits)
	if err != nil {
		return err
	}
	tool, err := chooseTool(m, f.tool)
	if err != nil {
		return err
	}
	args, err := c.input("-")
	if err != nil {
		return err
	}
	res, err := m.Call(ctx, tool, args, sandbox.CallConfig{})
	if err != nil {
		fmt.Fprintln(c.err, used(res))
		return err
	}
	if err := c.printRun(res); err != nil {
		return err
	}
	if res.IsError {
		return &exitError{exitFailed, errors.New("the tool reports an error")}
	}
	return nil
}

func used(r sandbox.Result) string {
	return fmt.Sprintf("took %s, fuel %d, memory peak %.1f MiB", r.Took.Round(time.Microsecond), r.Fuel, float64(r.MemoryPeak)/(1<<20))
}

func (c *cli) printRun(r sandbox.Result) error {
	if !c.json {
		fmt.Fprintln(c.err, used(r))
		_, err := fmt.Fprintf(c.out, "%s\n", bytes.TrimRight(r.Output, "\n"))
		return err
	}
	var output any = string(r.Output)
	if !r.IsError && json.Valid(r.Output) { // a tool error is text
		output = json.RawMessage(r.Output)
	}
	return c.printJSON(map[string]any{
		"output": output, "is_error": r.IsError, "took_us": r.Took.Microseconds(), "fuel": r.Fuel, "memory_peak": r.MemoryPeak,
	})
}

func loadModule(ctx context.Context, r *sandbox.Runtime, module string, limits sandbox.Limits) (*sandbox.Module, error) {
	mc := sandbox.ModuleConfig{Name: module, Limits: limits}
	if module == "embedded" {
		wasm, err := sandbox.EmbeddedTools()
		if err != nil {
			return nil, err
		}
		return r.Compile(ctx, wasm, mc)
	}
	wasm, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	manifest, err := config.ReadManifest(module)
	if err != nil {
		return nil, err
	}
	if manifest != nil {
		parsed, err := sandbox.ParseManifest(manifest)
		if err != nil {
			return nil, err
		}
		mc.Manifest = &parsed
	}
	mc.Name = filepath.Base(module)
	return r.Compile(ctx, wasm, mc)
}

func chooseTool(m *sandbox.Module, name string) (string, error) {
	var names []string
	for _, t := range m.Tools() {
		if t.Name == name {
			return name, nil
		}
		names = append(names, t.Name)
	}
	if name == "" && len(names) == 1 {
		return names[0], nil
	}
	return "", misuse("--tool names one of the module's tools: %s", strings.Join(names, ", "))
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,9})(KiB|MiB|GiB)$`)

func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no size; write it as 64MiB", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n << map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]], err
}
