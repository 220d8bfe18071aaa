package wasi

import (
	"os"
	"path/filepath"
	"strings"
)

// A Dir is a directory of the host that a guest may use. It is shared by calls: the opener of Root
// closes it, after the last of them.
type Dir struct {
	Path  string   // what the guest calls it
	Write bool     // else nothing below it can be changed
	Root  *os.Root // opened by an absolute path, which Ask gets; nil leaves the descriptor closed
	Usage *Usage   // shared by all calls that share what they may add; nil is that of the call alone
}

// A grant is a granted directory, as one call has it.
type grant struct {
	*Dir
	usage  *Usage
	opened bool
	folder folder
}

// open opens the directory, before anything is reached in it. If somebody has
// put another in its place, the name that is asked about would not be its own.
func (g *grant) open() errno {
	if g.opened {
		return success
	}
	f, err := openFolder(g.Root)
	if err != nil {
		return errnoOf(err)
	}
	is, err := f.lstat(".")
	if err == nil {
		var there *info
		if there, err = statPath(g.Root.Name()); err == nil && is.same(there) {
			g.folder, g.opened = f, true
			return success
		}
	}
	f.close()
	return errStale
}

// A place is a name below a granted directory, without symbolic links or dots;
// "" is the directory itself.
type place struct {
	grant *grant
	rel   string
}

// host is the place's path on the host.
func (l place) host() string {
	return filepath.Join(l.grant.Root.Name(), filepath.FromSlash(l.rel))
}

// base is what the place is called in the folder that it is in.
func (l place) base() string {
	if l.rel == "" {
		return "."
	}
	return l.rel[strings.LastIndexByte(l.rel, '/')+1:]
}
