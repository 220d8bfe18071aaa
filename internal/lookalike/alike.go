package lookalike

import "strings"

// Names whose letters number from minNear to maxNear look alike if one letter is
// another. In shorter ones a letter is what tells words apart, as it does mail and
// main; the longer a name, the more likely that it is one of a family.
const (
	minNear = 5
	maxNear = 20
)

// The reasons for which names look alike.
const (
	whyShape     = "the same shape in other characters"
	whyCase      = "the same but for case"
	whySeparator = "the same but for case, separators and characters of one shape"
	whyNear      = "one letter apart"
)

// Alike reports whether a reader takes a and b for one another, and why: their
// skeletons are equal, or equal but for case and separators, or they are short
// and one letter apart, be it another one, one more, or two that changed places.
// A digit, the first letter of a word, and an s at its end tell names apart: v1
// is not v2, get_x is not set_x, and read_files is not read_file. The same name
// twice is not alike.
func Alike(a, b string) (why string, alike bool) {
	if why, alike = Confusable(a, b); alike || a == b {
		return why, alike
	}
	if near(a, b) {
		return whyNear, true
	}
	return "", false
}

// Confusable is [Alike] without the last of its reasons: what is written with
// other letters is another name. It is for names of one author, in which families
// of similar names are the rule.
func Confusable(a, b string) (why string, alike bool) {
	switch {
	case a == b:
		return "", false
	case Skeleton(a) == Skeleton(b):
		return whyShape, true
	case strings.EqualFold(a, b):
		return whyCase, true
	}
	for _, x := range keys(a) {
		for _, y := range keys(b) {
			if x == y && x != "" {
				return whySeparator, true
			}
		}
	}
	return "", false
}

// near reports whether two short names are one slip apart that is easily
// overlooked.
func near(a, b string) bool {
	x, ok := spell(a)
	if !ok {
		return false
	}
	y, ok := spell(b)
	if !ok {
		return false
	}
	if len(x.text) > len(y.text) {
		x, y = y, x
	}
	i := 0 // where they begin to differ
	for i < len(x.text) && x.text[i] == y.text[i] {
		i++
	}
	s, t := x.text[i:], y.text[i:]
	switch {
	case i == 0 || x.begins(i) || y.begins(i) || t == "":
		return false
	case len(s) < len(t): // a letter more
		plural := t[0] == 's' && (y.ends(i+1) || x.ends(i))
		return s == t[1:] && !digit(t[0]) && !plural
	case s[1:] == t[1:]: // another letter
		return !digit(s[0]) && !digit(t[0])
	default: // two that changed places
		return len(s) > 1 && s[0] == t[1] && s[1] == t[0] && s[2:] == t[2:] && !digit(s[0]) && !digit(s[1])
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
