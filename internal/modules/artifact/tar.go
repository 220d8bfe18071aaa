package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxUnpacked bounds what the layers of an image unpack to, in bytes and all
// together: a module of the largest size, and as much again around it.
const maxUnpacked = 2 * maxModule

// A search looks for the module in the layers of a container image. Nothing is
// written to disk: names are compared and quoted, and that is all.
type search struct {
	left  int64    // bytes that may still be unpacked
	found []string // names of the *.wasm files at the root
	wasm  []byte   // the first of them
}

// layer searches one layer. A file that a later layer replaces or removes counts
// all the same: the result is then an error, and never the wrong file.
func (s *search) layer(ctx context.Context, b []byte, zipped bool) error {
	var r io.Reader = bytes.NewReader(b)
	if zipped {
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		r = z
	}
	r = &metered{ctx, r, &s.left}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.file(h, t)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // the padding, and the checksum that follows it
		return fmt.Errorf("unpack: %w", err)
	}
	return nil
}

func (s *search) file(h *tar.Header, r io.Reader) error {
	name := strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "/")
	if h.Typeflag != tar.TypeReg || !strings.HasSuffix(name, ".wasm") || strings.ContainsAny(name, `/\`) {
		return nil
	}
	if h.Size > maxModule {
		return fmt.Errorf("%.80q has %d bytes, more than the %d that a module may have", name, h.Size, maxModule)
	}
	s.found = append(s.found, name)
	if len(s.found) > 1 {
		return nil // an error, once all are known
	}
	b, err := io.ReadAll(r)
	s.wasm = b
	return err
}

// only returns the name and the bytes of the one file that was found.
func (s *search) only() (string, []byte, error) {
	switch n := len(s.found); {
	case n == 0:
		return "", nil, errors.New("the container image has no *.wasm file at its root")
	case n > maxListed:
		return "", nil, fmt.Errorf("the container image has %d *.wasm files at its root, and must have one: %.80q and more", n, s.found[:maxListed])
	case n > 1:
		return "", nil, fmt.Errorf("the container image has %d *.wasm files at its root, and must have one: %.80q", n, s.found)
	}
	return s.found[0], s.wasm, nil
}

// metered reads from r until left is used up or ctx has ended.
type metered struct {
	ctx  context.Context
	r    io.Reader
	left *int64
}

func (m *metered) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	if *m.left -= int64(n); *m.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	}
	return n, err
}
