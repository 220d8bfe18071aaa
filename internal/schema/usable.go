package schema

import (
	"errors"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxLeftOut bounds the keywords of one schema that are left out: what has more is no schema.
const maxLeftOut = 50

// Usable compiles what can be judged of a schema: one keyword that cannot does not cost a tool.
// It returns the schema without such keywords, which is the one to offer, and what was left out
// and why. A pattern with look-around stays in the schema, and is judged, where it says the same
// as several patterns of RE2 (see split). What OpenAPI 3.0 calls nullable may be null. An error is of
// the schema as a whole, as those of
// [Compile] are.
func (c *Compiler) Usable(raw gate.Doc) (s *Schema, offered gate.Doc, left []string, err error) {
	offered, judged := raw, nullable(raw)
	for n := 0; ; n++ {
		s, err = c.Compile(judged)
		broken, ok := errors.AsType[*KeywordError](err)
		if !ok || len(broken.path) == 0 || n == maxLeftOut {
			return s, offered, left, err
		}
		path := broken.path
		keyword, in := path[len(path)-1], path[:len(path)-1]
		if checks := split(valueAt(judged, path)); keyword == "pattern" && checks != nil {
			judged = doc.Edit(judged, in, func(v gate.Doc) []byte { return withChecks(v, checks) })
			continue
		}
		left = append(left, broken.Error())
		edit := func(v gate.Doc) []byte {
			if len(in) > 0 && slices.Contains(holders, in[len(in)-1]) && v.Kind() != doc.Object {
				return []byte("{}")
			}
			return nil
		}
		judged, offered = doc.Edit(judged, path, edit), doc.Edit(offered, path, edit)
	}
}

func valueAt(d gate.Doc, path []string) (v gate.Doc) {
	doc.Edit(d, path, func(found gate.Doc) []byte {
		v = found
		return found.Raw()
	})
	return v
}

// withChecks returns a schema with checks in place of its pattern.
func withChecks(s gate.Doc, checks []string) []byte {
	all := []byte{'['}
	for check := range s.Get("allOf").Elements() {
		all = append(append(all, check.Raw()...), ',')
	}
	for i, check := range checks {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, check...)
	}
	s = doc.Edit(s, []string{"pattern"}, func(gate.Doc) []byte { return nil })
	return s.With("allOf", append(all, ']')).Raw()
}
