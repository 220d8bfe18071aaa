//go:build unix

package e2e

import (
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A Part is a part of the end-to-end tests of a package.
type Part struct {
	Name  string
	Run   func(*testing.T, *Program)
	Short Short
}

// Short says whether go test -short runs a part.
type Short int

const (
	// Raced is with the race detector only: most parts take too long for a person at work.
	Raced Short = iota
	// Always is for what a person at work waits for: calls and questions of a client and a server,
	// and what a gateway does when either goes away.
	Always
	// Never is for parts whose calls follow one another: with the race detector they take minutes,
	// and there is the least in them for it to find.
	Never
)

// Run builds the program and runs the parts on it, several at once. It needs no network; what needs
// Node skips without it.
func Run(t *testing.T, parts []Part) {
	t.Helper()
	p := BuildProgram(t)
	for _, part := range parts {
		t.Run(part.Name, func(t *testing.T) {
			if testing.Short() && part.Short == Never {
				t.Skip("takes long: .ci/run runs it without the race detector, .ci/nightly with")
			}
			if part.Short == Raced {
				unraced.Long(t)
			}
			t.Parallel()
			part.Run(t, p)
		})
	}
}
