package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/config"
)

var hosts = []string{"claude", "cursor", "vscode"}

func (c *cli) newImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import claude|cursor|vscode|FILE",
		Short: "Make a configuration of the servers that a client has",
		Long: `Prints, as the servers block of a wasmgate.yaml, the servers that a client is configured with:
those of the named program, or of a file in its format. Literal tokens become ${NAME}, and
standard error says which. Nothing is written but what you redirect.`,
		Example:   "  wasmgate import claude > wasmgate.yaml\n  wasmgate status --config wasmgate.yaml",
		Args:      cobra.ExactArgs(1),
		ValidArgs: hosts,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := importPath(args[0])
			if err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			servers, problems, err := config.ImportMCP(f, path)
			if err != nil {
				return err
			}
			servers, moved := config.Extract(servers)
			return c.printImport(path, servers, problems, moved)
		},
	}
}

func (c *cli) printImport(path string, servers []config.Server, problems []config.Problem, moved []config.Moved) error {
	yaml := "version: 1\n" + string(config.Render(servers))
	if c.json {
		names, notes, variables := []string{}, []string{}, []map[string]string{}
		for _, s := range servers {
			names = append(names, s.ID)
		}
		for _, p := range problems {
			notes = append(notes, p.String())
		}
		for _, m := range moved {
			variables = append(variables, map[string]string{"server": m.Server, "where": m.Where, "name": m.Name})
		}
		return c.printJSON(map[string]any{"file": path, "servers": names, "notes": notes, "moved": variables, "configuration": yaml})
	}
	for _, p := range problems {
		fmt.Fprintln(c.err, visible(p.String()))
	}
	for _, m := range moved {
		fmt.Fprintf(c.err, "%s: %s is ${%s} now; put its value into the environment\n", m.Server, visible(m.Where), m.Name)
	}
	fmt.Fprintf(c.err, "%s of %s; name the file that you write this to with --config\n", plural(len(servers), "server"), path)
	_, err := io.WriteString(c.out, yaml)
	return err
}

// importPath returns the file that holds the servers.
func importPath(from string) (string, error) {
	if !slices.Contains(hosts, from) {
		return from, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	paths := config.HostPaths(from, home, runtime.GOOS)
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s has no servers here; looked at %s", from, strings.Join(paths, ", "))
}
