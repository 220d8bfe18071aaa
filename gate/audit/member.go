package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// A packed file is made of members, one after the other (RFC 1952, 2.2), each of a piece of the
// text. Each says in a subfield of its header how long it is and its piece, so that a reader comes
// to a place of the text by headers alone. To other programs it is any file of gzip.
const (
	pieceBytes    = 1 << 20
	subfield      = "WG"
	subfieldBytes = 4 + 8 // its name and length; of the member and of its piece, four bytes each
	headerBytes   = 10 + 2 + subfieldBytes
)

// writePacked packs a text.
func writePacked(to io.Writer, text io.Reader, name string, at time.Time) error {
	piece := make([]byte, pieceBytes)
	var member bytes.Buffer
	for first := true; ; first = false {
		n, err := io.ReadFull(text, piece)
		if n == 0 && errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		member.Reset()
		z := gzip.NewWriter(&member)
		z.ModTime, z.Extra = at, append([]byte(subfield), subfieldBytes-4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		if first {
			z.Name = name
		}
		if _, err := z.Write(piece[:n]); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		lengths := member.Bytes()[headerBytes-8:]
		binary.LittleEndian.PutUint32(lengths, uint32(member.Len()))
		binary.LittleEndian.PutUint32(lengths[4:], uint32(n))
		if _, err := to.Write(member.Bytes()); err != nil {
			return err
		}
	}
}

// OpenText opens a file of a log, packed or not, at a byte of its text. Of a packed one no more
// than a mebibyte is unpacked for that; of one that an earlier version has packed, or another
// program, all that comes before.
func OpenText(name string, at int64) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, packedExt) {
		_, err = f.Seek(at, io.SeekStart)
		return f, err
	}
	begin, before, err := memberOf(f, at)
	if err == nil {
		_, err = f.Seek(begin, io.SeekStart)
	}
	var text *gzip.Reader
	if err == nil {
		text, err = gzip.NewReader(f)
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, text, at-before)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{text, f}, nil
}

// memberOf returns where the member begins in which a byte of the text is, and how much of the
// text is before it.
func memberOf(f io.ReaderAt, at int64) (begin, before int64, err error) {
	for {
		h := make([]byte, headerBytes)
		if _, err := f.ReadAt(h, begin); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		const hasExtra = 1 << 2
		lengths := h[headerBytes-8:]
		member, piece := int64(binary.LittleEndian.Uint32(lengths)), int64(binary.LittleEndian.Uint32(lengths[4:]))
		if h[3]&hasExtra == 0 || string(h[12:14]) != subfield || member <= headerBytes || before+piece >= at {
			return begin, before, nil
		}
		begin, before = begin+member, before+piece
	}
}
