package doc

import "strconv"

// Edit returns a copy of d with what f makes of the value at a path of names and indices, which
// nil removes. A path that leads nowhere, or an f that returns the value, changes nothing. It
// panics if f returns no JSON.
func Edit(d Doc, path []string, f func(v Doc) []byte) Doc {
	raw := edit(d, path, f)
	if raw == nil {
		return Doc{}
	}
	return Must(string(raw))
}

func edit(d Doc, path []string, f func(v Doc) []byte) []byte {
	if len(path) == 0 {
		return f(d)
	}
	switch d.Kind() {
	case Object:
		b := []byte{'{'}
		for name, v := range d.Members() {
			raw := v.Raw()
			if name == path[0] {
				raw = edit(v, path[1:], f)
			}
			if raw == nil {
				continue
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(AppendString(b, name), ':'), raw...)
		}
		return append(b, '}')
	case Array:
		b, i := []byte{'['}, 0
		for v := range d.Elements() {
			raw := v.Raw()
			if strconv.Itoa(i) == path[0] {
				raw = edit(v, path[1:], f)
			}
			i++
			if raw == nil {
				continue
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, raw...)
		}
		return append(b, ']')
	}
	return d.Raw()
}
