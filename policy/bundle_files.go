package policy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

const (
	// MaxBundle is how many bytes an archive may have: policies have kilobytes, and
	// their data a few megabytes.
	MaxBundle = 16 << 20
	// maxUnpacked bounds all files of a bundle together, in bytes, and what an archive
	// unpacks to: data compresses to a tenth, and a bomb to a thousandth.
	maxUnpacked = 64 << 20
)

// files are those of a bundle, in the order of their names, which differ.
type files []file

type file struct {
	name string // with slashes, without one at its beginning
	data []byte
}

// unpack reads an archive.
func unpack(archive []byte) (files, error) {
	if len(archive) > MaxBundle {
		return nil, fmt.Errorf("it has more than %d bytes", MaxBundle)
	}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("it is no archive of tar and gzip: %w", err)
	}
	bounded := &bound{r: z, left: maxUnpacked}
	t := tar.NewReader(bounded)
	all := keep{left: maxUnpacked}
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			// The sum at the end of the compressed data is yet to be looked at.
			if _, err := io.Copy(io.Discard, bounded); err != nil {
				return nil, fmt.Errorf("unpack: %w", err)
			}
			return all.sorted()
		case err != nil:
			return nil, fmt.Errorf("unpack: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			return nil, fmt.Errorf("%q is a link or a device; a bundle has only files", h.Name)
		}
		// OPA writes names that begin with a slash: the root is the bundle's.
		name := strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "/")
		if err := all.add(name, t); err != nil {
			return nil, err
		}
	}
}

// bound reads at most so many bytes, and then fails rather than ends.
type bound struct {
	r    io.Reader
	left int64
}

func (b *bound) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	}
	return n, err
}

// collect reads the files of a tree.
func collect(fsys fs.FS) (files, error) {
	all := keep{left: maxUnpacked}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%q is a link or a device; a bundle has only files", name)
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return all.add(name, f)
	})
	if err != nil {
		return nil, err
	}
	return all.sorted()
}

// keep collects files, so many bytes of them.
type keep struct {
	files files
	left  int64
}

func (k *keep) add(name string, r io.Reader) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == ':' }) {
		return fmt.Errorf("%q is the name of no file in a bundle", name)
	}
	if len(k.files) == maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	data, err := io.ReadAll(io.LimitReader(r, k.left+1)) // what is sparse is small in an archive
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if k.left -= int64(len(data)); k.left < 0 {
		return fmt.Errorf("its files have more than %d bytes", maxUnpacked)
	}
	if path.Ext(name) == ".rego" && len(data) > maxFile {
		return fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	k.files = append(k.files, file{name, data})
	return nil
}

// sorted returns the files in the order of their names.
func (k *keep) sorted() (files, error) {
	slices.SortFunc(k.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(k.files); i++ {
		if k.files[i].name == k.files[i-1].name {
			return nil, fmt.Errorf("it has %s twice", k.files[i].name)
		}
	}
	return k.files, nil
}

// signed reports whether there are signatures.
func (f files) signed() bool {
	return slices.ContainsFunc(f, func(f file) bool { return bundle.IsSignaturesFile(f.name) })
}

// digest is a hash of names and content.
func (f files) digest() string {
	var list strings.Builder
	for _, one := range f {
		fmt.Fprintf(&list, "%q %s\n", one.name, hash(one.data))
	}
	return hash([]byte(list.String()))
}

// pack is the inverse of unpack.
func (f files) pack() ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, one := range f {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: one.name, Size: int64(len(one.data)), Mode: 0o600}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(one.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
