package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/auditcommands"
	"github.com/wasmgate/wasmgate/cmd/internal/definitioncommands"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/starter"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/policy"
)

// complete has shells complete what has a closed set of words, and the names that the
// configuration knows.
func complete(c *shell.Shell, root *cobra.Command) {
	servers := names(c, func(cfg *config.Config) (ids []string) {
		for _, s := range cfg.Servers {
			ids = append(ids, s.ID)
		}
		return ids
	})
	principals := names(c, func(cfg *config.Config) []string {
		ids := []string{"local"}
		for _, p := range cfg.Principals {
			ids = append(ids, p.ID)
		}
		return ids
	})
	groups := names(c, func(cfg *config.Config) (names []string) {
		for name := range cfg.AllGroups() {
			names = append(names, name)
		}
		return names
	})
	for command, complete := range map[string]cobra.CompletionFunc{
		"sandbox new": words(starter.Languages()...),
		"scan":        servers, "confine learn": servers, "policy label": servers, "pin list": servers, "pin diff": servers, "pin approve": servers, "restart": servers,
	} {
		at(root, command).ValidArgsFunction = first(complete)
	}
	for flag, complete := range map[[2]string]cobra.CompletionFunc{
		{"", "log-level"}:            words("debug", "info", "warn", "error"),
		{"add", "from"}:              wordsOrFile(clients.Names()...),
		{"audit", "format"}:          words(auditcommands.DecisionLog),
		{"scan", "format"}:           words(definitioncommands.FormatTable, definitioncommands.FormatJSON, definitioncommands.FormatSARIF),
		{"scan", "fail-on"}:          words("high", "medium", "low", "none"),
		{"sandbox run", "isolation"}: words("call", "instance"),
		{"policy replay", "pack"}:    words(policy.Packs()...),
		{"call", "as"}:               principals,
		{"tools", "as"}:              principals,
		{"serve", "as"}:              principals,
		{"audit", "principal"}:       principals,
		{"grant", "to"}:              principals,
		{"tools", "group"}:           groups,
		{"serve", "group"}:           groups,
	} {
		_ = at(root, flag[0]).RegisterFlagCompletionFunc(flag[1], complete) // an error is a flag that is not there
	}
}

// at returns the command of a path below the root; the root, if it is empty.
func at(root *cobra.Command, path string) *cobra.Command {
	cmd, _, _ := root.Find(strings.Fields(path))
	return cmd
}

// words completes one of some words.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// wordsOrFile completes one of some words, or the name of a file.
func wordsOrFile(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveDefault)
}

// names completes what the configuration names; nothing, if it cannot be read.
func names(c *shell.Shell, of func(*config.Config) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := c.Open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(cfg), cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument alone; what follows is a file, if anything.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, begun)
	}
}
