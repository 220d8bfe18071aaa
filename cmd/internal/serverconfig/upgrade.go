package serverconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/doctor"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/reference"
	"github.com/wasmgate/wasmgate/internal/setup"
	"github.com/wasmgate/wasmgate/internal/setup/registry"
)

// Remove returns the command that removes a server.
func Remove(c *shell.Shell) *cobra.Command {
	s := commands{c}
	return &cobra.Command{
		Use:   "remove SERVER",
		Short: "Remove a server from the configuration",
		Long: `Removes a server from your configuration, or from that of --config. Also removes the secrets that add put
into the vault, and the server's own folder. Its grants and pins stay: revoke grants with wasmgate revoke
before another server gets the name.`,
		Example: "  wasmgate remove weather",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, one, err := s.server(args[0])
			if err != nil {
				return err
			}
			out, err := setup.Remove(cfg.File, one.ID)
			if err != nil {
				return err
			}
			names := secretsOf(cfg.File, one.ID)
			if err := setup.Put(cfg.File, out); err != nil {
				return err
			}
			v := logins.Vault(cfg)
			for _, name := range names {
				if err := v.Delete(reference.Key(name)); err != nil {
					return err
				}
			}
			if err := os.RemoveAll(filepath.Join(cfg.State, "servers", one.ID)); err != nil {
				return err
			}
			return s.changed(cfg, map[string]any{"file": cfg.File, "removed": one.ID, "secrets": append([]string{}, names...)}, fmt.Sprintf("removed %s from %s; its grants and pins stay", one.ID, cfg.File))
		},
	}
}

// stored matches references to secrets that add has put into the vault.
var stored = regexp.MustCompile(`\$\{vault:([a-z0-9-]+/[^}]+)\}`)

// secretsOf are the secrets of a server's own in the vault.
func secretsOf(file, id string) (names []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for _, m := range stored.FindAllStringSubmatch(string(data), -1) {
		if strings.HasPrefix(m[1], id+"/") && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// server returns a server of the configuration by its name.
func (s commands) server(id string) (*config.Config, config.Server, error) {
	cfg, err := s.Open()
	if err != nil {
		return nil, config.Server{}, err
	}
	i := slices.IndexFunc(cfg.Servers, func(one config.Server) bool { return one.ID == id })
	if i < 0 {
		return nil, config.Server{}, shell.Misuse("there is no server %q; these are: %s", id, strings.Join(setup.IDs(cfg.Servers), ", "))
	}
	return cfg, cfg.Servers[i], nil
}

// age is how the version of a server compares with its registry.
type age struct {
	Server  string `json:"server"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Latest  string `json:"latest,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Outdated returns the command that compares versions.
func Outdated(c *shell.Shell) *cobra.Command {
	s := commands{c}
	return &cobra.Command{
		Use:   "outdated",
		Short: "List servers that have a newer version in their registry",
		Long: `Asks the registry of each server that was added by its name. It lists servers with a newer version, and those
whose entry has changed although its version has not. It exits with 3 if there are any.`,
		Example: "  wasmgate outdated --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.Open()
			if err != nil {
				return err
			}
			all, lines := []age{}, []string{}
			for _, one := range cfg.Servers {
				if one.Origin == nil {
					continue
				}
				a := aged(cmd.Context(), cfg, one)
				if a.Note == "" && registry.Compare(a.Latest, a.Version) <= 0 {
					continue
				}
				all = append(all, a)
				lines = append(lines, escaped.Text(strings.TrimSpace(fmt.Sprintf("%s %s -> %s %s", a.Server, a.Version, cmp.Or(a.Latest, "?"), a.Note))))
			}
			if len(all) == 0 {
				lines = append(lines, "nothing is outdated")
			}
			if err := s.Said(all, strings.Join(lines, "\n")); err != nil || len(all) == 0 {
				return err
			}
			return shell.FoundFalse("wasmgate upgrade SERVER shows what changes, and asks")
		},
	}
}

func address(cfg *config.Config, o *config.Origin) string {
	return cmp.Or(o.Registry, os.Getenv("WASMGATE_REGISTRY"), cfg.Registry, registry.Default)
}

func aged(ctx context.Context, cfg *config.Config, s config.Server) age {
	a := age{Server: s.ID, Name: s.Origin.Name, Version: s.Origin.Version}
	e, err := registry.Fetch(ctx, address(cfg, s.Origin), a.Name)
	if err != nil {
		a.Note = err.Error()
		return a
	}
	a.Latest = e.Version
	if e.Version != a.Version {
		if e, err = registry.Fetch(ctx, address(cfg, s.Origin), a.Name+"@"+a.Version); err != nil {
			a.Note = err.Error()
			return a
		}
	}
	if e.SHA256 != s.Origin.SHA256 {
		a.Note = "the entry of " + a.Version + " has changed since it was added"
	}
	return a
}

// Upgrade returns the command that takes a newer version.
func Upgrade(c *shell.Shell) *cobra.Command {
	s := commands{c}
	var yes bool
	cmd := &cobra.Command{
		Use:   "upgrade SERVER[@VERSION]",
		Short: "Change to another version of a server, after showing what changes",
		Long: `Starts the new version with the settings of the server, next to the one in use, and shows how its definitions
differ from those that are pinned. Then it asks. Only after that it writes the version to the
configuration and pins the new definitions. New tools are not granted.`,
		Example: "  wasmgate upgrade weather\n  wasmgate upgrade weather@1.3.0 --yes",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.upgrade(cmd.Context(), args[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask; needed where there is no terminal")
	return cmd
}

func (s commands) upgrade(ctx context.Context, word string, yes bool) error {
	id, version, _ := strings.Cut(word, "@")
	cfg, one, err := s.server(id)
	if err != nil {
		return err
	}
	if one.Origin == nil {
		return shell.Misuse("%s was not added by a name of a registry: change it in %s", id, cfg.File)
	}
	content, to, err := s.upgraded(ctx, cfg, one, version)
	if err != nil || to == "" {
		return err
	}
	review, err := s.review(ctx, cfg, id, content)
	if err != nil {
		return err
	}
	show.Differences(s.Err, review.Differences)
	fmt.Fprintf(s.Err, "%s %s -> %s\n", id, one.Origin.Version, to)
	shown := func() error { return nil } // above, without a terminal too
	if err := s.Confirmed(yes, shown, "Upgrade it?"); err != nil {
		return err
	}
	if cfg.Pins.Mode != "off" {
		if err := s.approve(ctx, cfg, pinnable(review.Approval)); err != nil {
			return err
		}
	}
	if err := setup.Put(cfg.File, content); err != nil {
		return err
	}
	return s.changed(cfg, map[string]any{"server": id, "from": one.Origin.Version, "to": to}, fmt.Sprintf("%s is at %s now", id, to))
}

// approve pins definitions where the gateways of a configuration have them.
func (s commands) approve(ctx context.Context, cfg *config.Config, all []lock.Pin) error {
	if !cfg.Store.On() {
		_, err := lock.Approve(cfg.Pins.Lockfile, all)
		return err
	}
	return s.WithState(ctx, func(g operation.Gateway) error {
		_, _, err := pins.Keep(ctx, cfg, g, all)
		return err
	})
}

// changed says what was done, and what to do so that other gateways have the changed file, too.
func (s commands) changed(cfg *config.Config, result map[string]any, said string) error {
	if advice := cfg.Store.Advice(cfg.File); advice != "" {
		result["advice"] = advice
		said += "\n" + advice
	}
	return s.Said(result, said)
}

// upgraded returns the configuration with another version of a server; to is "" if it has that already.
func (s commands) upgraded(ctx context.Context, cfg *config.Config, one config.Server, version string) (content []byte, to string, err error) {
	from := address(cfg, one.Origin)
	name := one.Origin.Name
	if version != "" {
		name += "@" + version
	}
	next, err := registry.Fetch(ctx, from, name)
	if err != nil {
		return nil, "", err
	}
	if next.Version == one.Origin.Version {
		return nil, "", s.Said(map[string]any{"server": one.ID, "from": next.Version, "to": next.Version}, one.ID+" is at "+next.Version+" already")
	}
	values := map[string]string{}
	for _, set := range []map[string]config.Secret{one.Env, one.Headers} {
		for k, v := range set {
			if values[k], err = variables.Resolve(string(v), func(ref string) (string, error) { return "${" + ref + "}", nil }); err != nil {
				return nil, "", err
			}
		}
	}
	same := func(s string) string { return s }
	plan, err := next.Plan(registry.Options{
		Values: values, Literal: same, Given: same, Secret: func(string, string) (string, error) { return "x", nil },
		Here: func(program string) bool { return program == one.Command && installed(program) }, Kind: kindOf(one),
		Resolve: func(image string) (string, error) { return resolve(ctx, image) },
	})
	if err != nil {
		return nil, "", err
	}
	var wanted []string
	for _, in := range plan.Wanted {
		wanted = append(wanted, in.Key())
	}
	now, err := what(one)
	if err != nil {
		return nil, "", err
	}
	changes := []string{now, plan.What, one.Origin.SHA256, next.SHA256, "version: " + quoted(one.Origin.Version), "version: " + quoted(next.Version)}
	if content, err = setup.Replace(cfg.File, one.ID, changes...); err != nil {
		return nil, "", err
	}
	if len(wanted) > 0 {
		fmt.Fprintf(s.Err, "the new version may also want: %s\n", escaped.Text(strings.Join(wanted, ", ")))
	}
	return content, next.Version, nil
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// quoted is a version as configurations have it.
func quoted(version string) string { return `"` + version + `"` }

// kindOf is the kind of package that a server is.
func kindOf(s config.Server) string {
	return cmp.Or(map[string]string{"npx": registry.NPM, "uvx": registry.PyPI, "dnx": registry.NuGet, "docker": registry.OCI, "podman": registry.OCI}[s.Command], "remote")
}

// what is the package of a server with its version, or its URL.
func what(s config.Server) (string, error) {
	if s.URL != "" {
		return s.URL, nil
	}
	i := slices.IndexFunc(s.Args, func(arg string) bool { return strings.LastIndexByte(arg, '@') > 0 && !strings.HasPrefix(arg, "-") })
	if i < 0 {
		return "", fmt.Errorf("%s has no package with a version among its arguments: change it by hand", s.ID)
	}
	return s.Args[i], nil
}

// review starts a server as it would be, in a state folder of its own, and compares it with what is pinned.
func (s commands) review(ctx context.Context, cfg *config.Config, id string, content []byte) (review *lock.Review, err error) {
	trial, err := setup.Trial(cfg.File, content)
	if err != nil {
		return nil, err
	}
	defer os.Remove(trial)
	next, err := config.Load(trial, config.Options{})
	if err != nil {
		return nil, err
	}
	state, err := os.MkdirTemp("", "wasmgate-upgrade-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	next.State, next.Audit.Path = state, filepath.Join(state, "audit.jsonl")
	next.Vault = config.Vault{}
	if cfg.Store.On() { // the trial is none of its gateways
		approved, err := members.Approved(ctx, cfg)
		if err != nil {
			return nil, err
		}
		next.Store, next.Cluster, next.Pins.Lockfile = config.Store{}, config.Cluster{}, filepath.Join(state, "wasmgate.lock")
		if err := files.Replace(next.Pins.Lockfile, approved.Bytes(), 0o600); err != nil {
			return nil, err
		}
	}
	for _, name := range secretsOf(cfg.File, id) {
		secret, err := logins.Vault(cfg).Get(reference.Key(name))
		if err == nil {
			err = logins.Vault(next).Put(reference.Key(name), secret)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	err = s.With(ctx, next, id, func(g shell.Gateway) error {
		now, err := doctor.Await(ctx, g, []string{id})
		if err != nil {
			return err
		}
		for _, one := range now.Servers {
			if one.Server == id && one.Phase != status.Ready {
				return fmt.Errorf("the new version does not work: %s is %s: %s; nothing was changed", id, one.Phase, one.Error)
			}
		}
		if next.Pins.Mode == "off" {
			review = new(lock.Review)
			return nil
		}
		review, err = pins.Compare.Ask(ctx, g, pins.Request{Selector: id})
		return err
	})
	return review, err
}
