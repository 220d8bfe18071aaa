// Package overview describes how a gateway is: to commands by its status, to metrics by gauges, and to people by
// conditions that they should know of.
package overview

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/settings"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/background/altered"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/telemetry"
	"github.com/wasmgate/wasmgate/policy"
)

// Show is the operation that reports the state of a gateway.
var Show = operation.New[operation.None, *Status]("status")

// A Cluster is the gateways that share a database with this one.
type Cluster interface {
	Nodes() []postgres.Node
	// Problem says why the database cannot be used, or what is wrong with the clocks.
	Problem() error
	Metrics() []telemetry.Metric
}

// An Overview describes how one gateway is. Its fields are set before anything is asked.
type Overview struct {
	Gateway    *gateway.Gateway
	Start      *config.Config // with which it has started
	Settings   *settings.Settings
	Approvals  *approvals.Approvals
	Pins       *pins.Pins
	Policies   *policies.Policies
	Background *background.Work
	Desk       *desks.Front
	Cluster    Cluster       // nil without one
	URL        func() string // for clients over HTTP; "" without
	// Running says that the gateway was not started for only one command.
	Running bool
}

// Operations adds those of the overview to a table.
func (o *Overview) Operations(t operation.Table) {
	operation.AddPlain(t, Show, func(context.Context) (*Status, error) {
		s := o.Status()
		s.Running = o.Running
		return s, nil
	})
}

// Status is the state of a gateway.
type Status struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
	Metrics string `json:"metrics,omitempty"` // URL; absent if there are none
	Console string `json:"console,omitempty"` // URL; absent if there is none
	// Shipping says, for each target of the audit log, how far it has been sent.
	Shipping []background.Shipping `json:"shipping,omitempty"`
	Config   string                `json:"config,omitempty"`
	Read     time.Time             `json:"config_read"` // when the configuration in use was read
	Grants   string                `json:"grants"`
	Audit    string                `json:"audit"`
	Policy   string                `json:"policy_revision"`
	Running  bool                  `json:"running"` // false if it was started for only one command
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
	// Broken are the tools with calls that their input schema refused.
	Broken []status.BrokenInput `json:"refused_by_schema,omitempty"`
	// Altered are the tools whose results the sanitizer changes often.
	Altered []altered.Tool `json:"often_changed,omitempty"`

	// OwnProcesses are the servers that run one process for each client because the configuration does
	// not choose.
	OwnProcesses []string `json:"own_processes,omitempty"`

	Replays string `json:"replays,omitempty"` // the recording that calls are answered from

	Bundles []policyfiles.BundleStatus `json:"bundles,omitempty"` // of the policy
	Shadow  *policies.ShadowStatus     `json:"shadow,omitempty"`  // the policy that is compared with it
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

// Status returns the state of the gateway.
func (o *Overview) Status() *Status {
	s := &Status{
		PID: os.Getpid(), Version: product.Version(), URL: o.URL(), Console: o.Desk.URL(), Config: o.Start.File, Replays: o.Start.Replay.File,
		Grants: o.Policies.Files().Grants, Audit: o.Start.Audit.Path, Policy: o.Gateway.Operator().Policy().Revision(),
		Conflicts: o.Gateway.Fleet().Conflicts(), Modules: o.Gateway.Modules(),
		Read: o.Settings.Read(), Servers: o.Pins.Describe(o.Gateway.Fleet().Status()), Approvals: o.Approvals.Waiting(),
		Broken: o.Gateway.Operator().BrokenInputs(), Altered: o.Background.Altered.Often(o.Gateway.Fleet().KnownFeatures(gate.FeatureTool), o.Gateway.Operator().Policy()),
	}
	s.OwnProcesses = ownByDefault(o.Settings.Config())
	o.countJobs(s)
	others := o.Background.State()
	s.Metrics, s.Shipping, s.Problems = others.Metrics, others.Shipping, append(s.Problems, others.Problems...)
	if words := paused.Words(o.Gateway.Operator().Paused()); words != "" {
		s.Paused = o.Gateway.Operator().Paused()
		s.Problems = append(s.Problems, fmt.Sprintf("paused: %s: new calls are refused; `%s` lets them pass again", words, paused.Resume(s.Paused)))
	}
	if o.Cluster != nil {
		s.Nodes = o.Cluster.Nodes()
		if err := o.Cluster.Problem(); err != nil {
			s.Problems = append(s.Problems, err.Error())
		}
	}
	if s.BreakGlass = o.Approvals.Broken(); !s.BreakGlass.IsZero() {
		s.Problems = append(s.Problems, fmt.Sprintf("break-glass until %s: the operator answers any question; `wasmgate auth break-glass --end` ends it", s.BreakGlass.Format(time.TimeOnly)))
	}
	if o.Start.Dev != "" {
		s.Problems = append(s.Problems, fmt.Sprintf("development: %s is run whatever its file holds, and its tools are pinned by their definitions alone; `wasmgate serve` holds the file against its pins", o.Start.Dev))
	}
	if err := o.Gateway.Operator().Healthy(); err != nil {
		s.Problems = append(s.Problems, "audit log: "+err.Error()+"; all calls are refused")
	} else if w := o.Gateway.Operator().AuditWarning(); w != "" {
		s.Problems = append(s.Problems, "audit log: "+w)
	}
	if err := o.Policies.Problem(); err != nil {
		s.Problems = append(s.Problems, "policy: "+err.Error()+"; the last good one is in use")
	}
	engine, names := o.Gateway.Operator().Policy(), naming.Policy(o.Settings.Config(), o.Gateway.Fleet().KnownFeatures(gate.FeatureTool))
	for _, p := range slices.Concat(policy.IdleAsks(engine), policy.Doubts(engine), policy.Unconfigured(engine, names)) {
		s.Problems = append(s.Problems, "policy: "+p.String())
	}
	s.Bundles = o.Policies.Bundles()
	for _, b := range s.Bundles {
		if b.Error != "" {
			s.Problems = append(s.Problems, "policy: "+b.Error+"; the last good one is in use")
		}
	}
	if s.Shadow = o.Policies.Shadow(); s.Shadow != nil {
		if s.Shadow.Error != "" {
			s.Problems = append(s.Problems, s.Shadow.Error)
		}
		if n := s.Shadow.Dropped; n > 0 {
			s.Problems = append(s.Problems, fmt.Sprintf("shadow policy: %d calls came faster than it decides, and were not compared", n))
		}
	}
	if err := o.Pins.Problem(); err != nil {
		s.Problems = append(s.Problems, "pins: "+err.Error()+"; the last good lockfile is in use")
	}
	if err := o.Gateway.Operator().Sessions().Problem(); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	for _, why := range o.Gateway.Operator().Ready() {
		if why.Part == "servers" {
			s.Problems = append(s.Problems, "not ready: "+why.Why)
		}
	}
	s.Problems = append(s.Problems, o.Policies.IdleLabels()...)
	for _, p := range policies.RelayWarnings(context.Background(), o.Settings.Config(), o.Gateway.Operator().Policy()) {
		s.Problems = append(s.Problems, p.Message)
	}
	if w := OpenState(o.Start.State); w != "" {
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
	s.Problems = append(s.Problems, o.Settings.Problems()...)
	return s
}

// OpenState says that others can reach what is in a state folder; "" if they cannot.
func OpenState(folder string) string {
	info, err := os.Stat(folder)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o007 == 0 {
		return ""
	}
	return fmt.Sprintf("state: other users can open the folder %s (mode %03o). Run: chmod 700 %s", folder, info.Mode().Perm(), folder)
}

func leftOut(m status.Module) string {
	return fmt.Sprintf("module %s: %s; it is not run, and its tools are not offered", m.Module, m.Error)
}

// countJobs adds to a status how many jobs there are.
func (o *Overview) countJobs(s *Status) {
	counts, err := o.Gateway.Operator().Jobs()
	if err != nil {
		s.Problems = append(s.Problems, "jobs: "+err.Error())
	}
	s.Jobs = counts
}

// ownByDefault names the servers that run one process for each client because the configuration does
// not choose.
func ownByDefault(cfg *config.Config) (names []string) {
	for _, s := range cfg.Servers {
		if s.OwnByDefault() {
			names = append(names, s.ID)
		}
	}
	return names
}
