package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// A tree is the files and folders of a package or a layer, by path. It has nothing of the machine that makes it: they
// belong to root and have the time of the commit.
type tree struct {
	created time.Time
	entries map[string]entry
	size    int // of all files
}

type entry struct {
	header tar.Header
	data   []byte
}

func newTree(created time.Time) *tree { return &tree{created: created, entries: map[string]entry{}} }

func (t *tree) put(name string, header tar.Header, data []byte) {
	if above := path.Dir(name); above != "." {
		if _, has := t.entries[above]; !has {
			t.folder(above, 0o755, 0)
		}
	}
	header.Name, header.ModTime, header.Size, header.Format = name, t.created, int64(len(data)), tar.FormatPAX
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	t.entries[name] = entry{header, data}
	t.size += len(data)
}

func (t *tree) folder(name string, mode int64, owner int) {
	t.put(name, tar.Header{Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner}, nil)
}

func (t *tree) file(name string, mode int64, data []byte) {
	t.put(name, tar.Header{Typeflag: tar.TypeReg, Mode: mode}, data)
}

// add adds all that a folder holds.
func (t *tree) add(folder string) error {
	return filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == folder {
			return err
		}
		name, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch mode := d.Type(); {
		case mode.IsDir():
			t.folder(name, 0o755, 0)
		case mode&fs.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if err != nil {
				return err
			}
			t.put(name, tar.Header{Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}, nil)
		case mode.IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			rights := int64(0o644)
			if info.Mode()&0o111 != 0 {
				rights = 0o755
			}
			t.file(name, rights, data)
		default:
			return fmt.Errorf("%s is neither a file, a folder nor a link", at)
		}
		return nil
	})
}

// packed returns the tree as a tar archive, packed and not. Sorted paths put a folder before what it holds.
func (t *tree) packed() (packed, plain []byte, err error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[name]
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return nil, nil, err
	}
	if _, err := z.Write(text.Bytes()); err != nil {
		return nil, nil, err
	}
	err = z.Close()
	return zipped.Bytes(), text.Bytes(), err
}
