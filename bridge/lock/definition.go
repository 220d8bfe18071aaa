package lock

import "github.com/wasmgate/wasmgate/gate"

// Definition returns a definition that was kept in a folder of [Options].Dir when it
// was first seen or approved, by its digest; absent if it was not.
func Definition(dir, digest string) gate.Doc { return store{dir}.find(digest) }
