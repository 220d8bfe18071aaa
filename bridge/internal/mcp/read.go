package mcp

import (
	"io"
	"slices"
)

// maxAnnounced bounds the room that is made for a message before it has come, in bytes.
const maxAnnounced = 64 << 10

// ReadAll is [io.ReadAll] of a message of an announced length, -1 if it is not announced.
func ReadAll(r io.Reader, announced int64) ([]byte, error) {
	room := int64(512)
	if announced >= 0 {
		room = min(announced, maxAnnounced) + 1 // the end is read into what is left
	}
	b := make([]byte, 0, room)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b))
		}
	}
}
