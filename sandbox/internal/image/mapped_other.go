//go:build !linux

package image

import "errors"

// On systems other than Linux it is unknown which pages were written to.
type (
	mapped struct{}
	dirt   struct{}
)

var errNotHere = errors.New("image: this system does not tell which pages were written to")

func (*Image) seal([]byte, int64) error { return errNotHere }
func (*Memory) reserve() error          { return errNotHere }
func (*Memory) lay() error              { return errNotHere }
func (*Memory) restore() error          { return errNotHere }
func (*Memory) unmap() error            { return errNotHere }

// Close frees the image.
func (*Image) Close() error { return nil }
