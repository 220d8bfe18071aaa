package replay

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy/study"
)

// skillParts are the members of input.skill that no record holds.
var skillParts = []string{"file", "files", "bytes", "dynamic", "nested", "widens", "notes", "pinned", "trusted", "groups"}

// changedSkill is what is missing of the read of a skill that has changed since, or cannot be asked for.
const changedSkill = "the skill is not known as it was read"

// readsSkill reports whether a record is of a skill or of a file of one.
func (l *ledger) readsSkill(e audit.Entry) bool {
	switch {
	case l.definitions == nil:
		return false
	case e.Action == gate.ReadResource:
		return e.FileDigest != "" || skillOf(e, gate.FeatureResource) != nil
	default:
		return e.Action == gate.GetSkill || e.Action == gate.ReadDirectory
	}
}

// defineSkill completes the read of a skill by what the skill is.
func (l *ledger) defineSkill(c *study.RecordedCall, e audit.Entry) {
	t := &gate.Tool{Name: gate.ToolName{Server: e.Server}, Digest: e.ToolDigest, Teaches: gate.NewLabels(provenance.Untrusted)}
	known := l.definitions()[Key{e.Server, e.ToolDigest}]
	if known != nil && known.Skill != nil {
		*t = *known
		t.File = strings.TrimPrefix(e.Tool, strings.TrimSuffix(known.Skill.URI, skillFile))
	}
	t.Feature, t.Local, t.Offered = gate.FeatureSkill, e.Tool, e.Tool
	if e.Action == gate.ReadResource {
		t.Feature = gate.FeatureResource
	} else {
		t.File = ""
	}
	if t.Skill == nil {
		if t.Skill = skillOf(e, t.Feature); t.Skill == nil {
			t.Skill = new(gate.Skill)
			lacks(c, changedSkill, "skill.name")
		}
		if t.Skill.URI == "" {
			lacks(c, changedSkill, "skill.uri")
		}
		for _, part := range skillParts {
			lacks(c, changedSkill, "skill."+part)
		}
	}
	if e.Action == gate.ReadDirectory {
		lacks(c, "which folder was read is not recorded", "skill.file")
	}
	c.Definition = t
}
