package lock

import (
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// Definition returns a definition that was kept in a folder of [Options].Dir when it
// was first seen or approved, by its digest; absent if it was not.
func Definition(dir, digest string) gate.Doc { return store{dir: dir}.find(digest) }

// Kept returns what was kept of a server in a folder of [Options].Dir when it was first
// seen, sorted; none if it never was. What has changed since is not in it.
func Kept(dir, server string) ([]Item, error) {
	s := store{dir: dir}
	r, err := s.read(server)
	if err != nil || r == nil {
		return nil, err
	}
	var items []Item
	keys := r.keys()
	for _, k := range slices.SortedFunc(maps.Keys(keys), Key.compare) {
		items = append(items, Item{Kind: k.Kind, Name: k.Name, Doc: s.find(keys[k].Digest)})
	}
	return items, nil
}
