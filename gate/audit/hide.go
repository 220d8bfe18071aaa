package audit

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// hide takes out of the texts and documents of an entry what must not be in a
// log. What others have chosen the words of is a text. f is [Options.Hide].
func (e *Entry) hide(f func(name, text string) string) error {
	for _, s := range []*string{&e.Error, &e.Tool, &e.Remedy, &e.Approval.Note, &e.Client.Name, &e.Client.Version, &e.Shadow.Error} {
		*s = hideText(*s, f)
	}
	for _, list := range []*[]string{&e.Reasons, &e.Shadow.Reasons} {
		own := false
		for i, s := range *list {
			hidden := hideText(s, f)
			if hidden == s {
				continue
			}
			if !own { // it is the decision's
				*list, own = slices.Clone(*list), true
			}
			(*list)[i] = hidden
		}
	}
	e.Findings = slices.Clone(e.Findings) // the record's own
	for i := range e.Findings {
		e.Findings[i].At = hidePointer(e.Findings[i].At, f)
	}
	for _, d := range []*[]byte{(*[]byte)(&e.Arguments), (*[]byte)(&e.Result)} {
		if err := hideDocument(d, f); err != nil {
			return err
		}
	}
	return nil
}

// hideText hides what there is in a text, and in each word of it: a pointer that an
// error quotes has names between its slashes.
func hideText(s string, f func(name, text string) string) string {
	if s == "" {
		return ""
	}
	s = f("", s)
	if !strings.Contains(s, "/") {
		return s
	}
	var b strings.Builder
	for s != "" {
		n := strings.IndexAny(s, "/ \"':,;()\n")
		if n < 0 {
			n = len(s)
		}
		b.WriteString(f("", s[:n]))
		end := min(n+1, len(s))
		b.WriteString(s[n:end])
		s = s[end:]
	}
	return b.String()
}

// hidePointer hides the names that are secrets in a JSON Pointer behind a word for
// the document it leads into.
func hidePointer(at string, f func(name, text string) string) string {
	tokens := strings.Split(at, "/")
	for i := 1; i < len(tokens); i++ {
		name := pointer.Unescape(tokens[i])
		if hidden := f(pointer.Unescape(tokens[i-1]), name); hidden != name {
			tokens[i] = pointer.Escape(hidden)
		}
	}
	return strings.Join(tokens, "/")
}

func hideDocument(raw *[]byte, f func(name, text string) string) error {
	if *raw == nil {
		return nil
	}
	d, err := gate.ParseDoc(*raw)
	if err != nil {
		return err
	}
	d, err = doc.MapDeep(d, func(at doc.Leaf, s string) string { return f(at.Name(), s) })
	*raw = d.Raw()
	return err
}
