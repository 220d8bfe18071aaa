package skillcommands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
)

type commands struct{ *shell.Shell }

// Command returns skills with its commands. Without one of them it lists.
func Command(c *shell.Shell) *cobra.Command {
	s := commands{c}
	var as string
	list := &cobra.Command{
		Use: "list", Short: "List the skills of all servers", Args: cobra.NoArgs,
		Long:    "Lists the skills of all servers, with the reason if a skill is not offered to the principal.",
		Example: "  wasmgate skills list --as dora",
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.list(cmd.Context(), as) },
	}
	show := &cobra.Command{
		Use: "show SERVER/PATH", Short: "Show a skill: its frontmatter, its files and what was noticed in them", Args: cobra.ExactArgs(1),
		Example: "  wasmgate skills show team/git-workflow",
		RunE:    func(cmd *cobra.Command, args []string) error { return s.show(cmd.Context(), as, args[0]) },
	}
	verify := &cobra.Command{
		Use: "verify FOLDER", Short: "Check the skills in a folder as the gateway does", Args: cobra.ExactArgs(1),
		Long: `Checks every skill in a folder: its name, its frontmatter, its limits, and hidden text in its files. It
needs no configuration and no gateway.

Exits with 0 if all could be offered, 3 if one could not.`,
		Example: "  wasmgate skills verify skills/",
		RunE:    func(_ *cobra.Command, args []string) error { return s.verify(args[0]) },
	}
	all := &cobra.Command{
		Use: "skills", Short: "List, show and verify skills", Args: cobra.NoArgs, RunE: list.RunE,
		Long:    "Skills are instructions, scripts and files that an agent loads (MCP Skills). Without a command it lists them.",
		Example: "  wasmgate skills\n  wasmgate skills show team/git-workflow\n  wasmgate skills verify skills/",
	}
	for _, cmd := range []*cobra.Command{all, list, show} {
		cmd.Flags().StringVar(&as, "as", "", "principal (default: local)")
	}
	all.AddCommand(list, show, verify)
	return all
}

func (s commands) list(ctx context.Context, as string) error {
	all, err := s.skills(ctx, as)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Said(all, "")
	}
	if len(all) == 0 {
		return s.Said(nil, "no server has skills")
	}
	t := show.NewTable(s.Out, "NAME", "FILES", "SIZE", "NOTES", "STATE")
	for _, one := range all {
		t.Row(one.Name, strconv.Itoa(len(one.Files)), show.SizeText(one.Size), strconv.Itoa(len(one.Notes)+len(one.Widens)), one.State())
	}
	return t.Flush()
}

// skills asks the gateway of the configuration for the skills of all servers.
func (s commands) skills(ctx context.Context, as string) (all []inventory.Skill, err error) {
	cfg, err := s.Open()
	if err != nil {
		return nil, err
	}
	err = s.With(ctx, cfg, "", func(g shell.Gateway) (err error) {
		all, err = inventory.Skills.Ask(ctx, g, inventory.Request{As: as})
		return err
	})
	return all, err
}

func (s commands) show(ctx context.Context, as, name string) error {
	all, err := s.skills(ctx, as)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name == name || one.URI == name {
			return s.Said(one, described(one))
		}
	}
	return shell.Misuse("no skill %q; `wasmgate skills` lists them", name)
}

// described writes a skill for a person. What is foreign in it is made visible.
func described(one inventory.Skill) string {
	var b, front bytes.Buffer
	fmt.Fprintf(&b, "%s\n  %s\n  %s\n  digest %s\n", show.Visible(one.Name), show.Visible(one.URI), show.Visible(one.State()), one.Digest)
	if json.Indent(&front, one.Frontmatter, "  ", "  ") == nil {
		fmt.Fprintf(&b, "frontmatter\n  %s\n", show.VisibleLines(front.String()))
	}
	if b.WriteString("files\n"); one.Dynamic {
		b.WriteString("  dynamic: the server gives no digests\n")
	}
	for _, f := range one.Files {
		fmt.Fprintf(&b, "  %s %s %s\n", f.Digest, show.SizeText(f.Size), show.Visible(f.Path))
	}
	for _, w := range one.Widens {
		fmt.Fprintf(&b, "note: the frontmatter asks for %s\n", show.Visible(w))
	}
	for _, n := range one.Notes {
		fmt.Fprintf(&b, "note: %s\n", show.Visible(n))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (s commands) verify(dir string) error {
	all, err := folder.Check(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	bad := 0
	for _, one := range all {
		if one.Refused != "" {
			bad++
			fmt.Fprintf(&b, "%s: %s\n", show.Visible(one.Name), show.Visible(one.Refused))
			continue
		}
		fmt.Fprintf(&b, "%s: ok, %s, %s\n", show.Visible(one.Name), show.Plural(one.Files, "file"), show.SizeText(one.Size))
		for _, n := range one.Notes {
			fmt.Fprintf(&b, "  note: %s\n", show.Visible(n))
		}
	}
	fmt.Fprintf(&b, "%s checked", show.Plural(len(all), "skill"))
	if err := s.Said(all, b.String()); err != nil || bad == 0 {
		return err
	}
	return shell.FoundFalse("%d of %s could not be offered", bad, show.Plural(len(all), "skill"))
}
