package sandboxcommands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/cmd/internal/granted"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/cmd/internal/trial"
	"github.com/wasmgate/wasmgate/sandbox"
)

// sandboxFlags are the flags of `sandbox run`, as they are written.
type sandboxFlags struct {
	tool, memory, isolation string
	timeout                 time.Duration
	fuel                    uint64
	http, dirs, set, secret []string
	kv, wants               bool
}

func (c commands) newSandboxRun() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "run MODULE",
		Short: "Run a tool of a WASM module without a gateway",
		Long: `Reads the arguments as JSON from standard input, runs the tool, and prints its output. Its log and its cost
go to standard error. Arguments and output are validated against the tool's schemas. No policy decides, and
nothing is sanitized or recorded. The module gets only what the flags grant.
` + moduleHelp + `

Exits with 3 if the gateway would refuse the arguments or the output.`,
		Example: `  echo '{"text":"hello","algorithm":"sha256"}' | wasmgate sandbox run embedded --tool hash
  echo '{"roots":["/srv/src"]}' | wasmgate sandbox run embedded:files --dir /srv/src`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := f.parse()
			if err != nil {
				return shell.Exit(shell.ExitMisuse, err)
			}
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, modules moduleReader) error {
				return c.sandboxRun(cmd.Context(), r, modules, args[0], run)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "tool to run; not needed if the module has one")
	flags.DurationVar(&f.timeout, "timeout", 0, "wall time, such as 1s (default: the module's, or 5s)")
	flags.StringVar(&f.memory, "memory", "", "linear memory, such as 64MiB (default: the module's, or 64MiB)")
	flags.Uint64Var(&f.fuel, "fuel", 0, "bound of instructions (default: the module's, or so high that time ends first)")
	flags.StringArrayVar(&f.http, "http", nil, "origin that it may reach with "+strings.Join(granted.Methods, ", ")+", such as https://api.example.com; may be repeated")
	flags.StringArrayVar(&f.dirs, "dir", nil, "folder that it may read, or with :rw at the end also change; PATH=/data gives it the path /data; may be repeated")
	flags.BoolVar(&f.kv, "kv", false, "let it store values until the command ends")
	flags.StringArrayVar(&f.set, "set", nil, "KEY=VALUE for the environment of the module; may be repeated")
	flags.StringArrayVar(&f.secret, "secret", nil, "NAME=ORIGIN: the variable NAME is a secret that is sent only to ORIGIN; may be repeated")
	flags.BoolVar(&f.wants, "wants", false, "grant what the module's manifest asks for, except secrets")
	flags.StringVar(&f.isolation, "isolation", "", "call or instance (default: the module's, or call)")
	return cmd
}

// A sandboxRun is what the flags of `sandbox run` mean.
type sandboxRun struct {
	tool      string
	limits    sandbox.Limits
	grants    sandbox.Grants
	http      []dial.Rule
	secrets   []dial.Secret
	wants     bool
	isolation sandbox.Isolation
}

func (f sandboxFlags) parse() (r sandboxRun, err error) {
	r = sandboxRun{
		tool: f.tool, limits: sandbox.Limits{Timeout: f.timeout, Fuel: f.fuel}, isolation: sandbox.Isolation(f.isolation),
		grants: sandbox.Grants{HTTP: len(f.http) > 0, KV: f.kv}, wants: f.wants,
	}
	if f.timeout < 0 {
		return r, errors.New("--timeout is negative")
	}
	if f.memory != "" {
		if r.limits.Memory, err = parseSize(f.memory); err != nil {
			return r, fmt.Errorf("--memory: %w", err)
		}
	}
	if r.isolation != "" && r.isolation != sandbox.IsolationCall && r.isolation != sandbox.IsolationInstance {
		return r, fmt.Errorf("--isolation must be call or instance, not %q", f.isolation)
	}
	if r.http, err = granted.Rules(f.http); err != nil {
		return r, fmt.Errorf("--http: %w", err)
	}
	if r.secrets, err = granted.Secrets(f.secret, os.LookupEnv); err != nil {
		return r, fmt.Errorf("--secret: %w", err)
	}
	if r.grants.Dirs, err = granted.Dirs(f.dirs); err != nil {
		return r, shell.NameError(fmt.Errorf("--dir: %w", err))
	}
	if r.grants.Config, err = granted.Settings(f.set); err != nil {
		return r, fmt.Errorf("--set: %w", err)
	}
	return r, nil
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,9})(KiB|MiB|GiB)$`)

func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; write one such as 64MiB", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n << map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]], err
}

func (c commands) sandboxRun(ctx context.Context, runtime *sandbox.Runtime, modules moduleReader, module string, r sandboxRun) (err error) {
	wasm, mc, err := modules.read(module)
	if err != nil {
		return err
	}
	if r.wants {
		if err := r.grant(wasm, mc); err != nil {
			return err
		}
	}
	rules, err := dial.Compile(r.http)
	if err != nil {
		return shell.Misuse("%v", err)
	}
	m, err := r.compile(ctx, runtime, wasm, mc)
	if err != nil {
		return err
	}
	tool, err := trial.Tool(m, r.tool)
	if err != nil {
		return shell.Misuse("--tool: %s", show.Visible(err.Error()))
	}
	args, err := c.Input("-")
	if err != nil {
		return err
	}
	host, err := granted.New(module, dial.Options{}, rules, r.secrets, r.grants.Dirs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	res, err := trial.Call(ctx, m, tool, args, host)
	if err != nil {
		return c.runFailed(res, err)
	}
	if err := c.printRun(res); err != nil {
		return err
	}
	if res.IsError {
		return shell.Exit(shell.ExitFailed, errors.New("the tool reports an error"))
	}
	return nil
}

// grant grants what the manifest of a module wishes for.
func (r *sandboxRun) grant(wasm []byte, mc sandbox.ModuleConfig) error {
	manifest, err := trial.Manifest(wasm, mc)
	if err != nil {
		return err
	}
	rules, grants := trial.Wished(manifest)
	r.http = append(r.http, rules...)
	r.grants.HTTP, r.grants.KV = r.grants.HTTP || grants.HTTP, r.grants.KV || grants.KV
	for _, d := range grants.Dirs {
		if !slices.ContainsFunc(r.grants.Dirs, func(o sandbox.Dir) bool { return o.Path == d.Path }) {
			r.grants.Dirs = append(r.grants.Dirs, d)
		}
	}
	return nil
}

func (r sandboxRun) compile(ctx context.Context, runtime *sandbox.Runtime, wasm []byte, mc sandbox.ModuleConfig) (*sandbox.Module, error) {
	mc.Limits, mc.Grants, mc.Isolation = r.limits, r.grants, r.isolation
	m, err := runtime.Compile(ctx, wasm, mc)
	if err == nil {
		return m, nil
	}
	if report, inspectErr := sandbox.Inspect(ctx, runtime, wasm, mc); inspectErr == nil { // it compiles if all is granted
		if flags := missing(report, r.grants); len(flags) > 0 {
			err = fmt.Errorf("%w; here: %s", err, strings.Join(flags, " "))
		}
	}
	return nil, err
}

// missing returns the flags that would grant what a module imports.
func missing(r sandbox.Report, g sandbox.Grants) []string {
	given := map[string]bool{"http": g.HTTP, "kv": g.KV}
	flags := map[string]string{"http": "--http ORIGIN", "kv": "--kv"}
	var all []string
	for _, n := range r.Imports {
		for _, grant := range n.Grant {
			if !given[grant] {
				all = append(all, flags[grant])
			}
		}
	}
	return all
}

func used(r sandbox.Result) string {
	return fmt.Sprintf("took %s, fuel %d, memory peak %s, host calls %d", r.Took.Round(time.Microsecond), r.Fuel, show.SizeText(r.MemoryPeak), r.HostCalls)
}

// runFailed says on standard error what was used by a call that failed.
func (c commands) runFailed(r sandbox.Result, err error) error {
	var trap *sandbox.Trap
	var no *trial.Refused
	if errors.As(err, &no) {
		if !c.JSON {
			return shell.Exit(shell.ExitFalse, no)
		}
		return errors.Join(shell.PrintLine(c.Err, no), shell.Exit(shell.ExitFalse, nil))
	}
	if !c.JSON || !errors.As(err, &trap) {
		fmt.Fprintln(c.Err, used(r))
		return err
	}
	if err := shell.PrintLine(c.Err, struct {
		Code   string `json:"code"`
		Reason string `json:"reason"`
		Said   string `json:"said,omitempty"`  // the first line of what the tool wrote to standard error
		Wrote  string `json:"wrote,omitempty"` // the beginning of an output that is not what it has to be
		trial.Figures
	}{trap.Code(), trap.Reason, trap.Said, trap.Wrote, trial.NewFigures(r)}); err != nil {
		return err
	}
	return shell.Exit(shell.ExitFailed, nil)
}

func (c commands) printRun(r sandbox.Result) error {
	if c.JSON {
		var output any = string(r.Output)
		if (!r.IsError || r.Whole) && json.Valid(r.Output) { // else it is the text of a tool error
			output = json.RawMessage(r.Output)
		}
		return c.PrintJSON(struct {
			Output  any  `json:"output"`
			IsError bool `json:"is_error"`
			trial.Figures
		}{output, r.IsError, trial.NewFigures(r)})
	}
	fmt.Fprintln(c.Err, used(r))
	output := string(bytes.TrimRight(r.Output, "\n"))
	if show.IsTerminal(c.Out) { // else it is taken as it is
		output = show.VisibleLines(output)
	}
	_, err := fmt.Fprintln(c.Out, output)
	return err
}
