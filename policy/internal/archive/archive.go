package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files/folder"
)

const (
	// MaxBytes is how many bytes an archive may have: policies have kilobytes, and
	// their data a few megabytes.
	MaxBytes = 16 << 20
	// MaxFile bounds a .rego file, in bytes: people write thousands, generators a megabyte.
	MaxFile = 4 << 20
	// MaxFiles is how many files there may be.
	MaxFiles = 10_000
	// MaxUnpacked bounds all files of a bundle together, in bytes, and what an archive
	// unpacks to: data compresses to a tenth, and a bomb to a thousandth.
	MaxUnpacked = 64 << 20
)

// Files are those of a bundle, in the order of their names, which differ.
type Files []File

// A File is one of them.
type File struct {
	Name string // with slashes, without one at its beginning
	Data []byte
}

// Unpack reads an archive.
func Unpack(archive []byte) (Files, error) {
	if len(archive) > MaxBytes {
		return nil, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("it is not an archive of tar and gzip: %w", err)
	}
	bounded := &bound{r: z, left: MaxUnpacked}
	t := tar.NewReader(bounded)
	all := keep{left: MaxUnpacked}
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
		return 0, fmt.Errorf("it unpacks to more than %d bytes", MaxUnpacked)
	}
	return n, err
}

// Collect reads the files of a tree.
func Collect(fsys fs.FS) (Files, error) {
	all := keep{left: MaxUnpacked}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && stray(name) && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || stray(name):
			return nil
		}
		info, err := fs.Stat(fsys, name) // of what a link points to, as the files of a ConfigMap do
		if err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("%q is a link to no file of the bundle, or a device; a bundle has only files", name)
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

// stray reports whether a file or folder is none of a bundle. The two hidden files that a bundle
// has are not.
func stray(name string) bool {
	if base := path.Base(name); base == ".manifest" || base == ".signatures.json" {
		name = path.Dir(name)
	}
	return name != "." && folder.StrayPath(name)
}

// keep collects files, so many bytes of them.
type keep struct {
	files Files
	left  int64
}

func (k *keep) add(name string, r io.Reader) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == ':' }) {
		return fmt.Errorf("%q is not a valid path of a file in a bundle", name)
	}
	if stray(name) {
		return nil
	}
	if len(k.files) == MaxFiles {
		return fmt.Errorf("it has more than %d files", MaxFiles)
	}
	data, err := io.ReadAll(io.LimitReader(r, k.left+1)) // what is sparse is small in an archive
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if k.left -= int64(len(data)); k.left < 0 {
		return fmt.Errorf("its files have more than %d bytes", MaxUnpacked)
	}
	if path.Ext(name) == ".rego" && len(data) > MaxFile {
		return fmt.Errorf("%s is larger than %d bytes", name, MaxFile)
	}
	k.files = append(k.files, File{name, data})
	return nil
}

// sorted returns the files in the order of their names.
func (k *keep) sorted() (Files, error) {
	slices.SortFunc(k.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(k.files); i++ {
		if k.files[i].Name == k.files[i-1].Name {
			return nil, fmt.Errorf("it has %s twice", k.files[i].Name)
		}
	}
	return k.files, nil
}

// Digest is a hash of names and content.
func (f Files) Digest() string {
	var list strings.Builder
	for _, one := range f {
		fmt.Fprintf(&list, "%q %x\n", one.Name, sha256.Sum256(one.Data))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(list.String())))
}

// Pack is the inverse of [Unpack].
func (f Files) Pack() ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, one := range f {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: one.Name, Size: int64(len(one.Data)), Mode: 0o600}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(one.Data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
