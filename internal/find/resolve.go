package find

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// An AmbiguousError says that several servers have a tool of a name.
type AmbiguousError struct {
	Name       string   `json:"name"`
	Candidates []string `json:"candidates"` // as offered
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is the name of several tools: write one of %s", e.Name, strings.Join(e.Candidates, ", "))
}

// Resolve returns the name by which a tool is offered that is named as its server names
// it. A name that is offered stands for itself, known whether or not it is visible; so
// does one that no visible tool has. The error is an [*AmbiguousError] if several have
// it. It is for people and programs at the gateway: what clients name is never guessed.
func Resolve(name string, known, visible []*gate.Tool) (string, error) {
	for _, t := range known {
		if name == t.Offered || name == t.Name.String() {
			return name, nil
		}
	}
	var candidates []string
	for _, t := range visible {
		if name == t.Local || name == t.Name.Tool {
			candidates = append(candidates, t.Offered)
		}
	}
	switch len(candidates) {
	case 0:
		return name, nil
	case 1:
		return candidates[0], nil
	}
	slices.Sort(candidates)
	return "", &AmbiguousError{name, candidates}
}
