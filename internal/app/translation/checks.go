package translation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/sqlite"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/config"
)

// Checks puts what a configuration says of how calls are checked into the words of a
// gateway, for [gateway.New] and [gateway.Gateway.Reconfigure]. It says nothing of approvals.
func Checks(c *config.Config, node string) gateway.Config {
	to := gateway.Config{
		Origins: c.HTTP.Origins, Hosts: Hosts(c), Drain: c.Drain,
		Sanitize: clean.Sanitize{
			Profile: c.Sanitize.Profile, Tools: rules(c.Sanitize.Tools), MIME: rules(c.Sanitize.MIME), Links: c.Sanitize.Links,
			Secrets: secretRules(c.Sanitize.Secrets), Servers: make(map[string]string),
		},
		Inputs: make(map[string]*gateway.InputRules), Limits: callLimits(c), Propose: c.Approvals.Propose,
		Name: c.ServerInfo.Name, Version: c.ServerInfo.Version, Description: c.ServerInfo.Description,
		Jobs: jobOptions(c, node), Sessions: sessionOptions(c), TrustPrompt: c.Sessions.TrustPrompt, Pins: pinOptions(c), Snapshot: Snapshot(c),
	}
	for _, s := range Enabled(c.Servers) {
		AddServer(s, &to)
	}
	return to
}

// AddServer adds to checks what is said of a server.
func AddServer(s config.Server, to *gateway.Config) {
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

// AuditOptions says how records of calls are kept.
func AuditOptions(c *config.Config, node string) audit.Options {
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

// AgentRules puts the agents of a configuration into the words of a gateway.
func AgentRules(c *config.Config) map[string]options.Agent {
	rules := make(map[string]options.Agent)
	for _, a := range c.Agents {
		rules[a.ID] = options.Agent{MCP: a.MCP, RequireHook: a.RequireHook, TrustHeadless: a.TrustHeadless}
	}
	return rules
}

// CatalogModes are the words of a gateway for those of a configuration.
var CatalogModes = map[string]gateway.CatalogMode{
	"off": gateway.CatalogOff, "beside": gateway.CatalogBeside, "only": gateway.CatalogOnly,
}

// Snapshot is a hash of what the configuration says. Secrets are in it as far as
// they are part of the file, and cannot be told from it.
func Snapshot(c *config.Config) string {
	h := sha256.New()
	for _, path := range []string{c.File, c.Project} {
		if b, err := os.ReadFile(path); path != "" && err == nil {
			fmt.Fprintf(h, "%d\n%s", len(b), b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Hosts are those that requests may name next to loopback.
func Hosts(c *config.Config) []string {
	all := slices.Clone(c.HTTP.Hosts)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Host != "" && !slices.Contains(all, u.Host) {
		all = append(all, u.Host)
	}
	return all
}

// sessionsFile is the file in the state folder that keeps labels.
const sessionsFile = "sessions.json"

// OnePerPrincipal reports whether a principal has one session for all its calls.
func OnePerPrincipal(c *config.Config) bool { return c.Sessions.Scope == "principal" }

// sessionOptions says how sessions are kept. MCP sessions do not outlive the gateway, but
// their clients do, and what those have read.
func sessionOptions(c *config.Config) session.Options {
	return session.Options{TTL: c.Sessions.TTL, File: filepath.Join(c.State, sessionsFile)}
}

// jobsFile is what jobs are kept in, in the state folder.
const jobsFile = "jobs.db"

// jobOptions says how the node keeps jobs.
func jobOptions(c *config.Config, node string) *gateway.Jobs {
	return &gateway.Jobs{
		Open: sqlite.File(filepath.Join(c.State, jobsFile)), Offer: c.Jobs.Offer, NoTasks: !c.Jobs.Tasks,
		Options: jobs.Options{Node: node, Keep: c.Jobs.Keep, Max: c.Jobs.Max, MaxSize: c.Jobs.MaxSize},
	}
}

// pinOptions are those of a configuration.
func pinOptions(c *config.Config) *options.Pins {
	return &options.Pins{Mode: options.PinMode(c.Pins.Mode), File: c.Pins.Lockfile, Dir: filepath.Join(Kept(c), "pins")}
}
