package obligation

import (
	"slices"
	"strings"
	"time"
)

// A Narrowing is the obligation that a tool uses, for one call, no more than this of what was
// granted: a sandboxed one of what its module was, and one of a server with a login of the scopes
// of that. It never widens what was granted. The zero Narrowing narrows nothing.
//
// The gate refuses a call of any other tool under it, because no one could meet it.
type Narrowing struct {
	// HTTP, Dirs and Secrets are what is left; nil leaves all, an empty list
	// nothing. Origins are scheme://host[:port] as RFC 6454, section 6.2, writes
	// them: in lower case and without the scheme's own port. Directories are
	// absolute, clean and written with /.
	HTTP, Dirs, Secrets []string
	NoKV                bool
	Fuel                uint64        // instructions at most; zero leaves the limit
	Timeout             time.Duration // at most; zero leaves the limit
	// Scopes are what is left of the login at the tool's server: see gate.Tool. TTL is
	// for how long a token with these alone is used; zero is as long as it holds.
	Scopes []string
	TTL    time.Duration
}

func (Narrowing) obligation() {}

// Nothing leaves nothing.
var Nothing = Narrowing{HTTP: []string{}, Dirs: []string{}, Secrets: []string{}, NoKV: true, Fuel: 1, Timeout: 1, Scopes: []string{}, TTL: 1}

// Intersect returns what both leave.
func (n Narrowing) Intersect(m Narrowing) Narrowing {
	return Narrowing{
		HTTP:    intersect(n.HTTP, m.HTTP, common),
		Dirs:    intersect(n.Dirs, m.Dirs, deeper),
		Secrets: intersect(n.Secrets, m.Secrets, common),
		NoKV:    n.NoKV || m.NoKV,
		Fuel:    least(n.Fuel, m.Fuel),
		Timeout: least(n.Timeout, m.Timeout),
		Scopes:  intersect(n.Scopes, m.Scopes, common),
		TTL:     least(n.TTL, m.TTL),
	}
}

// intersect returns what each pair of a and b has in common, sorted.
func intersect(a, b []string, both func(x, y string) (string, bool)) []string {
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		a = b
	case b == nil:
		b = a
	}
	left := []string{}
	for _, x := range a {
		for _, y := range b {
			if s, ok := both(x, y); ok {
				left = append(left, s)
			}
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

func common(x, y string) (string, bool) { return x, x == y }

// deeper returns the directory that lies in the other.
func deeper(x, y string) (string, bool) {
	switch {
	case within(x, y):
		return y, true
	case within(y, x):
		return x, true
	}
	return "", false
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// least returns the smaller of two bounds, where zero means none.
func least[T uint64 | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Origin reports whether requests to an origin are left.
func (n Narrowing) Origin(origin string) bool {
	return n.HTTP == nil || slices.Contains(n.HTTP, origin)
}

// Secret reports whether a secret is left.
func (n Narrowing) Secret(name string) bool {
	return n.Secrets == nil || slices.Contains(n.Secrets, name)
}

// Dir returns what is left of a granted directory: itself, directories below it, or nothing. It
// compares names only: code that opens the directories has to make sure that a link in one does not
// lead into another.
func (n Narrowing) Dir(dir string) []string { return intersect([]string{dir}, n.Dirs, deeper) }
