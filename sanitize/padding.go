package sanitize

import "strings"

const (
	// maxLines is how many line ends may follow each other, with nothing but white
	// space between: more than a window shows is out of view.
	maxLines = 30
	// maxBlanks is how many spaces and tabs may follow each other in a line; the
	// columns of wide tables need a hundred.
	maxBlanks = 300
)

// padding shortens white space that pushes what follows out of view, and ends
// lines that a carriage return would have a terminal write over.
func (f *findings) padding(s string, foreign bool) string {
	if !foreign && !mayPad(s) {
		return s
	}
	o := output{from: s, max: f.max}
	for i := 0; i < len(s); {
		end, lines, widest := blanks(s, i)
		if end == i {
			i++
			continue
		}
		switch {
		case end == len(s): // nothing follows
		case lines > maxLines:
			f.remove(rulePadding)
			o.fill(i, end, "\n[removed: padding]\n")
		case widest > maxBlanks:
			f.remove(rulePadding)
			o.fill(i, end, " [removed: padding] ")
		default:
			f.returns(&o, i, end)
		}
		i = end
	}
	return o.String()
}

// stride is how far apart the places are at which mayPad looks: a run of
// maxLines blanks holds two that follow each other.
const stride = maxLines / 2

// mayPad is the quick answer for nearly all texts, and in doubt says yes.
func mayPad(s string) bool {
	for i := stride; i < len(s); i += stride {
		if isSpace(s[i]) && isSpace(s[i-stride]) && isSpace(s[i-1]) {
			return true
		}
	}
	for i := 0; ; i++ {
		next := strings.IndexByte(s[i:], '\r')
		if next < 0 {
			return false
		}
		if i += next; loneReturn(s, i) {
			return true
		}
	}
}

func loneReturn(s string, i int) bool {
	return s[i] == '\r' && i+1 < len(s) && s[i+1] != '\n' && s[i+1] != '\r'
}

// blanks returns where the white space at s[i] ends, how many lines it ends and
// how wide its widest stretch within a line is.
func blanks(s string, i int) (end, lines, widest int) {
	wide := 0
	for r, n := whiteAt(s[i:]); n > 0; r, n = whiteAt(s[i:]) {
		switch {
		case r == '\r':
			wide = 0
		case endsLine(r):
			lines, wide = lines+1, 0
		default:
			wide++
			widest = max(widest, wide)
		}
		i += n
	}
	return i, lines, widest
}

// returns puts a line end for each carriage return in from[i:j] that ends none.
func (f *findings) returns(o *output, i, j int) {
	for ; i < j; i++ {
		if loneReturn(o.from, i) {
			f.remove(ruleReturn)
			o.fill(i, i+1, "\n")
		}
	}
}
