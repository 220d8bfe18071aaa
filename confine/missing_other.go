//go:build !linux || (!amd64 && !arm64)

package confine

import (
	"errors"
	"runtime"
)

func confines() bool { return false }

func (Rules) missing() []string {
	return []string{"everything: only Linux on amd64 and arm64 has what it takes, and this is " + runtime.GOOS + " on " + runtime.GOARCH}
}

func canLearn() error {
	return errors.New("cannot watch the server: this needs Linux on amd64 or arm64")
}
