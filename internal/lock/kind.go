package lock

import (
	"github.com/wasmgate/wasmgate/gate"
)

// A Kind says what is pinned.
type Kind string

// A kind says how things of a [Kind] are pinned. A new kind takes a file that declares one,
// and its place in kinds.
//
// A thing is pinned by its document. The members of that are the parts of the thing: the
// lockfile has a digest of each as well as of the whole, and differences are shown part by
// part. A thing made of files has a member that maps the path of each file to its digest.
type kind struct {
	Kind
	// single says that a server has one such thing, without a name.
	single bool
	// subject is how a refusal of a tool calls the thing: the tool's subject.
	subject string
	// meaning explains a change beyond its parts; nil has nothing to explain.
	meaning func(old, now gate.Doc) []string
}
