package sandboxcommands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/sandbox"
)

// commands make, inspect and run modules.
type commands struct{ *shell.Shell }

// Command returns sandbox with its commands.
func Command(c *shell.Shell) *cobra.Command { return commands{c}.newSandbox() }

func (c commands) newSandbox() *cobra.Command {
	return shell.WithCommands(&cobra.Command{
		Use:     "sandbox",
		Short:   "Create, inspect and run WASM tools without a gateway",
		Example: "  wasmgate sandbox new go words\n  wasmgate sandbox inspect tool.wasm\n  echo '{\"text\":\"hello\"}' | wasmgate sandbox run tool.wasm --tool hash",
	}, c.newSandboxInspect(), c.newSandboxManifest(), c.newSandboxPush(), c.newSandboxCheck(), c.newSandboxRun(), c.newSandboxNew())
}

// withSandbox runs f with a sandbox and a reader of modules. They keep their files with those of
// the gateway, in the state folder of the user or of the configuration that the command line names.
func (c commands) withSandbox(ctx context.Context, f func(*sandbox.Runtime, moduleReader) error) (err error) {
	dirs, err := config.UserDirs()
	if err != nil {
		return err
	}
	cfg := &config.Config{State: dirs.State}
	if c.ConfigFile != "" {
		if cfg, err = c.Open(); err != nil {
			return err
		}
	}
	log, err := c.Logger(cfg, false)
	if err != nil {
		return err
	}
	runtime, err := sandbox.New(ctx, sandbox.Config{CacheDir: filepath.Join(cfg.State, "wasm"), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close(context.WithoutCancel(ctx))) }()
	return f(runtime, moduleReader{ctx, cfg.State, log})
}

// maxModule bounds what is read of a module, in bytes: the sandbox takes no more, and reports an
// error for one byte more.
const maxModule = 64 << 20

const moduleHelp = `MODULE is a file, oci://registry/repository@sha256:digest, "embedded" for the tools that come with
wasmgate, or "embedded:files" for those of them that read files.`

// A moduleReader reads modules.
type moduleReader struct {
	ctx   context.Context // of the command
	state string
	log   *slog.Logger
}

// read reads a module, and the manifest next to it if there is one.
func (m moduleReader) read(module string) (wasm []byte, mc sandbox.ModuleConfig, err error) {
	mc.Name = module
	switch {
	case module == config.EmbeddedTools:
		wasm, err = sandbox.EmbeddedTools()
		return wasm, mc, err
	case module == config.EmbeddedFiles:
		wasm, err = sandbox.EmbeddedFiles()
		return wasm, mc, err
	case strings.HasPrefix(module, "oci://"):
		wasm, err = modules.Reader{Dir: m.state, Log: m.log}.Fetch(m.ctx, module)
		return wasm, mc, err
	}
	f, err := os.Open(module)
	if err != nil {
		return nil, mc, shell.NameError(err)
	}
	defer f.Close()
	if wasm, err = io.ReadAll(io.LimitReader(f, maxModule+1)); err != nil {
		return nil, mc, err
	}
	mc.Name = filepath.Base(module)
	mc.Manifest, err = modules.ManifestBeside(module)
	return wasm, mc, err
}
