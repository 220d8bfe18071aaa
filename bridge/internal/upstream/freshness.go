package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Refresh has the server listed anew if its listing must not be kept, and reports whether
// it must not.
func (ls *listed) Refresh() bool {
	l := ls.connection()
	return l != nil && l.Refresh()
}

// RefreshSkills has the server listed anew if its skills were listed some time ago, and reports
// whether they were.
func (ls *listed) RefreshSkills() bool {
	l := ls.connection()
	if l == nil || !ls.reader.stale() {
		return false
	}
	l.ListsChanged()
	return true
}

// Relist has the server listed again, after the way in which its listing is sanitized has changed.
func (ls *listed) Relist() error {
	if l := ls.connection(); l != nil {
		l.ListsChanged()
	}
	return nil
}

// Fresh returns for how much longer what the server lists of a feature can be kept. It is
// false of a server that says how long, and does not list the feature.
func (ls *listed) Fresh(one gate.Feature) (left time.Duration, lists bool) {
	l := ls.connection()
	if l == nil {
		return 0, true
	}
	return l.Fresh(one)
}

// Announced reports whether the server has announced what is not listed yet.
func (ls *listed) Announced() bool {
	l := ls.connection()
	return l != nil && l.Announced()
}

// Relisted waits, within ctx, until what the server has announced so far is listed:
// a call is made of the definition that the server has now, not of the one that it
// had until it said otherwise.
func (ls *listed) Relisted(ctx context.Context) {
	if l := ls.connection(); l != nil {
		l.Relisted(ctx)
	}
}
