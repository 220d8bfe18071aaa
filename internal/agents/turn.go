package agents

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// maxWritten bounds how many texts are kept that a model wrote into arguments. With more,
// none of its session's prompts vouches any more.
const maxWritten = 1 << 14

// turn distinguishes prompts of a user from those of the model. The model can make the agent take up
// its own words, and an agent announces both as a prompt.
type turn struct {
	open       bool // a prompt came, and the agent has not said that it is done with it
	background bool // the agent goes on with something outside of turns
	scheduled  []string
	written    map[[16]byte]struct{}
	tooMany    bool
	// cut is when the agent last said that it is done although it had not reported the result of a
	// call. A call that goes on and forges this must gain nothing by it.
	cut time.Time
}

// cutTime is how long a call may go on after it was cut: agents' shells end theirs in that time.
const cutTime = 10 * time.Minute

// wrote keeps the texts in arguments: the model has written all of them.
func (t *turn) wrote(args gate.Doc) {
	if t.written == nil {
		t.written = make(map[[16]byte]struct{})
	}
	eachString(args, func(s string) {
		if len(t.written) >= maxWritten {
			t.tooMany = true
			return
		}
		t.written[mark(s)] = struct{}{}
	})
}

func mark(s string) [16]byte {
	sum := sha256.Sum256([]byte(strings.TrimSpace(s)))
	return [16]byte(sum[:])
}

func eachString(d gate.Doc, f func(string)) {
	switch d.Kind() {
	case doc.String:
		f(d.Text())
	case doc.Array:
		for e := range d.Elements() {
			eachString(e, f)
		}
	case doc.Object:
		for _, v := range d.Members() {
			eachString(v, f)
		}
	}
}

// doubt says why a prompt may not be the user's own words, "" if nothing speaks against it.
// Agents.mu is held.
func (a *Agents) doubt(s *session, e event, r options.Agent) string {
	switch {
	case e.subagent != "":
		return "it is a subagent's"
	case e.headless && !r.TrustHeadless:
		return "nobody sits at the agent"
	case s.open:
		return "the turn before it has not ended"
	case s.underWay():
		return "a call of the agent runs"
	case s.background:
		return "the agent goes on with something beside it"
	case s.tooMany, slices.ContainsFunc(s.scheduled, func(p string) bool { return mark(p) == mark(e.prompt) }), a.wrote(s.owner, e.prompt):
		return "the model may have written it"
	default:
		return ""
	}
}

// underWay reports whether a call of the session runs, or may still run.
func (s *session) underWay() bool { return len(s.calls) > 0 || time.Since(s.cut) < cutTime }

// wrote reports whether a model has written a text into arguments, in any session of an
// owner: subagents can have sessions of their own.
func (a *Agents) wrote(owner gate.Owner, text string) bool {
	its := mark(text)
	if a.past[owner].has(its) {
		return true
	}
	for _, s := range a.sessions {
		if _, ok := s.written[its]; ok && s.owner == owner {
			return true
		}
	}
	return false
}

// fileInPrompt finds @path and @server:uri in a prompt, which agents read before the model
// sees it.
var fileInPrompt = regexp.MustCompile(`(^|\s)@\S`)

// prompt learns what a user says, if it is the user who says it. It never blocks a prompt: a doubtful
// one only vouches for nothing.
func (a *Agents) prompt(ctx context.Context, s *session, e event, r options.Agent) error {
	a.mu.Lock()
	doubt := a.doubt(s, e, r)
	s.open = true
	a.mu.Unlock()
	a.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "prompt", slog.String("agent", s.agent), slog.String("session", s.key.ID),
		slog.String("digest", digest(e.prompt)), slog.String("untrusted", doubt))
	if doubt == "" && a.cfg.Tracks() {
		l := gate.Lesson{Call: gate.NewID(), From: text(e.prompt), Source: provenance.FromPrompt}
		if err := a.cfg.Learn(ctx, s.key, l); err != nil {
			return err
		}
	}
	if fileInPrompt.MatchString(e.prompt) {
		return a.teach(ctx, s.place, readTool[s.agent], gate.MustDoc("{}"))
	}
	return nil
}

// stopped handles the end of a turn: an own call without a result was not carried out, and a call
// that never came to this gateway may have gone to another server of its name.
func (a *Agents) stopped(ctx context.Context, s *session, e event) error {
	return a.teachUnmade(ctx, s, a.stop(s, e))
}

// stop returns the calls that were announced for this gateway, and that it never got.
func (a *Agents) stop(s *session, e event) []note {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.open, s.background = false, e.background
	s.scheduled = append(s.scheduled, e.scheduled...)
	if len(s.scheduled) > maxNotes {
		s.tooMany = true
		s.scheduled = nil
	}
	if e.background || e.subagent != "" {
		return nil
	}
	s.cutCalls()
	return s.unmade()
}

// cutCalls ends what has told no result. Agents.mu is held.
func (s *session) cutCalls() {
	if len(s.calls) > 0 {
		s.cut = time.Now()
	}
	for _, r := range s.calls {
		r.cancel()
	}
}
