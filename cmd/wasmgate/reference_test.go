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

var updateReference = flag.Bool("update-reference", false, "write docs/reference/commands.md and deploy/man/wasmgate.1")

// TestCommandReference: docs/reference/commands.md has each command as --help shows it.
func TestCommandReference(t *testing.T) {
	root := newRoot(new(shell.Shell))
	var page strings.Builder
	page.WriteString(`# Commands

The page is generated from the commands: run ` + "`go test ./cmd/wasmgate -run CommandReference -update-reference`" + `.
` + "`wasmgate help COMMAND`" + ` prints the same. ` + "`wasmgate completion SHELL`" + ` completes commands in bash, zsh, fish and powershell.

| code | means |
| --- | --- |
| 0 | done |
| 1 | failed, or the tool reports an error |
| 2 | wrong usage, bad configuration, or a named file, server, record or session does not exist |
| 3 | refused, or checked and found false |

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
	written(t, "../../docs/reference/commands.md", page.String())
}

// TestManual: deploy/man/wasmgate.1 has each command as --help shows it.
func TestManual(t *testing.T) {
	root := newRoot(new(shell.Shell))
	var page strings.Builder
	page.WriteString(".TH WASMGATE 1\n.SH NAME\nwasmgate \\- " + roff(root.Short) + "\n.SH SYNOPSIS\n.B wasmgate\nCOMMAND [FLAG...] [ARGUMENT...]\n.SH DESCRIPTION\n")
	page.WriteString(roff(root.Long) + "\n.SH OPTIONS OF EVERY COMMAND\n.nf\n" + roff(root.PersistentFlags().FlagUsages()) + ".fi\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&page, ".SH %s\n", roff(strings.ToUpper(strings.TrimSuffix(group.Title, ":"))))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && c.Name() != "help" {
				describeInManual(&page, c)
			}
		}
	}
	written(t, "../../deploy/man/wasmgate.1", page.String())
}

// roff escapes text for a manual page (groff_man(7)).
func roff(text string) string {
	text = strings.NewReplacer("\\", "\\e", "-", "\\-").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = "\\&" + line
		}
	}
	return strings.Join(lines, "\n")
}

// describeInManual writes a command and those below it.
func describeInManual(page *strings.Builder, c *cobra.Command) {
	if c.Hidden {
		return
	}
	fmt.Fprintf(page, ".SS %s\n%s.\n.PP\n.nf\n%s\n", roff(c.CommandPath()), roff(strings.TrimSuffix(c.Short, ".")), roff(c.UseLine()))
	for _, part := range []string{c.Long, strings.TrimRight(c.LocalNonPersistentFlags().FlagUsages(), "\n"), c.Example} {
		if part != "" {
			fmt.Fprintf(page, "\n%s\n", roff(part))
		}
	}
	page.WriteString(".fi\n")
	for _, sub := range c.Commands() {
		describeInManual(page, sub)
	}
}

// written compares a document with what the commands say, or with -update-reference writes it.
func written(t *testing.T, document, text string) {
	t.Helper()
	if *updateReference {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(document); err != nil || string(is) != text {
		t.Errorf("%s is not what --help says; run go test ./cmd/wasmgate -run 'CommandReference|Manual' -update-reference (%v)", document, err)
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
