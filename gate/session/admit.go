package session

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// admit also returns which rise of labels has to be in the file.
func (t *table) admit(v gate.Session, c *gate.Call, labels gate.Labels) (gate.Session, uint64, error) {
	a := admission{v.Key, c.ID}
	l := lesson{call: c.ID, program: c.Program(), connection: c.Connected(), labels: v.Labels.Join(labels), top: v.Top}
	if now, rises, ok := t.admitKnown(v, a, l, c.Args); ok {
		return now, rises, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.view(key{SessionKey: v.Key})
	if !t.admitted.share(a).has(a) {
		if stale(v, now, c.Args) {
			return now, 0, gate.ErrStale
		}
		t.admitted.share(a).add(a)
	}
	// The session may have ended since it was viewed. The call was decided on
	// what it had read, and goes on with that.
	now = t.learn(v.Key, l)
	return now, t.rises, nil
}

// admitKnown admits a call that teaches its session nothing; it is false if that is not so,
// or not known.
func (t *table) admitKnown(v gate.Session, a admission, l lesson, args gate.Doc) (gate.Session, uint64, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	now, known := t.glance(v.Key)
	if !known || stale(v, now, args) || l.top && !now.Top || !now.Labels.Cover(l.labels) {
		return gate.Session{}, 0, false
	}
	t.admitted.share(a).add(a)
	return now, t.rises, true
}

// stale reports whether a session has read more than what was viewed, of what counts for a
// call with such arguments.
func stale(v, now gate.Session, args gate.Doc) bool {
	return now.Top && !v.Top || !v.Labels.Cover(now.Labels) || risen(v.Values, now.Values, args)
}

// risen reports whether an argument has been met in untrusted content between
// two states of a session.
func risen(before, now provenance.Provenance, args gate.Doc) bool {
	if before == now {
		return false
	}
	var old []provenance.Source
	for a := range before.Arguments(gate.Doc{}, args) {
		old = append(old, a.Source)
	}
	i := 0
	for a := range now.Arguments(gate.Doc{}, args) {
		if a.Source&^old[i]&provenance.FromUntrusted != 0 {
			return true
		}
		i++
	}
	return false
}
