package clientconfig

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/setup"
)

type commands struct{ *shell.Shell }

// Commands returns connect and disconnect.
func Commands(c *shell.Shell) (connect, disconnect *cobra.Command) {
	s := commands{c}
	names := strings.Join(setup.Clients(), "|")
	var http, keep, yes, show bool
	connect = &cobra.Command{
		Use:   "connect " + names,
		Short: "Add the gateway to the settings of a client",
		Long: `Adds wasmgate to your own settings of a client. The client then starts it by its absolute path, or with
--http connects to the running gateway. Everything else in the file stays as it is.

If the file also has servers that the gateway protects, the client could bypass the gateway. The command
asks whether to remove them. wasmgate disconnect puts the file back.`,
		Example: "  wasmgate connect cursor\n  wasmgate connect claude-code --http --yes\n  wasmgate connect codex --print",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := s.Open()
			if err != nil {
				return err
			}
			entry, err := s.entry(cfg, http)
			if err != nil {
				return err
			}
			c, err := setup.Connect(args[0], cfg, entry)
			if err != nil {
				return shell.Misuse("%v", err)
			}
			remove := len(c.Bypass) > 0 && !keep
			if remove && !yes && !show {
				remove = s.ask(fmt.Sprintf("%s also has %s. The client can bypass the gateway by them. Remove them from the file?", c.File, strings.Join(c.Bypass, ", ")))
			}
			if remove {
				if err := c.RemoveBypass(); err != nil {
					return err
				}
			}
			if show {
				_, err := s.Out.Write(c.Edit.After)
				return err
			}
			if err := c.Write(); err != nil {
				return err
			}
			return s.report(c, remove)
		},
	}
	connect.Flags().BoolVar(&http, "http", false, "connect to the running gateway instead of starting one")
	connect.Flags().BoolVar(&keep, "keep", false, "keep the servers by which the client can bypass the gateway")
	connect.Flags().BoolVar(&yes, "yes", false, "remove them without asking")
	connect.Flags().BoolVar(&show, "print", false, "print the settings instead of writing them")
	disconnect = &cobra.Command{
		Use:   "disconnect " + names,
		Short: "Remove the gateway from the settings of a client",
		Long: `Restores your settings of a client, byte for byte, as they were before wasmgate connect. If the file has
changed since, it only removes wasmgate. Then add the servers that connect removed by hand.`,
		Example: "  wasmgate disconnect cursor",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, whole, err := setup.Disconnect(args[0])
			if file == "" && err != nil {
				return shell.Misuse("%v", err)
			}
			if err != nil {
				return err
			}
			text := file + " is as it was before wasmgate connect"
			if !whole {
				text = "removed wasmgate from " + file + "; the file was changed since wasmgate connect, so nothing else was put back"
			}
			return s.Said(map[string]any{"client": args[0], "file": file, "restored": whole}, text)
		},
	}
	return connect, disconnect
}

// entry is how a client reaches the gateway of a configuration.
func (s commands) entry(cfg *config.Config, http bool) (clients.Entry, error) {
	if http {
		return clients.Entry{URL: "http://" + cfg.Listen[0] + "/mcp"}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return clients.Entry{}, err
	}
	if strings.Contains(self, "go-build") {
		return clients.Entry{}, shell.Misuse("`go run` removes %s when it ends: install wasmgate first, by `go install ./cmd/wasmgate`", self)
	}
	args := []string{"serve", "--stdio"}
	if named := s.ConfigFile; named != "" {
		if named, err = filepath.Abs(named); err != nil {
			return clients.Entry{}, err
		}
		args = append(args, "--config", named)
	}
	return clients.Entry{Command: self, Args: args}, nil
}

// ask puts a question to a person. Without a terminal the answer is no.
func (s commands) ask(question string) bool {
	if !s.AtTerminal() {
		return false
	}
	fmt.Fprint(s.Err, question+" [y/N] ")
	line, _ := bufio.NewReader(s.In).ReadString('\n') // an end without an answer is no
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
}

// report says what was changed, and what is left to do.
func (s commands) report(c setup.Connection, removed bool) error {
	lines := []string{"added wasmgate to " + c.File}
	if removed {
		lines = append(lines, "removed "+strings.Join(c.Bypass, ", ")+", which the gateway protects")
	}
	if len(c.Bypass) > 0 && !removed {
		lines = append(lines, fmt.Sprintf("the client can still bypass the gateway by %s: run `wasmgate connect %s --yes` to remove them", strings.Join(c.Bypass, ", "), c.Client))
	}
	if len(c.Others) > 0 {
		lines = append(lines, fmt.Sprintf("the gateway does not protect %s: run `wasmgate add --from %s` first", strings.Join(c.Others, ", "), c.File))
	}
	lines = append(lines, "restart "+c.Client+" to use it; `wasmgate disconnect "+c.Client+"` puts the file back")
	result := map[string]any{"client": c.Client, "file": c.File, "bypass": append([]string{}, c.Bypass...), "removed": removed, "others": append([]string{}, c.Others...)}
	return s.Said(result, strings.Join(lines, "\n"))
}
