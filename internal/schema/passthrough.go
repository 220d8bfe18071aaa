package schema

import (
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// PassThrough returns a schema as [Normalize] reshapes it, in which every object may
// have further members: additionalProperties is true wherever a schema describes an
// object, and nothing else forbids members that are not named. It is for frameworks
// that check arguments by themselves and must not drop what they do not know.
// Normalizing the result gives it again.
func PassThrough(raw gate.Doc) gate.Doc {
	return opened(Normalize(raw))
}

// opened opens one schema and all that it consists of.
func opened(s gate.Doc) gate.Doc {
	if s.Kind() != doc.Object {
		return s
	}
	out := s
	for name, value := range s.Members() {
		switch roles[name] {
		case child, tuple, aside:
			if name == "not" { // what it opened would forbid more
				continue
			}
			out = with(out, name, value, opened(value))
		case children, asideMap:
			all := value
			for key, one := range value.Members() {
				all = with(all, key, one, opened(one))
			}
			out = with(out, name, value, all)
		case asides:
			out = with(out, name, value, openedAll(value))
		}
	}
	if !describesObjects(s) {
		return out
	}
	if !s.Get("unevaluatedProperties").IsZero() {
		out = out.With("unevaluatedProperties", []byte("true"))
	}
	return out.With("additionalProperties", []byte("true"))
}

// with returns d with the changed value of a member, and d itself if it is the same.
func with(d gate.Doc, name string, old, now gate.Doc) gate.Doc {
	if string(old.Raw()) == string(now.Raw()) {
		return d
	}
	return d.With(name, now.Raw())
}

func openedAll(list gate.Doc) gate.Doc {
	if list.Kind() != doc.Array {
		return list
	}
	raw := []byte{'['}
	for one := range list.Elements() {
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(raw, opened(one).Raw()...)
	}
	d, err := gate.ParseDoc(append(raw, ']'))
	if err != nil { // as deep as the list was: it cannot be
		return list
	}
	return d
}

// describesObjects reports whether a schema says something of objects.
func describesObjects(s gate.Doc) bool {
	if s.Get("type").Text() == "object" || !s.Get("properties").IsZero() || !s.Get("additionalProperties").IsZero() {
		return true
	}
	for one := range s.Get("type").Elements() {
		if one.Text() == "object" {
			return true
		}
	}
	return false
}
