package gate

import "github.com/wasmgate/wasmgate/gate/provenance"

// Labels say what a session has read: a sorted set of at most 64 names. Labels only
// rise. The zero value is the empty set.
type Labels = provenance.Labels

// NewLabels returns the set of the given names.
func NewLabels(names ...string) Labels { return provenance.NewLabels(names...) }
