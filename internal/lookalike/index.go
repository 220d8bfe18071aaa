package lookalike

// An Index holds names, and finds those that a name looks like. The zero Index
// holds none. What it looks names up by is worked out when it is first asked for,
// so that even a look changes it: use it from one goroutine at a time.
type Index struct {
	names []string
	// How many of names each of the maps knows.
	shaped, keyed, reduced int

	byShape   map[string]string   // by skeleton
	byKey     map[string]string   // by each of its keys
	byReduced map[string][]string // by spelling, and by spelling less one letter
}

// Add puts a name into the index. Of names that are [Confusable] with each other
// the first stands for all, so that what is looked at for a name is bounded by the
// number of letters there are.
func (x *Index) Add(name string) { x.names = append(x.names, name) }

// SameShape returns a name of the index that is not name and has its skeleton.
func (x *Index) SameShape(name string) (other, why string, ok bool) {
	if x.byShape == nil {
		x.byShape = make(map[string]string)
	}
	for ; x.shaped < len(x.names); x.shaped++ {
		known := x.names[x.shaped]
		if s := Skeleton(known); x.byShape[s] == "" {
			x.byShape[s] = known
		}
	}
	if other = x.byShape[Skeleton(name)]; other == "" || other == name {
		return "", "", false
	}
	return other, whyShape, true
}

// Confusable returns a name of the index that [Confusable] finds like name.
func (x *Index) Confusable(name string) (other, why string, ok bool) {
	if x.byKey == nil {
		x.byKey = make(map[string]string)
	}
	for ; x.keyed < len(x.names); x.keyed++ {
		known := x.names[x.keyed]
		for _, k := range keys(known) {
			if x.byKey[k] == "" {
				x.byKey[k] = known
			}
		}
	}
	for _, k := range keys(name) {
		if other = x.byKey[k]; other != "" && other != name {
			why, ok = Confusable(name, other)
			return other, why, ok
		}
	}
	return "", "", false
}

// Alike returns a name of the index that [Alike] finds like name, and that is none
// of those left out; nil leaves none out.
func (x *Index) Alike(name string, leave func(other string) bool) (other, why string, ok bool) {
	if leave == nil {
		leave = func(string) bool { return false }
	}
	if other, why, ok = x.Confusable(name); ok && !leave(other) {
		return other, why, ok
	}
	s, ok := spell(name)
	if !ok {
		return "", "", false
	}
	x.reduce()
	for _, r := range reductions(s.text) {
		for _, other := range x.byReduced[r] {
			if near(name, other) && !leave(other) {
				return other, whyNear, true
			}
		}
	}
	return "", "", false
}

// reduce brings byReduced up to date.
func (x *Index) reduce() {
	if x.byReduced == nil {
		x.byReduced = make(map[string][]string)
	}
	for ; x.reduced < len(x.names); x.reduced++ {
		known := x.names[x.reduced]
		if k := keys(known); x.byKey[k[0]] != known && x.byKey[k[1]] != known {
			continue // another stands for it
		}
		if s, ok := spell(known); ok {
			for _, r := range reductions(s.text) {
				x.byReduced[r] = append(x.byReduced[r], known)
			}
		}
	}
}

// reductions returns s, and s less each of its letters: two names are at most one
// slip apart only if they share one of these.
func reductions(s string) []string {
	all := make([]string, 1, len(s)+1)
	all[0] = s
	for i := range len(s) {
		if i == 0 || s[i] != s[i-1] { // else it was there before
			all = append(all, s[:i]+s[i+1:])
		}
	}
	return all
}
