package translation

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/reference"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
)

// Servers translates servers. It knows what those were made of that a gateway has, so that it is
// seen when that changes. It may be used concurrently.
type Servers struct {
	// Modules reads those that are servers.
	Modules modules.Reader
	// Authorize has requests to a server carry what its callers have logged in with.
	Authorize func(config.Server, *options.Endpoint)
	// Reveal returns a text with the secrets that it refers to.
	Reveal func(ctx context.Context, text string) (string, error)
	// Learn gets what a server uses, which is not confined then; nil confines it.
	Learn func(confine.Access)

	guests modules.Digests
	files  sync.Map // by server: the files of its secrets, when it was connected
}

// Server puts a server of a configuration into the words of a gateway.
func (a *Servers) Server(ctx context.Context, c *config.Config, s config.Server) gateway.Server {
	to := gateway.Server{Endpoint: endpoint(s), Sanitize: s.Sanitize, Input: inputRules(s), Concurrent: s.Concurrent}
	a.Authorize(s, &to.Endpoint)
	a.secretsChanged(s) // remembers what the connection uses
	if refers(s) {
		to.Reveal = a.Reveal
	}
	to.Written, to.Declared = s.Written, s.Declared
	to.PinTLS, to.MaxMessage, to.Processes = c.Pins.TLSKey, c.Limits.Result, c.Limits.Processes
	if a.Learn != nil {
		to.Confine, to.Learn = nil, a.Learn
	}
	if !modules.IsServer(s) || s.Fault != "" {
		return to
	}
	guest, err := a.Modules.Guest(ctx, s)
	if err != nil {
		a.guests.Forget(s.ID) // the same module can come back
		to.Broken = err.Error()
		return to
	}
	a.guests.Changed(s.ID, guest.WASM)
	to.Guest = &guest
	return to
}

// Changed reports whether a server is made of something else than when a gateway got it last: its module, or
// the files of its secrets.
func (a *Servers) Changed(ctx context.Context, s config.Server) bool {
	return a.moduleChanged(ctx, s) || a.secretsChanged(s)
}
func endpoint(s config.Server) options.Endpoint {
	transport := s.Transport
	if transport == "http" { // as clients' files name it
		transport = "streamable-http"
	}
	e := options.Endpoint{
		Server: s.ID, Dir: s.Cwd, Transport: transport, Protocol: s.Protocol, ConnectTimeout: s.StartTime(), CallTimeout: s.Timeout,
		Sessions: s.Sessions, Retry: s.Retry, Retries: s.Retries, RetryWait: s.RetryWait, Health: s.Health, Methods: s.Methods,
		Tools: options.Tools{Bare: !s.Prefix, Normalize: s.Schema == "normalized", Strict: s.Repair == "off", OutputWarn: s.Output == "warn", Vetted: s.Lists == "trusted", Groups: groupsOf(s), Apps: appsOf(s), Skills: skillsOf(s)},
	}
	for _, t := range s.Timeouts {
		e.CallTimeouts = append(e.CallTimeouts, options.ToolTimeout(t))
	}
	switch {
	case s.Fault != "":
		e.Broken = s.Fault
	case s.Command != "":
		env := map[string]string{}
		if s.Confine == nil {
			env = confine.Network(os.LookupEnv)
		}
		for k, v := range s.Env {
			env[k] = string(v)
		}
		e.Command, e.Args, e.Env = s.Command, s.Args, confine.Environ(env, os.LookupEnv)
		e.Confine = (*confine.Rules)(s.Confine)
	case s.Folder != "":
		e.Sessions = "shared" // it asks no client anything
		e.Dial, e.MaxMessage = gateway.DialStreams(func() (io.ReadCloser, io.WriteCloser, error) { return folder.Serve(s.Folder) }), folder.MaxMessage
	case s.URL != "":
		e.URL, e.Headers = s.URL, make(http.Header)
		e.DialContext = dial.New(dial.Options{}).Dialer(s.Private)
		for k, v := range s.Headers {
			e.Headers.Set(k, string(v))
		}
	}
	return e
}

// secretTexts are the texts of a server's configuration that may refer to secrets.
func secretTexts(s config.Server) []string {
	all := slices.Clone(s.Args)
	for _, values := range []map[string]config.Secret{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, string(values[name]))
		}
	}
	return all
}

// refers reports whether a server's configuration refers to secrets.
func refers(s config.Server) bool { return slices.ContainsFunc(secretTexts(s), variables.Refers) }

// appsOf says how the pages of a server are offered.
func appsOf(s config.Server) options.Apps {
	if s.Apps == nil {
		return options.Apps{}
	}
	return options.Apps{
		Off: s.Apps.Mode == "off", On: s.Apps.Mode != "off", PinPolicy: s.Apps.Pin == "policy", PinOff: s.Apps.Pin == "off",
		Allow: options.AppSources{
			Connect: sources(s.Apps.Connect), Resources: sources(s.Apps.Resources), Frames: sources(s.Apps.Frames), Base: sources(s.Apps.Base),
			Permissions: s.Apps.Permissions, Domain: s.Apps.Domain,
		},
	}
}

// skillsOf says how the skills of a server are offered. Those of a folder that is trusted are the
// operator's own.
func skillsOf(s config.Server) options.Skills {
	if s.Skills == nil {
		return options.Skills{}
	}
	return options.Skills{
		Off: s.Skills.Mode == "off", Trusted: s.Skills.Trusted, Dynamic: s.Skills.Dynamic, Refuse: s.Skills.Widening == "refuse",
		Own: s.Skills.Trusted && s.Folder != "",
	}
}

// sources returns those of a configuration in one spelling; nil of nil.
func sources(list []string) (all []string) {
	for _, s := range list {
		one, err := apps.ParseSource(s)
		if err == nil { // else the configuration was refused
			all = append(all, one)
		}
	}
	if list != nil && all == nil {
		return []string{}
	}
	return all
}

// inputRules says how arguments of a server's tools are held against their schemas.
func inputRules(s config.Server) *gateway.InputRules {
	if s.Input == "" && s.Inputs == nil {
		return nil
	}
	to := &gateway.InputRules{Mode: gate.InputMode(s.Input)}
	for _, t := range s.Inputs {
		to.Tools = append(to.Tools, gateway.InputRule{Pattern: t.Pattern, Mode: gate.InputMode(t.Mode)})
	}
	return to
}

// groupsOf returns the groups that all of a server is in.
func groupsOf(s config.Server) options.Groups {
	if len(s.Groups) == 0 {
		return nil
	}
	its := make(options.Groups)
	for _, name := range s.Groups {
		its[name] = []string{s.ID + "__*"}
	}
	return its
}

// Enabled are those servers that are.
func Enabled(servers []config.Server) []config.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s config.Server) bool { return !s.Enabled })
}

// Required are the names of servers without which the gateway is not ready.
func Required(c *config.Config) (ids []string) {
	for _, s := range Enabled(c.Servers) {
		if s.Required {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// IDs are the names of servers that are enabled, in order.
func IDs(servers []config.Server) (ids []string) {
	for _, s := range Enabled(servers) {
		ids = append(ids, s.ID)
	}
	return ids
}

// At returns the place of the server with an id; -1 if there is none.
func At(servers []config.Server, id string) int {
	return slices.IndexFunc(servers, func(s config.Server) bool { return s.ID == id })
}

// moduleChanged reports whether a server is a module, and another one than that which
// runs.
func (a *Servers) moduleChanged(ctx context.Context, s config.Server) bool {
	if !modules.IsServer(s) {
		return false
	}
	guest, err := a.Modules.Guest(ctx, s)
	return err != nil || a.guests.Changed(s.ID, guest.WASM)
}

// SecretFiles tells one version of the files that hold a server's secrets, ${file:PATH}, from another.
func SecretFiles(s config.Server) (all string) {
	for _, text := range secretTexts(s) {
		_, _ = variables.Resolve(text, func(ref string) (string, error) {
			if name, ok := strings.CutPrefix(ref, "file:"); ok {
				path, err := reference.Path(name)
				all += fmt.Sprintln(s.ID, path, err, watch.State(path))
			}
			return "", nil
		})
	}
	return all
}

// secretsChanged reports whether the files of a server's secrets are others than when it was last asked.
func (a *Servers) secretsChanged(s config.Server) bool {
	now := SecretFiles(s)
	before, known := a.files.Swap(s.ID, now)
	return known && before != now
}
