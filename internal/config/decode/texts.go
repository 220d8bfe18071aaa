package decode

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A Check says what is wrong with a value, without quoting it.
type Check = func(string) error

// Checked returns a text that passes the checks.
func (v Value) Checked(checks ...Check) (string, bool) {
	if !v.Is(tree.Text) {
		return "", false
	}
	s, ok := v.Expanded()
	if !ok || v.Unchecked() {
		return s, ok
	}
	for _, c := range checks {
		if err := c(s); err != nil {
			v.Fail("%q %v", v.Text, err)
			return "", false
		}
	}
	return s, true
}

// Text reads a text without control characters that passes the checks.
func Text(to *string, checks ...Check) Reader {
	return func(v Value) {
		if s, ok := v.Checked(append([]Check{check.Plain}, checks...)...); ok {
			*to = s
		}
	}
}

// Texts reads a list of texts.
func Texts(to *[]string, checks ...Check) Reader {
	return func(v Value) {
		if !v.Is(tree.List) {
			return
		}
		*to = make([]string, 0, len(v.Items))
		for item := range v.List() {
			s, ok := item.Checked(append([]Check{check.Plain}, checks...)...)
			if ok && slices.Contains(*to, s) {
				item.Fail("%q is listed twice", item.Text)
			} else if ok {
				*to = append(*to, s)
			}
		}
	}
}

// One reads one of the words.
func One(to *string, words ...string) Reader {
	return func(v Value) {
		s, ok := v.Checked()
		switch {
		case !ok:
		case slices.Contains(words, s) || v.Unchecked():
			*to = s
		default:
			v.Fail("%q is not one of %s%s", v.Text, strings.Join(words, ", "), spelling.Suggest(s, words))
		}
	}
}

// Either reads one of two words.
func Either(to *bool, words []string) Reader {
	return func(v Value) {
		var s string
		if One(&s, words...)(v); s != "" {
			*to = s == words[1]
		}
	}
}

// Path reads a path, which starts at the folder of the file.
func Path(to *string, checks ...Check) Reader {
	return func(v Value) {
		all := []Check{check.Plain}
		for _, c := range checks {
			all = append(all, func(s string) error { return c(v.Resolve(s)) })
		}
		if s, ok := v.Checked(all...); ok {
			*to = v.Resolve(s)
		}
	}
}

// Paths reads a list of paths.
func Paths(to *[]string, checks ...Check) Reader {
	return func(v Value) {
		for item := range v.List() {
			var s string
			if Path(&s, checks...)(item); s != "" {
				*to = append(*to, s)
			}
		}
	}
}

// Args reads arguments of a program, as they are.
func Args(to *[]string) Reader {
	return func(v Value) {
		for item := range v.List() {
			if s, ok := item.Written(); ok {
				*to = append(*to, s)
			}
		}
	}
}

// Kind is the reader of a value of a kind that is taken as it is written.
func Kind(k tree.Kind) Reader { return func(v Value) { v.Is(k) } }

// KindList is the reader of a list of them.
func KindList(k tree.Kind) Reader {
	return func(v Value) {
		for item := range v.List() {
			item.Is(k)
		}
	}
}

// Literal is the reader of a text that is taken as it is written, and passes a check.
func Literal(c Check) Reader {
	return func(v Value) {
		if !v.Is(tree.Text) {
			return
		}
		if err := check.Plain(v.Text); err != nil {
			v.Fail("%v", err)
		} else if err := c(v.Text); err != nil {
			v.Fail("%q %v", v.Text, err)
		}
	}
}
