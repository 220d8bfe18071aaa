package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// MaxDifferences bounds the differences in a comparison.
const MaxDifferences = 200

// A Comparison has the decisions of a policy on recorded calls, next to the recorded decisions.
type Comparison struct {
	Revision string `json:"policy_revision"` // of the policy that decides now
	Calls    int    `json:"calls"`           // that were read
	Decided  int    `json:"decided"`
	Unknown  int    `json:"unknown"` // calls that could not be decided, because the log lacks something
	Looser   int    `json:"looser"`  // would pass that did not
	Stricter int    `json:"stricter"`
	// Differences are the first of them, at most [MaxDifferences].
	Differences []Difference `json:"differences"`
	Missing     []string     `json:"missing"` // what is lacking of calls that are unknown
	Part        bool         `json:"part"`    // there are more calls than were read
}

// A Difference is a call that would be decided otherwise.
type Difference struct {
	Call      string            `json:"call"`
	Tool      string            `json:"tool"`
	Principal string            `json:"principal"`
	Before    gate.Effect       `json:"before"`
	Effect    gate.Effect       `json:"effect"`
	Reasons   []string          `json:"reasons"`
	Rules     []study.Explained `json:"rules"` // that decide now; none: nothing allows it
}

// Replayed returns how recorded sessions are put before a policy.
func Replayed() study.ReplayOptions {
	return study.ReplayOptions{
		Sessions: func() gate.Sessions { return session.New(session.Options{}) },
		Input:    InputSchema, Structure: structure.Of, Echoes: new(provenance.Echoes),
	}
}

// Compare evaluates a policy on the sessions of a log. It calls told with its progress after each
// session; told has to copy what it keeps. If there is an error, the result has what was found until
// then.
func Compare(ctx context.Context, engine *policy.Engine, log Log, told func(done Comparison, all int)) (Comparison, error) {
	c := Comparison{Revision: engine.Revision(), Differences: []Difference{}, Missing: []string{}}
	var sessions []Session
	all := 0
	for s, err := range log.Sessions(ctx) {
		if err != nil {
			return c, fmt.Errorf("%s: %w", log.File, err)
		}
		sessions, all, c.Part = append(sessions, s), all+len(s.Calls), s.Part
	}
	o, count, missing := Replayed(), make(Tally), make(map[string]bool)
	o.Rules = true
	for _, s := range sessions {
		r, err := study.Replay(ctx, engine, o, s.RecordedSession)
		if err != nil {
			return c, errors.Join(ctx.Err(), err)
		}
		count.Add(r)
		n := count.At("", "")
		c.Calls, c.Decided, c.Unknown, c.Looser, c.Stricter = n.Calls, n.Calls-n.Unknown, n.Unknown, n.Looser, n.Stricter
		for i, d := range r.Decisions {
			if d.Effect == "" {
				for _, why := range d.Reasons {
					if !missing[why] && len(missing) < 10 {
						missing[why], c.Missing = true, append(c.Missing, why)
					}
				}
			} else if d.Effect != d.Before && len(c.Differences) < MaxDifferences {
				c.Differences = append(c.Differences, Difference{s.IDs[i], d.Tool, match.Name(s.Who.Tenant, s.Who.ID), d.Before, d.Effect, d.Reasons, d.Rules})
			}
		}
		told(c, all)
	}
	return c, nil
}
