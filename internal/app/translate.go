package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
)

// translate makes a gateway's configuration of a file's. Only, if it is not empty, names
// the only server that is needed.
func (a *App) translate(ctx context.Context, only string) (gateway.Config, error) {
	gc, err := a.translateGate()
	if err != nil {
		return gateway.Config{}, err
	}
	a.translateServers(ctx, only, &gc)
	gc.Groups, gc.Catalog = a.cfg.AllGroups(), catalogModes[a.cfg.Catalog.Mode]
	gc.Embedded, gc.Modules, gc.LeaveOut = a.cfg.EmbeddedTools(), a.modules().All(ctx, a.cfg), true
	if gc.Secrets, err = modules.Secrets(a.cfg); err != nil {
		return gateway.Config{}, err
	}
	return gc, a.replay(ctx, &gc)
}

// translateGate says who comes, what is checked, and what is kept.
func (a *App) translateGate() (gateway.Config, error) {
	c := a.cfg
	node, err := state.Node(c.State, c.Store.Node)
	if err != nil {
		return gateway.Config{}, err
	}
	seal, err := sealOf(c)
	if err != nil {
		return gateway.Config{}, err
	}
	who, err := principal(c, "")
	if err != nil {
		return gateway.Config{}, err
	}
	gc := a.checks(c, node)
	gc.Who, gc.Agents, gc.Principal, gc.Challenge = who, agentRules(c), a.sender, a.lacking
	gc.Connect = a.connect.Offer
	gc.Audit, gc.AuditOptions, gc.Seal = c.Audit.Path, a.beside.WithDocuments(auditOptions(c, node)), seal
	gc.SessionLasted = a.beside.SessionLasted
	gc.OneSession = onePerPrincipal(c)
	gc.CacheDir, gc.KVDir, gc.Log = filepath.Join(kept(c), "wasm"), filepath.Join(c.State, "kv"), a.log
	return gc, nil
}

// checks puts what a configuration says of how calls are checked into the words of a
// gateway, for [gateway.New] and [gateway.Gateway.Reconfigure].
func (a *App) checks(c *config.Config, node string) gateway.Config {
	to := gateway.Config{
		Origins: c.HTTP.Origins, Hosts: hosts(c), Drain: c.Drain,
		Sanitize: clean.Sanitize{
			Profile: c.Sanitize.Profile, Tools: rules(c.Sanitize.Tools), MIME: rules(c.Sanitize.MIME), Links: c.Sanitize.Links,
			Secrets: secretRules(c.Sanitize.Secrets), Servers: make(map[string]string),
		},
		Inputs: make(map[string]*gateway.InputRules), Limits: callLimits(c), Approvals: a.approvalOptions(c.Approvals, node), Propose: c.Approvals.Propose,
		Name: c.ServerInfo.Name, Version: c.ServerInfo.Version, Description: c.ServerInfo.Description,
		Jobs: jobOptions(c, node), Sessions: sessionOptions(c), TrustPrompt: c.Sessions.TrustPrompt, Pins: pinOptions(c), Snapshot: snapshot(c),
	}
	for _, s := range enabled(c.Servers) {
		checkedAs(s, &to)
	}
	return to
}

// checkedAs adds what is said of a server.
func checkedAs(s config.Server, to *gateway.Config) {
	if s.Sanitize != "" {
		to.Sanitize.Servers[s.ID] = s.Sanitize
	}
	if rules := inputRules(s); rules != nil {
		to.Inputs[s.ID] = rules
	}
	if s.Concurrent > 0 {
		to.Limits.Servers[s.ID] = s.Concurrent
	}
}

func auditOptions(c *config.Config, node string) audit.Options {
	o := audit.Options{
		Node: node, MaxSize: c.Audit.MaxSize, Record: c.Audit.Record, Sync: c.Audit.Sync,
		Keep: c.Audit.Keep, Hold: c.Audit.Hold, HardMax: c.Audit.HardMax, Strict: c.Audit.Strict,
		Rotate: c.Audit.Rotate, MaxAge: c.Audit.MaxAge, Compress: c.Audit.Compress,
	}
	if o.Hold == 0 {
		o.Hold = -1
	}
	return o
}

// translateServers adds the servers that are enabled, and what is said of each.
func (a *App) translateServers(ctx context.Context, only string, gc *gateway.Config) {
	gc.Guests = make(map[string]gateway.Guest)
	for _, s := range enabled(a.cfg.Servers) {
		if only != "" && only != s.ID {
			continue
		}
		one := a.server(ctx, a.cfg, s)
		gc.Servers = append(gc.Servers, one.Endpoint)
		if one.Guest != nil {
			gc.Guests[s.ID] = *one.Guest
		}
	}
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

func rules(from []config.Rule) []clean.Rule {
	var to []clean.Rule
	for _, r := range from {
		to = append(to, clean.Rule(r))
	}
	return to
}

func callLimits(c *config.Config) gateway.Limits {
	l := gateway.Limits{
		Body: c.Limits.Body, Result: c.Limits.Result, Concurrent: c.Limits.Concurrent, Session: c.Limits.Session,
		Servers: make(map[string]int),
	}
	for _, t := range c.Limits.Tools {
		l.Tools = append(l.Tools, gateway.ToolLimit(t))
	}
	return l
}

// server puts a server of a configuration into the words of a gateway.
func (a *App) server(ctx context.Context, c *config.Config, s config.Server) gateway.Server {
	to := gateway.Server{Endpoint: endpoint(s), Sanitize: s.Sanitize, Input: inputRules(s), Concurrent: s.Concurrent}
	a.authorize(s, &to.Endpoint)
	a.secretsChanged(s) // remembers what the connection uses
	if refers(s) {
		to.Reveal = a.secrets.Resolve
	}
	to.Written, to.Declared = s.Written, s.Declared
	to.PinTLS, to.MaxMessage, to.Processes = c.Pins.TLSKey, c.Limits.Result, c.Limits.Processes
	if a.learn != nil {
		to.Confine, to.Learn = nil, a.learn
	}
	if !modules.IsServer(s) || s.Fault != "" {
		return to
	}
	guest, err := a.modules().Guest(ctx, s)
	if err != nil {
		a.guests.Forget(s.ID) // the same module can come back
		to.Broken = err.Error()
		return to
	}
	a.guests.Changed(s.ID, guest.WASM)
	to.Guest = &guest
	return to
}

// agentRules puts the agents of a configuration into the words of a gateway.
func agentRules(c *config.Config) map[string]options.Agent {
	rules := make(map[string]options.Agent)
	for _, a := range c.Agents {
		rules[a.ID] = options.Agent{MCP: a.MCP, RequireHook: a.RequireHook, TrustHeadless: a.TrustHeadless}
	}
	return rules
}

var catalogModes = map[string]gateway.CatalogMode{
	"off": gateway.CatalogOff, "beside": gateway.CatalogBeside, "only": gateway.CatalogOnly,
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

// snapshot is a hash of what the configuration says. Secrets are in it as far as
// they are part of the file, and cannot be told from it.
func snapshot(c *config.Config) string {
	h := sha256.New()
	for _, path := range []string{c.File, c.Project} {
		if b, err := os.ReadFile(path); path != "" && err == nil {
			fmt.Fprintf(h, "%d\n%s", len(b), b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func enabled(servers []config.Server) []config.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s config.Server) bool { return !s.Enabled })
}

// required are the names of servers without which the gateway is not ready.
func required(c *config.Config) (ids []string) {
	for _, s := range enabled(c.Servers) {
		if s.Required {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// ids are the names of servers that are enabled, in order.
func ids(servers []config.Server) (ids []string) {
	for _, s := range enabled(servers) {
		ids = append(ids, s.ID)
	}
	return ids
}

// serverAt returns the place of the server with an id; -1 if there is none.
func serverAt(servers []config.Server, id string) int {
	return slices.IndexFunc(servers, func(s config.Server) bool { return s.ID == id })
}
