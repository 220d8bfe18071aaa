//go:build !linux && !darwin

package wasi

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A folder is an open directory of the host. What is done in it is done by a
// single name. On Windows, where a directory cannot be renamed while one below
// it is open, the folders on a guest's way stay where they are meanwhile.
type folder struct {
	root  *os.Root
	grant *os.Root
	rel   string // below the grant
	owned bool   // root is to be closed
}

func openFolder(root *os.Root) (folder, error) { return folder{root: root, grant: root}, nil }

func (f folder) enter(name string) (folder, error) {
	root, err := f.root.OpenRoot(name)
	return folder{root, f.grant, f.below(name), true}, err
}

func (f folder) below(name string) string { return filepath.Join(f.rel, name) }

func (f folder) open(name string, mode int) (*os.File, *info, error) {
	file, err := f.root.OpenFile(name, mode, newFile)
	if err != nil {
		return nil, nil, err
	}
	i, err := stat(file)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, i, nil
}

func (f folder) lstat(name string) (*info, error) { return described(f.root.Lstat(name)) }

func (f folder) readlink(name string) (string, error) { return f.root.Readlink(name) }

func (f folder) mkdir(name string) error { return f.root.Mkdir(name, newDirectory) }

func (f folder) symlink(to, name string) error {
	return f.root.Symlink(filepath.FromSlash(to), name)
}

func (f folder) link(name string, to folder, newName string) error {
	return f.grant.Link(f.below(name), to.below(newName))
}

func (f folder) rename(name string, to folder, newName string) error {
	if there, err := to.lstat(newName); err == nil && there.kind == typeDirectory { // os.Root replaces none
		if err := to.root.Remove(newName); err != nil {
			return err
		}
	}
	return f.grant.Rename(f.below(name), to.below(newName))
}

func (f folder) remove(name string, _ bool) error { return f.root.Remove(name) }

func (f folder) setTimes(name string, accessed, modified int64) error {
	return f.root.Chtimes(name, time.Unix(0, accessed), time.Unix(0, modified))
}

func (f folder) close() error {
	if !f.owned {
		return nil
	}
	return f.root.Close()
}

func stat(f *os.File) (*info, error) { return described(f.Stat()) }

func statPath(name string) (*info, error) { return described(os.Stat(name)) }

// identity is what os.SameFile compares. Device and inode 0 mean unknown.
type identity struct {
	fs.FileInfo
	device, inode uint64
}

func (i *info) same(other *info) bool { return os.SameFile(i.FileInfo, other.FileInfo) }

func described(i fs.FileInfo, err error) (*info, error) {
	if err != nil {
		return nil, err
	}
	modified := i.ModTime().UnixNano()
	return &info{
		kind: kindOf(i.Mode()), size: i.Size(), links: 1,
		accessed: modified, modified: modified, changed: modified, identity: identity{FileInfo: i},
	}, nil
}

func kindOf(mode fs.FileMode) filetype {
	switch mode.Type() {
	case 0:
		return typeRegular
	case fs.ModeDir:
		return typeDirectory
	case fs.ModeSymlink:
		return typeLink
	case fs.ModeSocket:
		return typeSocket
	}
	return typeUnknown
}

// entriesOf reads up to n more entries of an open directory.
func entriesOf(f *os.File, n int) ([]entry, error) {
	some, err := f.ReadDir(n)
	entries := make([]entry, 0, len(some))
	for _, s := range some {
		entries = append(entries, entry{name: s.Name(), kind: kindOf(s.Type())})
	}
	return entries, err
}
