package wasi

import (
	"sync"
	"time"
)

// nameCost is what a new name (file, directory, link) counts as written:
// a block, which is about what it takes on the disk. It bounds how many
// files a call can make.
const nameCost = 4096

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

// give counts bytes that were taken away, in a change.
func (u *Usage) give(bytes int64) { u.Added = max(0, u.Added-bytes) }
