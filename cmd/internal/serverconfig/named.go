package serverconfig

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/modules/artifact"
	"github.com/wasmgate/wasmgate/internal/setup"
	"github.com/wasmgate/wasmgate/internal/setup/registry"
)

// errUnconfirmed says that a person did not want what they were shown.
var errUnconfirmed = errors.New("nothing was added")

// named returns the server of a registry's entry, after a person has seen what it runs and given what it wants.
func (a *addition) named(ctx context.Context, word string) (config.Server, error) {
	address, err := a.registryAddress()
	if err != nil {
		return config.Server{}, err
	}
	e, err := registry.Fetch(ctx, address, word)
	if err != nil {
		return config.Server{}, err
	}
	_, last, _ := strings.Cut(e.Name, "/")
	base, err := setup.Server(cmp.Or(a.id, shortName(last+"@")), []string{"x"})
	if err != nil {
		return config.Server{}, err
	}
	values, err := a.values()
	if err != nil {
		return config.Server{}, err
	}
	o := registry.Options{
		Kind: a.kind, Digest: a.digest, Host: a.host, Values: values,
		Here:    func(program string) bool { _, err := exec.LookPath(program); return err == nil },
		Literal: func(s string) string { return strings.ReplaceAll(s, "$", "$$") }, Given: written,
		Secret: func(name, value string) (string, error) { return a.secret(base.ID, name, value), nil },
	}
	o.Resolve = func(image string) (string, error) {
		if o.Digest != "" { // another answer would be another image than the person was shown
			return o.Digest, nil
		}
		sum, err := resolve(ctx, image)
		o.Digest = sum
		return sum, err
	}
	p, err := e.Plan(o)
	if err != nil {
		return config.Server{}, err
	}
	a.show(e, p)
	if p, err = a.answered(e, p, o); err != nil {
		return config.Server{}, err
	}
	base.Origin = &config.Origin{Name: e.Name, Version: e.Version, SHA256: e.SHA256}
	if address != registry.Default {
		base.Origin.Registry = address
	}
	base.Command, base.Args, base.Env = p.Command, p.Args, secrets(p.Env)
	if p.URL != "" {
		base.URL, base.Transport, base.Headers = p.URL, p.Type, secrets(p.Headers)
	}
	return base, nil
}

// resolve looks up the digest of an image. The entry names the registry, so it has to be on the Internet.
func resolve(ctx context.Context, image string) (string, error) {
	store, err := artifact.New(artifact.Config{Timeout: time.Minute, DialContext: dial.New(dial.Options{}).AskDialer(dial.Public)})
	if err != nil {
		return "", err
	}
	return store.Resolve(ctx, image)
}

func secrets(texts map[string]string) map[string]config.Secret {
	to := map[string]config.Secret{}
	for k, v := range texts {
		to[k] = config.Secret(v)
	}
	return to
}

// registryAddress is the registry that the flag, the environment or the configuration names.
func (a *addition) registryAddress() (string, error) {
	configured := ""
	if cfg, err := a.Open(); err == nil { // else there is none yet
		configured = cfg.Registry
	}
	address := cmp.Or(a.registry, os.Getenv("WASMGATE_REGISTRY"), configured, registry.Default)
	if strings.Contains(address, "://") {
		return address, nil
	}
	return filepath.Abs(address)
}

// values are those of --env.
func (a *addition) values() (map[string]string, error) {
	to := map[string]string{}
	for _, e := range a.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return nil, errors.New("--env takes NAME=VALUE")
		}
		to[name] = value
	}
	return to, nil
}

// secret returns what the configuration has in the place of a secret, which the vault gets once the server is added.
func (a *addition) secret(server, name, value string) string {
	if text := written(value); a.tokens || text == value && strings.HasPrefix(value, "${") {
		return text
	}
	name = server + "/" + name
	a.pending = append(a.pending, pending{name, value})
	return "${vault:" + name + "}"
}

// A pending secret is stored once its server can be added.
type pending struct{ name, value string }

// maxShown bounds how much of a description is shown, in bytes.
const maxShown = 300

// show tells the person what would run, and what that wants. All of it is a stranger's text.
func (a *addition) show(e *registry.Entry, p *registry.Plan) {
	lines := []string{e.Name + " " + e.Version}
	if about := cmp.Or(e.Description, e.Title); about != "" {
		lines = append(lines, "  says: "+strings.ToValidUTF8(about[:min(len(about), maxShown)], ""))
	}
	if e.Status == "deprecated" {
		lines = append(lines, "  its publisher no longer maintains it (deprecated)")
	}
	if p.URL != "" {
		lines = append(lines, "  connects to: "+p.What)
	} else {
		lines = append(lines, "  runs: "+strings.Join(append([]string{p.Command}, p.Args...), " "))
	}
	for _, in := range slices.Concat(p.Wanted, p.Open) {
		what := "may have"
		if in.Required {
			what = "wants"
		}
		kind := ""
		if in.Secret {
			kind = " (secret)"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s%s %s", what, in.Key(), kind, strings.ToValidUTF8(in.Description[:min(len(in.Description), maxShown)], "")))
	}
	for _, line := range lines {
		fmt.Fprintln(a.Err, escaped.Text(line))
	}
}

// answered asks for what an entry wants, and whether it is to be added.
func (a *addition) answered(e *registry.Entry, p *registry.Plan, o registry.Options) (*registry.Plan, error) {
	if len(p.Wanted) > 0 && (a.yes || !a.AtTerminal()) {
		var names []string
		for _, in := range p.Wanted {
			names = append(names, "--env "+in.Key()+"=VALUE")
		}
		return nil, fmt.Errorf("it wants values: add %s; a secret may be a reference such as '${file:PATH}'", strings.Join(names, " "))
	}
	if !a.yes && !a.AtTerminal() {
		return nil, errors.New("this asks a person first, and there is no terminal: run it in a terminal, or add --yes")
	}
	in := bufio.NewReader(a.In)
	for _, wanted := range p.Wanted {
		answer, err := a.question(in, wanted.Key()+":")
		if err != nil {
			return nil, err
		}
		o.Values[wanted.Key()] = answer
	}
	if len(p.Wanted) > 0 {
		a.pending = nil
		next, err := e.Plan(o)
		if err != nil {
			return nil, err
		}
		if p = next; len(p.Wanted) > 0 {
			return nil, fmt.Errorf("it still wants %s", p.Wanted[0].Key())
		}
	}
	if a.yes {
		return p, nil
	}
	answer, err := a.question(in, "Add it? [y/N]")
	if err == nil && !strings.HasPrefix(strings.ToLower(answer), "y") {
		err = errUnconfirmed
	}
	return p, err
}

func (a *addition) question(in *bufio.Reader, text string) (string, error) {
	fmt.Fprint(a.Err, escaped.Text(text)+" ")
	line, err := in.ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && line != "") {
		return "", errUnconfirmed
	}
	return strings.TrimSpace(line), nil
}
