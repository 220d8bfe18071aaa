package wasi

import (
	"errors"
	"io/fs"
	"time"
)

const (
	// maxCounted is how many entries of a directory are counted when it seems full.
	maxCounted = 100_000
	// countAgain is how often that may be.
	countAgain = time.Minute

	defaultMaxWritten = 64 << 20
)

var errMany = errors.New("more entries than are counted")

// claim counts bytes that are about to be added, in a change.
func (p *Process) claim(g *grant, bytes int64) errno {
	if bytes <= 0 { // also where there is more than the limit by now
		return success
	}
	limit := p.MaxWritten
	if limit == 0 {
		limit = defaultMaxWritten
	}
	u := g.usage
	// A count does not find what is removed and still open.
	if bytes > limit-u.Added && time.Since(u.counted) > countAgain && !held.nameless(g.Root.Name()) {
		u.counted = time.Now()
		u.Added = min(u.Added, p.count(g, u.Added))
	}
	if bytes > limit-u.Added {
		if u.Full != nil {
			u.Full(limit)
		}
		return errQuota
	}
	u.Added += bytes
	return success
}

func (p *Process) claimName(t target) errno {
	defer t.grant.usage.change()()
	return p.claim(t.grant, nameCost)
}

// count returns how many bytes are in a directory, or most if it cannot tell.
func (p *Process) count(g *grant, most int64) int64 {
	var bytes, entries int64
	err := fs.WalkDir(g.Root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		p.charge(callCost)
		if err != nil {
			return err
		}
		if entries++; entries > maxCounted {
			return errMany
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if bytes += nameCost; info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		return most
	}
	return bytes
}
