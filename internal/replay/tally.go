package replay

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Tally counts decisions by tool and principal.
type Tally map[[2]string]*Counts

// Counts are those of one tool and principal, or of all.
type Counts struct {
	Sessions, Calls, Allow, Ask, Deny, Unknown int
	Undefined, Unrecorded                      int // of the unknown, by what they depend on
	Looser, Stricter, Compared                 int // of those that were decided before
}

// At returns the counts of one tool and principal; those of "" and "" are of all.
func (t Tally) At(tool, principal string) *Counts {
	k := [2]string{tool, principal}
	if t[k] == nil {
		t[k] = new(Counts)
	}
	return t[k]
}

// Add counts the decisions of a session.
func (t Tally) Add(s study.ReplayedSession) {
	t.At("", "").Sessions++
	for _, d := range s.Decisions {
		for _, n := range []*Counts{t.At(d.Tool, s.Principal), t.At("", "")} {
			n.add(d)
		}
	}
}

func (n *Counts) add(d study.ReplayedCall) {
	n.Calls++
	switch d.Effect {
	case gate.Allow:
		n.Allow++
	case gate.Ask:
		n.Ask++
	case gate.Deny:
		n.Deny++
	default:
		n.Unknown++
		if slices.Contains(d.Reasons, undefined) {
			n.Undefined++
		}
		if slices.Contains(d.Reasons, unrecordedArguments) {
			n.Unrecorded++
		}
		return
	}
	if d.Before == "" {
		return
	}
	n.Compared++
	switch {
	case d.Effect == gate.Allow && d.Before != gate.Allow:
		n.Looser++
	case d.Effect != gate.Allow && d.Before == gate.Allow:
		n.Stricter++
	}
}
