package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/app/traits"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/altered"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/schema/broken"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Status tells how a gateway is.
type Status struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
	Metrics string `json:"metrics,omitempty"` // URL; absent if there are none
	Console string `json:"console,omitempty"` // URL; absent if there is none
	// Shipping tells of each target of the audit log how far it is.
	Shipping []background.Shipping `json:"shipping,omitempty"`
	Config   string                `json:"config,omitempty"`
	Read     time.Time             `json:"config_read"` // when what is in use of it was read
	Grants   string                `json:"grants"`
	Audit    string                `json:"audit"`
	Policy   string                `json:"policy_revision"`
	Running  bool                  `json:"running"` // false if it was started for a command alone
	Servers  []status.Server       `json:"servers"`
	// Modules are those whose tools are offered, or would be.
	Modules []status.Module `json:"modules,omitempty"`
	// Conflicts are names that several servers would offer.
	Conflicts []status.Conflict `json:"conflicts,omitempty"`
	// Approvals is how many calls wait for a person.
	Approvals int `json:"approvals_pending"`
	// Jobs are how many run, and of how many the outcome is kept.
	Jobs     jobs.Counts `json:"jobs"`
	Problems []string    `json:"problems,omitempty"`
	// Nodes are the gateways of the database that this one shares.
	Nodes []postgres.Node `json:"nodes,omitempty"`
	// Paused are the servers whose new calls are refused; "" stands for all.
	Paused []string `json:"paused,omitempty"`
	// BreakGlass is until when the operator answers any question; absent if that is not so.
	BreakGlass time.Time `json:"break_glass,omitzero"`
	// Broken are the tools of which calls were refused by their input schema.
	Broken []broken.Input `json:"refused_by_schema,omitempty"`
	// Altered are the tools whose results the sanitizer changes often.
	Altered []altered.Tool `json:"often_changed,omitempty"`

	// OwnProcesses are the servers of which each client has a process of its own, since the
	// configuration says nothing else.
	OwnProcesses []string `json:"own_processes,omitempty"`

	Replays string `json:"replays,omitempty"` // the recording that calls are answered from

	Bundles []policyfiles.BundleStatus `json:"bundles,omitempty"` // of the policy
	Shadow  *ShadowStatus              `json:"shadow,omitempty"`  // the policy that decides beside it
}

// Faulted names the servers that are faulted, and the modules that are left out.
func (s *Status) Faulted() (names []string) {
	for _, one := range s.Servers {
		if one.Phase == status.Faulted {
			names = append(names, one.Server)
		}
	}
	for _, one := range s.Modules {
		if one.Error != "" {
			names = append(names, one.Module)
		}
	}
	return names
}

// Unready names the servers that are neither ready nor faulted yet.
func (s *Status) Unready() (names []string) {
	for _, one := range s.Servers {
		if one.Phase != status.Ready && one.Phase != status.Faulted {
			names = append(names, one.Server)
		}
	}
	for _, one := range s.Modules {
		if one.Progress != "" && one.Tools == 0 {
			names = append(names, one.Module)
		}
	}
	return names
}

// Status tells how the gateway is.
func (a *App) Status() *Status {
	s := &Status{
		PID: os.Getpid(), Version: product.Version(), URL: a.url(), Console: a.console, Config: a.cfg.File, Replays: a.cfg.Replay.File,
		Grants: a.policy.Load().Policy.Grants, Audit: a.cfg.Audit.Path, Policy: a.gateway.Operator().Policy().Revision(),
		Conflicts: a.gateway.Operator().Conflicts(), Modules: a.gateway.Modules(),
		Read: a.config.Load().read, Servers: a.addPins(a.gateway.Fleet().Status()), Approvals: a.pendingApprovals(),
		Broken: a.gateway.Operator().BrokenInputs(), Altered: a.beside.Altered.Often(a.gateway.Fleet().KnownFeatures(gate.FeatureTool), a.gateway.Operator().Policy()),
	}
	s.OwnProcesses = ownByDefault(a.config.Load().cfg)
	a.countJobs(s)
	others := a.beside.State()
	s.Metrics, s.Shipping, s.Problems = others.Metrics, others.Shipping, append(s.Problems, others.Problems...)
	if words := paused.Words(a.gateway.Operator().Paused()); words != "" {
		s.Paused = a.gateway.Operator().Paused()
		s.Problems = append(s.Problems, fmt.Sprintf("paused: %s: new calls are refused; `%s` lets them pass again", words, paused.Resume(s.Paused)))
	}
	if a.shared.Store != nil {
		s.Nodes = a.shared.Nodes()
	}
	if err := a.shared.problem(); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	if s.BreakGlass = a.glass.Until(); !s.BreakGlass.IsZero() {
		s.Problems = append(s.Problems, fmt.Sprintf("break-glass until %s: the operator answers any question; `wasmgate auth break-glass --end` ends it", s.BreakGlass.Format(time.TimeOnly)))
	}
	if a.cfg.Dev != "" {
		s.Problems = append(s.Problems, fmt.Sprintf("development: %s is run whatever its file holds, and its tools are pinned by their definitions alone; `wasmgate serve` holds the file against its pins", a.cfg.Dev))
	}
	if err := a.gateway.Operator().Healthy(); err != nil {
		s.Problems = append(s.Problems, "audit log: "+err.Error()+"; all calls are refused")
	} else if w := a.gateway.Operator().AuditWarning(); w != "" {
		s.Problems = append(s.Problems, "audit log: "+w)
	}
	if p := a.policyError.Load(); p != nil && p.err != nil {
		s.Problems = append(s.Problems, "policy: "+p.err.Error()+"; the last good one is in use")
	}
	engine, names := a.gateway.Operator().Policy(), naming.Policy(a.config.Load().cfg, a.gateway.Fleet().KnownFeatures(gate.FeatureTool))
	for _, p := range slices.Concat(policy.IdleAsks(engine), policy.Doubts(engine), policy.Unconfigured(engine, names)) {
		s.Problems = append(s.Problems, "policy: "+p.String())
	}
	for _, one := range *a.bundles.Load() {
		b := one.Status()
		s.Bundles = append(s.Bundles, b)
		if b.Error != "" {
			s.Problems = append(s.Problems, "policy: "+b.Error+"; the last good one is in use")
		}
	}
	if s.Shadow = a.shadowStatus(); s.Shadow != nil {
		if s.Shadow.Error != "" {
			s.Problems = append(s.Problems, s.Shadow.Error)
		}
		if n := s.Shadow.Dropped; n > 0 {
			s.Problems = append(s.Problems, fmt.Sprintf("shadow policy: %d calls came faster than it decides, and were not compared", n))
		}
	}
	if p := a.pinError.Load(); p != nil && p.err != nil {
		s.Problems = append(s.Problems, "pins: "+p.err.Error()+"; the last good lockfile is in use")
	}
	if err := a.gateway.Operator().SessionsProblem(); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	for _, why := range a.gateway.Operator().Ready() {
		if why.Part == "servers" {
			s.Problems = append(s.Problems, "not ready: "+why.Why)
		}
	}
	s.Problems = append(s.Problems, a.idleLabels()...)
	for _, p := range RelayWarnings(context.Background(), a.config.Load().cfg, a.gateway.Operator().Policy()) {
		s.Problems = append(s.Problems, p.Message)
	}
	if w := a.openState(); w != "" {
		s.Problems = append(s.Problems, w)
	}
	if ok, why := confine.Supervised(); !ok {
		s.Problems = append(s.Problems, "children: "+why)
	}
	for _, m := range s.Modules {
		if m.Error != "" {
			s.Problems = append(s.Problems, leftOut(m))
		}
		if m.Note != "" {
			s.Problems = append(s.Problems, "module "+m.Module+": "+m.Note)
		}
	}
	s.Problems = append(s.Problems, a.configProblems()...)
	return s
}

// openState says that others can reach what is in the state folder; "" if they cannot.
func (a *App) openState() string {
	info, err := os.Stat(a.cfg.State)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o007 == 0 {
		return ""
	}
	return fmt.Sprintf("state: other users can open the folder %s (mode %03o). Run: chmod 700 %s", a.cfg.State, info.Mode().Perm(), a.cfg.State)
}

func leftOut(m status.Module) string {
	return fmt.Sprintf("module %s: %s; it is not run, and its tools are not offered", m.Module, m.Error)
}

// logLeftOut tells of the modules that cannot be used.
func (a *App) logLeftOut() {
	for _, m := range a.gateway.Modules() {
		if m.Error != "" {
			a.log.Error("module left out", "module", m.Module, "error", m.Error)
		}
	}
}

// A Tool is a tool as the commands show it, or a prompt, a resource, a template of
// resources or a method.
type Tool struct {
	Kind        string   `json:"kind,omitempty"`       // prompt, resource, template or method; "" for a tool
	Name        string   `json:"name"`                 // as offered
	Local       string   `json:"local_name,omitempty"` // its name at the server
	Server      string   `json:"server"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Groups      []string `json:"groups,omitempty"`
	Offered     bool     `json:"offered"`
	Why         string   `json:"why,omitempty"` // it is not offered
	// Verdict says which calls could pass, Condition on what that depends, in
	// words. Both are absent unless all tools are asked for.
	Verdict    study.Verdict   `json:"verdict,omitempty"`
	Condition  string          `json:"condition,omitempty"`
	Sandboxed  bool            `json:"sandboxed"`
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition,omitempty"`
	Traits     *traits.Traits  `json:"traits,omitempty"` // absent unless all tools are asked for
}

// Described returns the tool as policies see it; nil without Traits.
func (t Tool) Described() (*gate.Tool, error) {
	if t.Traits == nil {
		return nil, nil
	}
	return t.Traits.Tool(t.Name, t.Digest, t.Definition)
}

// KnownTools are the tools of all servers as they were last listed, without waiting for any.
func (a *App) KnownTools() []*gate.Tool {
	return a.gateway.Fleet().KnownFeatures(gate.FeatureTool)
}

// Tools returns what the principal as is offered, and if all is true the rest
// too. It waits as a listing does.
func (a *App) Tools(ctx context.Context, as string, all bool) ([]Tool, error) {
	ctx = a.gateway.Fleet().Settle(ctx)
	who, err := naming.Principal(a.config.Load().cfg, as)
	if err != nil {
		return nil, err
	}
	shown, err := a.gateway.Operator().Tools(ctx, who)
	if err != nil {
		return nil, err
	}
	visible := make(map[string]*gate.Tool, len(shown)) // as the principal sees it, which may be narrowed
	for _, t := range shown {
		visible[t.Offered] = t
	}
	tools := []Tool{}
	for _, t := range a.gateway.Fleet().Tools(ctx) {
		seen := visible[t.Offered]
		if seen == nil && !all {
			continue
		}
		definition := t.Definition
		if seen != nil {
			definition = seen.Definition
		}
		tool := Tool{
			Name: t.Offered, Local: t.Local, Server: t.Name.Server, Title: find.Title(t), Description: t.Definition.Get("description").Text(),
			Groups: t.Groups, Offered: seen != nil, Sandboxed: t.Sandboxed, Digest: t.Digest, Definition: definition.Raw(),
		}
		if !tool.Offered {
			tool.Why = a.whyNot(t, who)
		}
		if all {
			tool.Traits = traits.Of(t)
			if tool.Verdict, tool.Condition, err = study.VerdictOf(ctx, a.gateway.Operator().Policy(), who, t); err != nil {
				return nil, err
			}
		}
		tools = append(tools, tool)
	}
	if !all {
		return tools, nil
	}
	for _, s := range a.gateway.Fleet().Status() {
		for _, n := range s.Notes {
			if n.Quarantined && n.Feature == gate.FeatureTool {
				tools = append(tools, Tool{Name: s.Server + "__" + n.Tool, Server: s.Server, Why: "quarantined: " + n.Text})
			}
		}
	}
	return tools, nil
}

// Definitions returns those of a server's tools, by their qualified names.
func Definitions(of []Tool, server string) (map[string]gate.Doc, error) {
	all := make(map[string]gate.Doc)
	for _, t := range of {
		if t.Server != server || len(t.Definition) == 0 {
			continue
		}
		name := t.Name
		if !strings.HasPrefix(name, server+"__") {
			name = server + "__" + name
		}
		d, err := gate.ParseDoc(t.Definition)
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", name, err)
		}
		all[name] = d
	}
	return all, nil
}

// Matches reports whether the tool is in one of the groups, if there are any, and a
// search finds it.
func (t Tool) Matches(groups []string, s find.Search) bool {
	in := len(groups) == 0 || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(t.Groups, g) })
	return in && s.Finds(t.Name, t.Local, t.Title, t.Description)
}

// Connect connects the servers and waits until each is ready or faulted.
func (a *App) Connect(ctx context.Context) error { return a.gateway.Connect(ctx) }

// countJobs adds to a status how many jobs there are.
func (a *App) countJobs(s *Status) {
	counts, err := a.gateway.Operator().Jobs()
	if err != nil {
		s.Problems = append(s.Problems, "jobs: "+err.Error())
	}
	s.Jobs = counts
}
