package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/policy"
)

func (c *cli) newPolicyLabel() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "label SERVER | --tools FILE",
		Short: "Draft labels for the tools of a server",
		Long: `Drafts the labels of tools from their names, schemas and annotations, and prints them as a labels
file. They are guesses for a person to correct: no tool is called, and no result is taken for trusted.`,
		Example: "  wasmgate policy label tickets >>labels.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (file != "") {
				return misuse("name a server, or a file with --tools")
			}
			var tools map[string]gate.Doc
			var err error
			if file != "" {
				var data []byte
				if data, err = os.ReadFile(file); err == nil {
					tools, err = policy.ReadTools(data)
				}
				if err != nil {
					return misuse("--tools %s: %v", file, err)
				}
			} else if tools, err = c.toolsOf(cmd.Context(), args[0]); err != nil {
				return err
			}
			return c.printDraft(tools)
		},
	}
	cmd.Flags().StringVar(&file, "tools", "", `definitions of the tools, {"tools": [...]}, with qualified names`)
	return cmd
}

// toolsOf returns the definitions of a server's tools, by their qualified names.
func (c *cli) toolsOf(ctx context.Context, server string) (_ map[string]gate.Doc, err error) {
	cfg, err := c.open()
	if err != nil {
		return nil, err
	}
	if !isServer(cfg, server) {
		return nil, named(app.NoServer(cfg, server))
	}
	g, err := c.ask(ctx, cfg, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	all, err := g.Tools(ctx, "", true)
	if err != nil {
		return nil, err
	}
	tools := make(map[string]gate.Doc)
	for _, t := range all {
		if t.Server != server || len(t.Definition) == 0 {
			continue
		}
		name := t.Name
		if !strings.HasPrefix(name, server+"__") {
			name = server + "__" + name
		}
		if tools[name], err = gate.ParseDoc(t.Definition); err != nil {
			return nil, err
		}
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("server %s has no tools; see `wasmgate status%s`", server, c.configFlag())
	}
	return tools, nil
}

// A draftedLabel is a label as the labels file has it.
type draftedLabel struct {
	Result  gate.ResultKind   `json:"result"`
	Private bool              `json:"private"`
	Effect  []gate.ToolEffect `json:"effect"`
	Control []string          `json:"control,omitempty"`
	Content []string          `json:"content,omitempty"`
}

func (c *cli) printDraft(tools map[string]gate.Doc) error {
	drafts := make(map[string]draftedLabel)
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		l := policy.DraftLabel(name, tools[name])
		d := draftedLabel{l.Result, l.Private, l.Effects, l.Control, l.Content}
		drafts[name] = d
		if c.json {
			continue
		}
		if about := short(tools[name].Get("description").Text(), 100); about != "" {
			fmt.Fprintln(c.out, "# "+visible(about))
		}
		fmt.Fprintln(c.out, name+": "+d.yaml())
	}
	if c.json {
		return c.printJSON(drafts)
	}
	return nil
}

// yaml writes the label as one line of a labels file.
func (d draftedLabel) yaml() string {
	parts := []string{"result: " + string(d.Result)}
	if d.Private {
		parts = append(parts, "private: true")
	}
	var effects []string
	for _, e := range d.Effect {
		effects = append(effects, string(e))
	}
	parts = append(parts, "effect: "+yamlList(effects))
	if d.Control != nil {
		parts = append(parts, "control: "+yamlList(d.Control))
	}
	if d.Content != nil {
		parts = append(parts, "content: "+yamlList(d.Content))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var plainYAML = regexp.MustCompile(`^[a-z/][A-Za-z0-9_/-]*$`)

func yamlList(words []string) string {
	var list []string
	for _, w := range words {
		if !plainYAML.MatchString(w) {
			b, _ := json.Marshal(w) // a JSON string is one of YAML, too
			w = string(b)
		}
		list = append(list, w)
	}
	return "[" + strings.Join(list, ", ") + "]"
}
