package doc

import (
	"cmp"
	"slices"
)

// Replace returns the document with the values that the pointers name replaced by a
// string, and those values. What is within another of them goes with that.
func Replace(d Doc, pointers []string, by string) (out Doc, taken []Doc) {
	var found []Doc
	for _, p := range pointers {
		if v := d.At(p); !v.IsZero() && p != "" {
			found = append(found, v)
		}
	}
	if found == nil {
		return d, nil
	}
	slices.SortFunc(found, func(a, b Doc) int { return cmp.Compare(a.i, b.i) })
	var text []byte
	last, end := d.node().start, d.node().end
	for _, v := range found {
		n := v.node()
		if n.start < last {
			continue
		}
		text = AppendString(append(text, d.t.raw[last:n.start]...), by)
		last = n.end
		taken = append(taken, v)
	}
	return Must(string(append(text, d.t.raw[last:end]...))), taken
}
