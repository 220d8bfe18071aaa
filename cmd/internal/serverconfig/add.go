package serverconfig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/extract"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/doctor"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/reference"
	"github.com/wasmgate/wasmgate/internal/setup"
	"github.com/wasmgate/wasmgate/internal/setup/registry"
)

type commands struct{ *shell.Shell }

// addition is what a call of add wants.
type addition struct {
	*shell.Shell
	id                     string
	from, env, read, write []string
	project, print         bool
	tokens, noCheck        bool
	unconfined             bool
	unconfinable           []string // why a server was not confined
	pinned                 []string // to which versions
	pending                []pending
	registry, kind, digest string
	host                   string
	yes                    bool
	stored, moved          []extract.Moved // secrets that are in the vault now, and those that the environment has to have
}

// Add returns the command that adds servers.
func Add(c *shell.Shell) *cobra.Command {
	a := addition{Shell: c}
	cmd := &cobra.Command{
		Use:   "add NAME[@VERSION] | URL | -- COMMAND [WORD...] | --from CLIENT|FILE",
		Short: "Add a server to the configuration, confined and pinned",
		Long: `Adds a server to your configuration, or to that of --config, which it creates if there is none. The rest of
the file stays as it is. Then it starts the server, lists its tools and pins their definitions. It
grants nothing.

NAME is a name in an MCP registry, such as io.github.user/server. The command shows what would run and
which values it needs, and asks. --yes skips the question, and --env gives values. The gateway runs exactly
this version of the package with npx, uvx, dnx or docker, or connects to the URL. An entry that asks
for more, such as options of the runner, is refused.

A command is confined if this machine supports it. It then reads the files that its arguments name,
writes to a folder of its own and connects to port 443. --read, --write and --unconfined change that.

With --from it adds the servers of a client, or of a file in a client's format, without confinement.

A package that npx runs without a fixed version is pinned to the newest one, as npm names it.

Literal tokens go into the gateway's vault, and ${vault:NAME} takes their place, unless you give
--keep-tokens. With --print and --project they become ${NAME}.`,
		Example: "  wasmgate add io.github.user/weather@1.2.3\n  wasmgate add https://mcp.example.com/mcp\n  wasmgate add --id files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs\n  wasmgate add --from cursor",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&a.id, "id", "", "name of the server in the configuration (default: made of what is added)")
	flags.StringArrayVar(&a.from, "from", nil, "add the servers of this client ("+strings.Join(clients.Names(), ", ")+") or file; may be repeated")
	flags.StringArrayVar(&a.env, "env", nil, "set a variable of the server: NAME=VALUE; may be repeated")
	flags.StringArrayVar(&a.read, "read", nil, "let the confined server read this file or folder; may be repeated")
	flags.StringArrayVar(&a.write, "write", nil, "let the confined server write to this file or folder; may be repeated")
	flags.StringVar(&a.registry, "registry", "", "URL of the registry, or a file or folder with its entries (default: WASMGATE_REGISTRY, the configuration's, or the official one)")
	flags.StringVar(&a.kind, "kind", "", "use this kind of package: npm, pypi, oci, nuget or remote (default: the first that works here)")
	flags.StringVar(&a.digest, "digest", "", "sha256:... of the image, if the registry names only a tag")
	flags.StringVar(&a.host, "allow-host", "", "connect to this host, although it does not belong to the publisher")
	flags.BoolVar(&a.yes, "yes", false, "do not ask; needed for a NAME where there is no terminal")
	flags.BoolVar(&a.unconfined, "unconfined", false, "do not confine the server")
	flags.BoolVar(&a.project, "project", false, "add to the file of the current project; it has no effect until you trust it")
	flags.BoolVar(&a.print, "print", false, "print the servers as a configuration, and add nothing")
	flags.BoolVar(&a.tokens, "keep-tokens", false, "leave tokens in the configuration, which you alone can read")
	flags.BoolVar(&a.noCheck, "no-check", false, "do not start the server; pins nothing")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return shell.Misuse("%v; see %s --help. Write the options of a command after --: wasmgate add -- npx -y PACKAGE", err, cmd.CommandPath())
	})
	return cmd
}

func (a *addition) run(cmd *cobra.Command, args []string) error {
	servers, from, err := a.servers(cmd.Context(), args)
	if errors.Is(err, errUnconfirmed) {
		return shell.FoundFalse("%v", err)
	}
	if err != nil {
		return shell.Misuse("%v", err)
	}
	var notes []tree.Problem
	for _, s := range from {
		notes = append(notes, s.Notes...)
	}
	if a.print {
		return a.printed(servers, notes)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	made, err := setup.Write(a.ConfigFile, cwd, setup.Plan{Servers: servers, Project: a.project, Complete: func(cfg *config.Config, servers []config.Server) error {
		return a.complete(cmd.Context(), cfg, servers)
	}}, true)
	if err != nil {
		return err
	}
	made.Moved = a.moved
	result := added{File: made.File, New: made.New, Added: append([]string{}, made.Added...)}
	result.Notes, result.Moved = Noted(notes, made.Moved)
	result.Notes = slices.Concat(result.Notes, a.pinned, InVault(a.stored))
	for _, why := range a.unconfinable {
		result.Notes = append(result.Notes, "not confined, because this machine cannot: "+why)
	}
	if a.project {
		result.Next = []string{"wasmgate trust    # it has no effect until you have read and trusted it"}
		return a.report(&result)
	}
	cfg, err := a.Open()
	if err != nil {
		return err
	}
	if len(made.Added) > 0 {
		result.Notes = append(result.Notes, Advice(cfg, len(a.stored)+len(a.pending) > 0)...)
	}
	if !a.noCheck && len(made.Added) > 0 {
		if err := a.look(cmd.Context(), cfg, &result); err != nil {
			return err
		}
	}
	if r, err := app.Dial(cmd.Context(), cfg); err == nil {
		made.Running = true
		r.Close()
	}
	result.Next = made.Next(a.ConfigFile, "http://"+cfg.Listen[0]+"/mcp", from)
	return a.report(&result)
}

// servers returns what is to be added, and the files that it comes from.
func (a *addition) servers(ctx context.Context, args []string) (all []config.Server, from []setup.Source, err error) {
	switch {
	case len(a.from) > 0 && len(args) > 0:
		return nil, nil, errors.New("name a server or --from, not both")
	case len(a.from) > 0 && (a.id != "" || len(a.env) > 0):
		return nil, nil, errors.New("--id and --env are for one server; --from adds all of a client")
	case len(a.from) > 0:
		for _, name := range a.from {
			sources, err := setup.From(name)
			if err != nil {
				return nil, nil, err
			}
			from = append(from, sources...)
		}
		all, notes := setup.Merged(from)
		if len(all) == 0 {
			return nil, nil, errors.New(strings.Join(a.from, ", ") + ": no servers there")
		}
		for _, note := range notes {
			fmt.Fprintln(a.Err, escaped.Text(note))
		}
		return all, from, nil
	case len(args) == 0:
		return nil, nil, errors.New("name a server of a registry, a URL or a command, or a client by --from")
	case len(args) == 1 && registry.IsName(args[0]):
		one, err := a.named(ctx, args[0])
		return []config.Server{one}, nil, err
	}
	id := a.id
	if id == "" {
		id = nameOf(args)
	}
	one, err := setup.Server(id, args)
	if err != nil {
		return nil, nil, err
	}
	if one.Env == nil {
		one.Env = map[string]config.Secret{}
	}
	values, err := a.values()
	if err != nil {
		return nil, nil, err
	}
	for name, value := range values {
		one.Env[name] = config.Secret(written(value))
	}
	return []config.Server{one}, nil, nil
}

// variable is all of a value that comes from elsewhere.
var variable = regexp.MustCompile(`^\$\{([^}]*)\}$`)

// written returns a value as a configuration has it.
func written(value string) string {
	if m := variable.FindStringSubmatch(value); m != nil && (variables.Is(m[1]) || variables.IsReference(m[1])) {
		return value
	}
	return strings.ReplaceAll(value, "$", "$$")
}

// complete pins versions, puts secrets into the vault, and confines the servers that are commands.
func (a *addition) complete(ctx context.Context, cfg *config.Config, servers []config.Server) error {
	a.pinned = setup.PinVersions(ctx, servers)
	if err := a.store(cfg, servers); err != nil {
		return err
	}
	access, err := a.access()
	if err != nil || a.unconfined || a.project || len(a.from) > 0 {
		return err // a client's servers run as they ran there, and a project's on other machines
	}
	for i := range servers {
		missing, err := setup.Confine(cfg, &servers[i], access)
		if err != nil {
			return err
		}
		a.unconfinable = append(a.unconfinable, missing...)
	}
	return nil
}

// store puts the secrets of servers into the vault, and leaves references.
func (a *addition) store(cfg *config.Config, servers []config.Server) (err error) {
	if a.tokens {
		return nil
	}
	if a.project { // its file has no references
		extracted, moved := extract.Servers(servers)
		copy(servers, extracted)
		a.moved = moved
	} else if a.stored, a.moved, err = Store(cfg, servers); err != nil {
		return err
	}
	v := logins.Vault(cfg)
	for _, p := range a.pending {
		if err := v.Put(reference.Key(p.name), []byte(p.value)); err != nil {
			return err
		}
	}
	return nil
}

// Store puts the secrets of servers into the vault of a configuration, and leaves references to them. It returns what
// the vault has now, and what cannot refer to it: in a URL a variable takes the place.
func Store(cfg *config.Config, servers []config.Server) (stored, left []extract.Moved, err error) {
	extracted, moved := extract.Servers(servers)
	copy(servers, extracted)
	v := logins.Vault(cfg)
	for _, m := range moved {
		name := m.Server + "/" + m.Name
		i := slices.IndexFunc(servers, func(s config.Server) bool { return s.ID == m.Server })
		if !refer(&servers[i], "${"+m.Name+"}", "${vault:"+name+"}") {
			left = append(left, m)
			continue
		}
		if err := v.Put(reference.Key(name), []byte(m.Value)); err != nil {
			return nil, nil, err
		}
		stored = append(stored, m)
	}
	return stored, left, nil
}

// InVault says what the vault has now.
func InVault(stored []extract.Moved) (notes []string) {
	for _, s := range stored {
		notes = append(notes, fmt.Sprintf("%s: the vault has %s now", s.Server, s.Where))
	}
	return notes
}

// Advice says what to do so that other gateways have the servers that were added to a configuration, with their secrets if the
// vault has those; nothing without other gateways.
func Advice(cfg *config.Config, secrets bool) (notes []string) {
	if !cfg.Store.On() {
		return nil
	}
	notes = append(notes, cfg.Store.Advice(cfg.File))
	if secrets {
		notes = append(notes, "only the vault of this gateway has the secrets: write ${env:NAME} instead, and give each gateway the variable")
	}
	return notes
}

// refer replaces a variable of a server, and reports whether that can refer to the vault.
func refer(s *config.Server, variable, to string) (done bool) {
	if strings.Contains(s.URL, variable) {
		return false
	}
	for i := range s.Args {
		done = done || strings.Contains(s.Args[i], variable)
		s.Args[i] = strings.ReplaceAll(s.Args[i], variable, to)
	}
	for _, values := range []map[string]config.Secret{s.Env, s.Headers} {
		for name, value := range values {
			done = done || strings.Contains(string(value), variable)
			values[name] = config.Secret(strings.ReplaceAll(string(value), variable, to))
		}
	}
	return done
}

func (a *addition) access() (to setup.Access, err error) {
	for _, path := range a.read {
		abs, err := filepath.Abs(path)
		if err != nil {
			return to, err
		}
		to.Read = append(to.Read, abs)
	}
	for _, path := range a.write {
		abs, err := filepath.Abs(path)
		if err != nil {
			return to, err
		}
		to.Write = append(to.Write, abs)
	}
	return to, nil
}

// runners are commands that are named by what they run.
var runners = []string{"npx", "uvx", "bunx", "dnx", "node", "bun", "deno", "python", "python3", "uv", "docker", "podman", "sh", "bash", "go"}

// nameOf makes a name of a URL, or of a command and its words.
func nameOf(words []string) string {
	if u, err := url.Parse(words[0]); err == nil && u.Host != "" {
		labels := strings.Split(u.Hostname(), ".")
		if _, err := netip.ParseAddr(u.Hostname()); err == nil || len(labels) < 2 {
			return u.Hostname()
		}
		return labels[len(labels)-2]
	}
	name := words[0]
	if base := strings.TrimSuffix(filepath.Base(name), ".exe"); slices.Contains(runners, base) {
		i := slices.IndexFunc(words[1:], func(word string) bool {
			return !strings.HasPrefix(word, "-") && !slices.Contains([]string{"run", "tool", "exec", "x"}, word)
		})
		if i >= 0 {
			name = words[1+i]
		}
	}
	return shortName(name)
}

// shortName returns what tells a package, a script or an image from others.
func shortName(name string) string {
	name, _, _ = strings.Cut(filepath.Base(filepath.ToSlash(name)), "@")
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, "==")
	name = strings.TrimSuffix(name, filepath.Ext(name))
	for _, prefix := range []string{"mcp-server-", "server-", "mcp-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, "-mcp"), "-server")
}

// printed prints the servers as a configuration.
func (a *addition) printed(servers []config.Server, problems []tree.Problem) error {
	var moved []extract.Moved
	if !a.tokens {
		servers, moved = extract.Servers(servers)
	}
	yaml := "version: 1\n" + string(edit.Render(servers))
	result := added{Added: setup.IDs(servers), Configuration: yaml}
	result.Notes, result.Moved = Noted(problems, moved)
	a.notes(&result)
	return a.Said(&result, strings.TrimSuffix(yaml, "\n"))
}

// added is what was done, for machines.
type added struct {
	File          string              `json:"file,omitempty"`
	New           bool                `json:"new"`
	Added         []string            `json:"added"`
	Tools         []string            `json:"tools"`
	Pinned        int                 `json:"pinned"`
	Lockfile      string              `json:"lockfile,omitempty"`
	Faults        []string            `json:"faults,omitempty"`
	Notes         []string            `json:"notes"`
	Moved         []map[string]string `json:"moved"`
	Next          []string            `json:"next,omitempty"`
	Configuration string              `json:"configuration,omitempty"`
}

// Noted returns what was left out, and which tokens became variables.
func Noted(problems []tree.Problem, moved []extract.Moved) (notes []string, variables []map[string]string) {
	notes, variables = []string{}, []map[string]string{}
	for _, p := range problems {
		notes = append(notes, p.String())
	}
	for _, m := range moved {
		variables = append(variables, map[string]string{"server": m.Server, "where": m.Where, "name": m.Name})
	}
	return notes, variables
}

// notes writes to the person what was noted.
func (a *addition) notes(r *added) {
	if a.JSON {
		return
	}
	for _, n := range r.Notes {
		fmt.Fprintln(a.Err, escaped.Text(n))
	}
	for _, m := range r.Moved {
		fmt.Fprintf(a.Err, "%s: %s is ${%s} now; put its value into the environment\n", m["server"], escaped.Text(m["where"]), m["name"])
	}
}

// look starts the servers that were added, and pins what they declare.
func (a *addition) look(ctx context.Context, cfg *config.Config, r *added) error {
	only := ""
	if len(r.Added) == 1 {
		only = r.Added[0]
	}
	return a.With(ctx, cfg, only, func(g shell.Gateway) error {
		s, err := doctor.Await(ctx, g, r.Added)
		if err != nil {
			return err
		}
		for _, one := range s.Servers {
			if slices.Contains(r.Added, one.Server) && one.Phase != status.Ready {
				r.Faults = append(r.Faults, fmt.Sprintf("%s is %s: %s", one.Server, one.Phase, one.Error))
			}
		}
		tools, err := inventory.Tools.Ask(ctx, g, inventory.Request{All: true})
		if err != nil {
			return err
		}
		for _, t := range tools {
			if slices.Contains(r.Added, t.Server) {
				r.Tools = append(r.Tools, t.Name)
			}
		}
		if cfg.Pins.Mode == "off" {
			return nil
		}
		return pin(ctx, g, cfg, r)
	})
}

// pinnable are the pins that a person approves by adding a server. Pages of apps and skills wait for an approval of
// their own.
func pinnable(all []lock.Pin) []lock.Pin {
	return slices.DeleteFunc(slices.Clone(all), func(p lock.Pin) bool { return p.Kind == lock.Page || p.Kind == lock.Skill })
}

// pin approves what the servers declare: a person has just added them.
func pin(ctx context.Context, g shell.Gateway, cfg *config.Config, r *added) error {
	r.Lockfile = cfg.Pins.Lockfile
	for _, id := range r.Added {
		review, err := pins.Compare.Ask(ctx, g, pins.Request{Selector: id})
		if errors.Is(err, lock.ErrNothing) {
			continue // it did not start
		}
		if err != nil {
			return err
		}
		approved, where, err := pins.Keep(ctx, cfg, g, pinnable(review.Approval))
		if err != nil {
			return err
		}
		r.Lockfile = where
		r.Pinned += len(approved)
	}
	return nil
}

func (a *addition) report(r *added) error {
	a.notes(r)
	if r.Tools == nil {
		r.Tools = []string{}
	}
	lines := []string{fmt.Sprintf("%s has %s", r.File, strings.Join(append([]string{"the servers"}, r.Added...), " "))}
	if len(r.Added) == 0 {
		lines[0] = r.File + " has these servers already; nothing was changed"
	}
	if len(r.Tools) > 0 {
		lines = append(lines, "tools: "+strings.Join(r.Tools, ", "))
	}
	if r.Pinned > 0 {
		lines = append(lines, fmt.Sprintf("pinned %d definitions in %s; nothing is granted", r.Pinned, r.Lockfile))
	}
	for _, f := range r.Faults {
		lines = append(lines, "fault: "+f)
	}
	for _, n := range r.Next {
		lines = append(lines, "  "+n)
	}
	for i := range lines {
		lines[i] = escaped.Text(lines[i])
	}
	err := a.Said(r, strings.Join(lines, "\n"))
	if err == nil && len(r.Faults) > 0 {
		err = shell.FoundFalse("the server was added, but does not work: read its log with `wasmgate status %s`; if it needs more files, use --read, --write or --unconfined", r.Added[0])
	}
	return err
}
