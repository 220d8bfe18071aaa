package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/extract"
)

// importFlags say where the servers are written to: nowhere, or one of three files.
type importFlags struct {
	user, project bool
	to            string
}

func (c *cli) newImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import " + strings.Join(clients.Names(), "|") + "|FILE [--user|--project|--to FILE]",
		Short: "Make a configuration of the servers that a client has",
		Long: `Prints, as the servers block of a wasmgate.yaml, the servers that a client is configured with:
those of the named program, or of a file in its format. Literal tokens become ${NAME}, and
standard error says which.

With --user, --project or --to it adds them to that configuration instead, which it creates if need
be, and leaves everything else in it as it is. A server that is there with other settings is an
error.
A project's configuration has no effect until it is trusted, again after each change.`,
		Example: "  wasmgate import claude > wasmgate.yaml\n  wasmgate import cursor --user",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch to := cmd.Flags().Changed("to"); {
			case to && f.to == "":
				return misuse("--to is empty; name the file")
			case f.user && f.project, to && (f.user || f.project):
				return misuse("--user, --project and --to are three places; name one")
			}
			path, data, err := importFile(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return misuse("there is no file %s, and no program of that name is known: %s", args[0], strings.Join(clients.Names(), ", "))
			}
			if err != nil {
				return err
			}
			servers, problems, err := config.ImportMCP(bytes.NewReader(data), path)
			if err != nil {
				return err
			}
			servers, moved := extract.Servers(servers)
			to, err := f.file()
			if err != nil {
				return err
			}
			if to == "" {
				return c.printImport(path, servers, problems, moved)
			}
			added, err := config.AddServers(to, servers)
			if err != nil {
				return err
			}
			return c.printAdded(imported{File: path, To: to, Added: added, Notes: problems, Moved: moved}, f)
		},
	}
	cmd.Flags().BoolVar(&f.user, "user", false, "add the servers to your own configuration")
	cmd.Flags().BoolVar(&f.project, "project", false, "add them to that of the project you are in")
	cmd.Flags().StringVar(&f.to, "to", "", "add them to this wasmgate.yaml")
	return cmd
}

// file returns the file that is written to; "" if none is.
func (f importFlags) file() (string, error) {
	if !f.user && !f.project {
		return f.to, nil
	}
	dirs, err := config.UserDirs()
	if err != nil || f.user {
		return config.UserFile(dirs), err
	}
	cwd, err := os.Getwd()
	return config.ProjectFile(cwd, dirs), err
}

// imported is what was added to a file.
type imported struct {
	File, To string
	Added    []string // ids of servers
	Notes    []config.Problem
	Moved    []extract.Moved
}

func (c *cli) printAdded(i imported, f importFlags) error {
	notes, variables := noted(i.Notes, i.Moved)
	if c.json {
		return c.printJSON(map[string]any{"file": i.File, "to": i.To, "added": append([]string{}, i.Added...), "notes": notes, "moved": variables})
	}
	c.sayNotes(i.Notes, i.Moved)
	fmt.Fprintf(c.out, "%s of %s added to %s\n", plural(len(i.Added), "server"), i.File, i.To)
	if f.project && len(i.Added) > 0 {
		fmt.Fprintln(c.err, "it has no effect yet: read it, then run `wasmgate trust`")
	}
	return nil
}

// noted is what JSON says of what was changed on the way.
func noted(problems []config.Problem, moved []extract.Moved) (notes []string, variables []map[string]string) {
	notes, variables = []string{}, []map[string]string{}
	for _, p := range problems {
		notes = append(notes, p.String())
	}
	for _, m := range moved {
		variables = append(variables, map[string]string{"server": m.Server, "where": m.Where, "name": m.Name})
	}
	return notes, variables
}

// sayNotes says the same on standard error.
func (c *cli) sayNotes(problems []config.Problem, moved []extract.Moved) {
	for _, p := range problems {
		fmt.Fprintln(c.err, visible(p.String()))
	}
	for _, m := range moved {
		fmt.Fprintf(c.err, "%s: %s is ${%s} now; put its value into the environment\n", m.Server, visible(m.Where), m.Name)
	}
}

func (c *cli) printImport(path string, servers []config.Server, problems []config.Problem, moved []extract.Moved) error {
	yaml := "version: 1\n" + string(config.Render(servers))
	if c.json {
		names := []string{}
		for _, s := range servers {
			names = append(names, s.ID)
		}
		notes, variables := noted(problems, moved)
		return c.printJSON(map[string]any{"file": path, "servers": names, "notes": notes, "moved": variables, "configuration": yaml})
	}
	c.sayNotes(problems, moved)
	fmt.Fprintf(c.err, "%s of %s; name the file that you write this to with --config\n", plural(len(servers), "server"), path)
	_, err := io.WriteString(c.out, yaml)
	return err
}

// importFile returns the file that has the servers, and what is in it.
func importFile(from string) (path string, data []byte, err error) {
	here, err := clients.Here()
	if err != nil {
		return "", nil, err
	}
	named := here.Named(from)
	if len(named) == 0 {
		data, err = os.ReadFile(from)
		return from, data, err
	}
	var looked []string
	for _, c := range named {
		for _, f := range c.Servers {
			data, err := f.Read()
			if !errors.Is(err, fs.ErrNotExist) {
				return f.Path, data, err
			}
			looked = append(looked, f.Path)
		}
	}
	return "", nil, misuse("%s has no servers here; looked at %s", from, strings.Join(looked, ", "))
}
