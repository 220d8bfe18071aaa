package wasi

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

const (
	// maxCounted is how many entries of a directory are counted when it seems full.
	maxCounted = 100_000
	// countAgain is how often that may be.
	countAgain = time.Minute
)

var errMany = errors.New("more entries than are counted")

// A Usage is how many bytes guests have added to a directory: calls that share it share what they
// may add. Bytes that guests remove or cut off count no more; bytes that others remove are found
// out when there seems to be no room left. The zero Usage is nothing. Its functions are called one
// at a time, may be nil, and must not use the Usage.
type Usage struct {
	// Added is how many bytes there are, before the first call; afterwards Changed gets their
	// number.
	Added int64
	// Changed is called with how many bytes there are now.
	Changed func(bytes int64)
	// Full is called with the limit when a guest may not add what it wants to.
	Full func(limit int64)

	mu      sync.Mutex // held while something is added or taken away
	counted time.Time  // when the directory was last looked at as a whole
}

// change begins a change of what is in the directory; what it returns ends it.
func (u *Usage) change() func() {
	u.mu.Lock()
	before := u.Added
	return func() {
		if u.Added != before && u.Changed != nil {
			u.Changed(u.Added)
		}
		u.mu.Unlock()
	}
}

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

// give counts bytes that were taken away, in a change.
func (u *Usage) give(bytes int64) { u.Added = max(0, u.Added-bytes) }

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
