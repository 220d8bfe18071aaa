package confine

import (
	"fmt"
	"strings"
)

// Missing returns what this system cannot enforce of r, in words; nothing if it
// enforces all of it. It asks the running kernel, and not for its version.
func Missing(r Rules) []string { return r.missing() }

// A MissingError reports that this system cannot enforce what was asked for.
type MissingError struct {
	Missing []string // what, and since when systems can; never empty
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("confine cannot be enforced on this system: %s; confine.best_effort: true starts the server without",
		strings.Join(e.Missing, "; "))
}

// confined returns r with its defaults, once it is sure that it can be enforced
// or that less will do. It is nil if nothing at all can be.
func (r Rules) confined() (*Rules, error) {
	r, err := r.checked()
	if err != nil {
		return nil, err
	}
	if missing := r.missing(); len(missing) > 0 && !r.BestEffort {
		return nil, &MissingError{missing}
	}
	if !confines() {
		return nil, nil
	}
	return &r, nil
}
