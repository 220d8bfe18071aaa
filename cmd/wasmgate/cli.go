package main

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

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/logs"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitMisuse = 2 // of the command line, which also names what is not there, or a bad configuration
	exitFalse  = 3 // refused, unanswered, or found false
)

// An exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error // nil if all has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit returns an error that ends the program with a code. err is nil if all has been said.
func exit(code int, err error) error { return &exitError{code, err} }

func misuse(format string, args ...any) error {
	return exit(exitMisuse, fmt.Errorf(format, args...))
}

func foundFalse(format string, args ...any) error {
	return exit(exitFalse, fmt.Errorf(format, args...))
}

// named makes a misuse of an error that says that what the command line names is not
// there.
func named(err error) error {
	var session *app.SessionError
	var record *replay.MissingError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, lock.ErrNothing) || errors.Is(err, app.ErrNoServer) || errors.As(err, &session) || errors.As(err, &record) {
		return exit(exitMisuse, err)
	}
	return err
}

// cli is what all commands share.
type cli struct {
	in       io.Reader
	out, err io.Writer
	config   string // --config
	json     bool   // --json
	logLevel string // --log-level
}

// withCommands makes cmd one that holds others, and prints its help alone.
func withCommands(cmd *cobra.Command, others ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(others...)
	return cmd
}

// open reads the configuration that the command line names, or that is found.
func (c *cli) open() (*config.Config, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cfg, err := config.Open(c.config, cwd, config.Options{})
	if err != nil {
		return nil, exit(exitMisuse, err)
	}
	return cfg, nil
}

// logger returns the operator's log, at the level of the configuration unless
// another is asked for; quiet is that of commands that end soon.
func (c *cli) logger(cfg *config.Config, quiet bool) (*slog.Logger, error) {
	if c.logLevel == "" && !quiet {
		return logs.New(c.err, cfg.Log, nil), nil
	}
	level := cfg.Log.Level
	if quiet && level < slog.LevelError {
		level = slog.LevelError
	}
	if c.logLevel != "" {
		if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
			return nil, misuse("--log-level %q is none of debug, info, warn, error", c.logLevel)
		}
	}
	return logs.New(c.err, cfg.Log, &level), nil
}

// maxInput bounds what is read from standard input or a file that a command
// names, in bytes.
const maxInput = 4 << 20

// input reads what a command is given: a file, or "-" for standard input.
func (c *cli) input(file string) ([]byte, error) {
	r := c.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, named(err)
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(b) > maxInput {
		err = fmt.Errorf("the input holds more than %d bytes", maxInput)
	}
	return b, err
}

// configFlag is what a command needs to mean the same configuration.
func (c *cli) configFlag() string {
	if c.config == "" {
		return ""
	}
	if strings.ContainsFunc(c.config, func(r rune) bool {
		return !strings.ContainsRune("/._-:~", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return " --config '" + strings.ReplaceAll(c.config, "'", `'\''`) + "'"
	}
	return " --config " + c.config
}

// toAllow is a remedy as it works for the configuration at hand: a command, or what is to
// be written into the grants file.
func (c *cli) toAllow(remedy string) string {
	if strings.HasPrefix(remedy, "wasmgate ") {
		return remedy + c.configFlag()
	}
	return remedy
}

// isServer reports whether the configuration has the server, or modules that are one.
func isServer(cfg *config.Config, id string) bool {
	return id == product.LocalServer || slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.ID == id }) ||
		slices.ContainsFunc(cfg.Tools, func(m config.Module) bool { return m.Server == id })
}
