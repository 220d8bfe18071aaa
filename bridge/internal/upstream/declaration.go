package upstream

import (
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/gate"
)

// addFeatures adds what is declared besides tools; more is nil if that is nothing.
func addFeatures(d *status.Declaration, more *listing.Features) {
	if more != nil {
		d.Prompts, d.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureTemplate]
		d.Pages, d.Skills = more.Declared[gate.FeaturePage], more.Declared[gate.FeatureSkill]
	}
}
