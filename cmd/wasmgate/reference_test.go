package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
)

var updateReference = flag.Bool("update-reference", false, "write docs/reference/commands.md")

// TestCommandReference: docs/reference/commands.md has each command as --help shows it.
func TestCommandReference(t *testing.T) {
	root := newRoot(new(shell.Shell))
	var page strings.Builder
	page.WriteString(`# Commands

The page is generated from the commands: run ` + "`go test ./cmd/wasmgate -run CommandReference -update-reference`" + `.
` + "`wasmgate help COMMAND`" + ` prints the same. ` + "`wasmgate completion SHELL`" + ` completes commands in bash, zsh, fish and powershell.
Exit codes are in [how a running gateway behaves](operation.md#exit-codes).

Every command takes these flags:

` + "```text\n" + root.PersistentFlags().FlagUsages() + "```\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && c.Name() != "help" {
				describe(&page, c)
			}
		}
	}
	const document = "../../docs/reference/commands.md"
	if *updateReference {
		if err := os.WriteFile(document, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(document); err != nil || string(text) != page.String() {
		t.Errorf("%s is not what --help says; run go test ./cmd/wasmgate -run CommandReference -update-reference (%v)", document, err)
	}
}

// describe writes a command and those below it.
func describe(page *strings.Builder, c *cobra.Command) {
	if c.Hidden {
		return
	}
	fmt.Fprintf(page, "\n### %s\n\n%s.\n\n```text\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	fmt.Fprintln(page, c.UseLine())
	for _, part := range []string{c.Long, strings.TrimRight(c.LocalNonPersistentFlags().FlagUsages(), "\n"), c.Example} {
		if part != "" {
			fmt.Fprintf(page, "\n%s\n", part)
		}
	}
	page.WriteString("```\n")
	for _, sub := range c.Commands() {
		describe(page, sub)
	}
}
