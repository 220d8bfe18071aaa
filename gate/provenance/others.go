package provenance

import "slices"

// Beside returns the other values of the newest list that has all destinations of a call, without
// those that need no approval. There are none if there is no such list.
func Beside(p Provenance, destinations []string) (of List, others []string) {
	if p.lists == nil || len(destinations) == 0 {
		return List{}, nil
	}
	for _, l := range *p.lists {
		if !slices.ContainsFunc(destinations, func(to string) bool { return !covers(l.Values, to) }) {
			return l, slices.DeleteFunc(slices.Clone(l.Values), func(v string) bool { return covers(destinations, v) || p.needless(v) })
		}
	}
	return List{}, nil
}

// needless reports whether a destination needs no approval.
func (p Provenance) needless(v string) bool {
	return p.OfText(v).Trusted() || p.use != nil && (p.use.own.has(v) || p.use.destination(v))
}
