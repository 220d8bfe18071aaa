package lock

import "slices"

// kinds are all there are, in the order in which the lockfile has the things of a server.
var kinds = []kind{identityKind, instructionsKind, moduleKind, toolKind, promptKind, templateKind, pageKind, skillKind}

// of returns how things of the kind are pinned, and the place of the kind; -1 if there is no
// such kind.
func (k Kind) of() (kind, int) {
	i := slices.IndexFunc(kinds, func(o kind) bool { return o.Kind == k })
	if i < 0 {
		return kind{}, i
	}
	return kinds[i], i
}
