package overview

import (
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

// Gauges are what the gateway is at the moment.
func (o *Overview) Gauges() []telemetry.Metric {
	g := o.Gateway
	all := []telemetry.Metric{
		{Name: "wasmgate.build.info", Help: "The version of the gateway; always 1.", Labels: []string{"version"}, Points: telemetry.One(1, product.Version())},
		{Name: "wasmgate.policy.info", Help: "The policy in use; always 1.", Labels: []string{"revision"}, Points: telemetry.One(1, g.Operator().Policy().Revision())},
		telemetry.NewGauge("wasmgate.policy.failed", "Whether the policy in the files has an error, so that an earlier one is in use.", "", telemetry.Truth(o.Policies.Problem() != nil)),
		telemetry.NewGauge("wasmgate.config.failed", "Whether the configuration in the files has an error, so that an earlier one is in use.", "", telemetry.Truth(o.Settings.Failed())),
		telemetry.NewGauge("wasmgate.bundles.failed", "Policy bundles that cannot be read, or whose newest version cannot be used.", "{bundle}", float64(o.failedBundles())),
		telemetry.NewGauge("wasmgate.healthy", "Whether calls can pass.", "", telemetry.Truth(g.Operator().Healthy() == nil)),
		telemetry.NewGauge("wasmgate.ready", "Whether a load balancer should send clients here: calls can pass, and all required servers are ready.", "", telemetry.Truth(len(g.Operator().Ready()) == 0)),
		telemetry.NewGauge("wasmgate.paused", "Servers that are paused. A pause of everything counts as one.", "{server}", float64(len(g.Operator().Paused()))),
		telemetry.NewGauge("wasmgate.approvals.pending", "Calls that need approval now.", "{call}", float64(o.Approvals.Waiting())),
		telemetry.NewGauge("wasmgate.sessions", "Sessions that the gateway keeps labels of.", "{session}", float64(len(g.Operator().Sessions().List()))),
	}
	all = append(all, telemetry.Places(g.Operator().Places())...)
	if jobs, err := g.Operator().Jobs(); err == nil {
		all = append(all, telemetry.Metric{
			Name: "wasmgate.jobs", Help: "Jobs and tasks.", Unit: "{job}", Labels: []string{"state"},
			Points: append(telemetry.One(float64(jobs.Running), "running"), telemetry.One(float64(jobs.Kept), "kept")...),
		})
	}
	if s := g.Operator().Shadow(); s != nil {
		all = append(all, telemetry.Metric{
			Name: "wasmgate.shadow.decisions", Help: "Calls on which the shadow policy decided, or would have.", Unit: "{call}", Kind: telemetry.Counter, Labels: []string{"result"},
			Points: append(telemetry.One(float64(s.Compared-s.Differed), "same"), append(telemetry.One(float64(s.Differed), "different"), telemetry.One(float64(s.Dropped), "dropped")...)...),
		})
	}
	if o.Cluster != nil {
		all = append(all, o.Cluster.Metrics()...)
	}
	return append(all, o.serverGauges()...)
}

// serverGauges tell of each server.
func (o *Overview) serverGauges() []telemetry.Metric {
	gauge := func(name, help, unit string) telemetry.Metric {
		return telemetry.Metric{Name: name, Help: help, Unit: unit, Labels: []string{"wasmgate.server"}}
	}
	up := gauge("wasmgate.server.up", "Whether a server is ready.", "")
	open := gauge("wasmgate.server.circuit_open", "Whether a server has failed so often that calls are refused at once.", "")
	tools := gauge("wasmgate.server.tools", "Tools that a server has.", "{tool}")
	quarantined := gauge("wasmgate.quarantined", "Definitions of a server that need approval.", "{definition}")
	for _, s := range o.Pins.Describe(o.Gateway.Fleet().Status()) {
		tools.Points = append(tools.Points, telemetry.One(float64(s.Tools), s.Server)...)
		quarantined.Points = append(quarantined.Points, telemetry.One(float64(len(s.Quarantined)), s.Server)...)
		if s.Local {
			continue
		}
		up.Points = append(up.Points, telemetry.One(telemetry.Truth(s.Phase == status.Ready), s.Server)...)
		open.Points = append(open.Points, telemetry.One(telemetry.Truth(s.Circuit != ""), s.Server)...)
	}
	return []telemetry.Metric{up, open, tools, quarantined}
}

func (o *Overview) failedBundles() (n int) {
	for _, one := range o.Policies.Bundles() {
		if one.Error != "" {
			n++
		}
	}
	return n
}
