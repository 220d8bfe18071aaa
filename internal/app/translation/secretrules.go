package translation

import (
	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/secrets"
)

// secretRules puts what a file says of secrets into the words of a gateway.
func secretRules(from config.Secrets) clean.SecretRules {
	to := clean.SecretRules{
		Arguments: gate.Treatment(from.Arguments), Results: gate.Treatment(from.Results),
		Skip: from.Skip, Report: from.Report, Checked: from.Checked,
	}
	for _, r := range from.Tools {
		to.Tools = append(to.Tools, clean.SecretRule{Pattern: r.Pattern, Arguments: gate.Treatment(r.Arguments), Results: gate.Treatment(r.Results)})
	}
	for _, r := range from.Rules {
		to.Rules = append(to.Rules, secrets.Rule(r))
	}
	for _, a := range from.Allow {
		to.Allow = append(to.Allow, secrets.Allow(a))
	}
	return to
}
