package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/app/logs"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// The exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitMisuse = 2 // of the command line, which also names what is not there, or a bad configuration
	ExitFalse  = 3 // refused, unanswered, or found false
)

// An ExitError ends the program with a code of its own.
type ExitError struct {
	Code int
	err  error // nil if all has been said
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Exit returns an error that ends the program with a code. err is nil if all has been said.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Misuse returns an error of the command line or the configuration.
func Misuse(format string, args ...any) error {
	return Exit(ExitMisuse, fmt.Errorf(format, args...))
}

// FoundFalse returns an error of a command that found something to be false.
func FoundFalse(format string, args ...any) error {
	return Exit(ExitFalse, fmt.Errorf(format, args...))
}

// NameError makes a misuse of an error that says that what the command line names is not
// there.
func NameError(err error) error {
	var session *sessions.Error
	var record *replay.MissingError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, lock.ErrNothing) || errors.Is(err, naming.ErrNoServer) || errors.As(err, &session) || errors.As(err, &record) {
		return Exit(ExitMisuse, err)
	}
	return err
}

// A Shell is what all commands share.
type Shell struct {
	In         io.Reader
	Out, Err   io.Writer
	ConfigFile string // --config
	JSON       bool   // --json
	LogLevel   string // --log-level
}

// WithCommands makes cmd one that holds others. By itself it does what the one called list or status does, or prints its help.
func WithCommands(cmd *cobra.Command, others ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, other := range others {
		if does := map[string]string{"list": "lists", "status": "prints the status"}[other.Name()]; does != "" {
			cmd.RunE = other.RunE
			cmd.Long += "\n\nWithout a command it " + does + "."
			cmd.Flags().AddFlagSet(other.LocalNonPersistentFlags())
		}
	}
	cmd.AddCommand(others...)
	return cmd
}

// Open reads the configuration that the command line names, or that is found.
func (c *Shell) Open() (*config.Config, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cfg, err := config.Open(c.ConfigFile, cwd, config.Options{})
	if err != nil {
		return nil, Exit(ExitMisuse, err)
	}
	return cfg, nil
}

// Logger returns the operator's log, at the level of the configuration unless
// another is asked for; quiet is that of commands that end soon.
func (c *Shell) Logger(cfg *config.Config, quiet bool) (*slog.Logger, error) {
	if c.LogLevel == "" && !quiet {
		return logs.New(c.Err, cfg.Log, nil), nil
	}
	level := cfg.Log.Level
	if quiet && level < slog.LevelError {
		level = slog.LevelError
	}
	if c.LogLevel != "" {
		if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
			return nil, Misuse("--log-level must be debug, info, warn or error, not %q", c.LogLevel)
		}
	}
	return logs.New(c.Err, cfg.Log, &level), nil
}

// maxInput bounds what is read from standard input or a file that a command
// names, in bytes.
const maxInput = 4 << 20

// Input reads what a command is given: a file, or "-" for standard input.
func (c *Shell) Input(file string) ([]byte, error) {
	r := c.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, NameError(err)
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(b) > maxInput {
		err = fmt.Errorf("the input has more than %d bytes", maxInput)
	}
	return b, err
}

// ConfigFlag is what a command needs to mean the same configuration.
func (c *Shell) ConfigFlag() string {
	if c.ConfigFile == "" {
		return ""
	}
	if strings.ContainsFunc(c.ConfigFile, func(r rune) bool {
		return !strings.ContainsRune("/._-:~", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return " --config '" + strings.ReplaceAll(c.ConfigFile, "'", `'\''`) + "'"
	}
	return " --config " + c.ConfigFile
}

// ToAllow is a remedy as it works for the configuration at hand: a command, or what is to
// be written into the grants file.
func (c *Shell) ToAllow(remedy string) string {
	if strings.HasPrefix(remedy, "wasmgate ") {
		return remedy + c.ConfigFlag()
	}
	return remedy
}

// IsServer reports whether the configuration has the server, or modules that are one.
func IsServer(cfg *config.Config, id string) bool {
	return id == product.LocalServer || slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.ID == id }) ||
		slices.ContainsFunc(cfg.Tools, func(m config.Module) bool { return m.Server == id })
}
