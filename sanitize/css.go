package sanitize

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// css is what a style does that matters.
type css struct {
	targets []string // what may be URLs that it fetches
	runs    bool
	hides   bool
}

// loaders are the functions and rules of CSS that fetch what they name.
var loaders = []string{"url(", "image-set(", "image(", "src(", "@import", "cross-fade("}

// readCSS reads the declarations of a style, or a value of one, as CSS is read
// (CSS Syntax 3): comments are nothing, escapes are what they stand for.
func readCSS(value string) (c css) {
	v := plainCSS(value)
	for _, f := range loaders {
		if strings.Contains(v, f) {
			c.targets = strings.FieldsFunc(withoutControls(v), func(r rune) bool { return isWhite(r) || strings.ContainsRune("\"'(),", r) })
			break
		}
	}
	c.runs = strings.Contains(v, "expression(") || strings.Contains(v, "-moz-binding") || strings.Contains(v, "behavior:") || strings.IndexByte(value, '\\') >= 0 && runs(v)
	for one := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ';' || r == '{' || r == '}' }) {
		property, val, ok := strings.Cut(one, ":")
		if ok && hidesBy(strings.TrimSpace(property), strings.TrimSpace(val), v) {
			c.hides = true
		}
	}
	return c
}

// plainCSS returns CSS in lower case, without comments and with its escapes read.
func plainCSS(s string) string {
	if !strings.Contains(s, `\`) && !strings.Contains(s, "/*") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			end := strings.Index(s[i+2:], "*/")
			if end < 0 {
				return strings.ToLower(b.String())
			}
			i += end + 4
		case s[i] == '\\' && i+1 < len(s):
			r, n := cssEscape(s[i+1:])
			if r >= ' ' {
				b.WriteRune(r)
			}
			i += 1 + n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return strings.ToLower(b.String())
}

// cssEscape reads what follows a backslash, and returns its length; 0 for a line
// end, which is nothing.
func cssEscape(s string) (r rune, n int) {
	for n < len(s) && n < 6 {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] < '0' || d < 0 {
			break
		}
		r = r*16 + rune(d)
		n++
	}
	if n == 0 {
		r, n = utf8.DecodeRuneInString(s)
		return r, n
	}
	if n < len(s) && isSpace(s[n]) {
		n++
	}
	return r, n
}

func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s)
}

// The sizes from which on text is not seen any more: of letters, in pixels and
// in hundredths of those around, and how far something is out of the window.
const (
	tiny    = 3
	outside = 90
	beyond  = 2000
)

// hidesBy reports whether a declaration hides text; style is the whole of it.
func hidesBy(property, value, style string) bool {
	value = strings.TrimSpace(strings.TrimSuffix(value, "!important"))
	switch property {
	case "display":
		return hasWord(value, "none") || strings.Contains(value, "(")
	case "visibility", "content-visibility":
		return hasWord(value, "hidden") || hasWord(value, "collapse") || strings.Contains(value, "(")
	case "opacity":
		return strings.Contains(value, "(") || anySize(value, func(n float64, unit string) bool { return n < 0.1 || unit == "%" && n < 10 })
	case "font-size", "font", "zoom", "line-height", "scale":
		if property == "font" || property == "font-size" {
			return strings.Contains(value, "(") || anySize(value, tinyLetters)
		}
		return anySize(value, func(n float64, unit string) bool { return n < 0.1 })
	case "text-indent", "left", "right", "top", "bottom", "margin", "margin-left", "margin-top", "margin-right", "margin-bottom", "inset", "letter-spacing", "word-spacing", "translate":
		return strings.Contains(value, "(") && !strings.HasPrefix(value, "calc(") || anySize(value, func(n float64, unit string) bool { return n <= -outside || n >= beyond })
	case "clip", "clip-path", "mask", "mask-image", "-webkit-mask", "-webkit-mask-image":
		return value != "none" && value != "auto" && value != "inherit"
	case "color", "-webkit-text-fill-color":
		return invisible(value) || value != "" && hasDeclaration(style, "background", value)
	case "transform":
		return movedAway(value)
	case "filter":
		return strings.Contains(value, "opacity(")
	case "width", "height", "max-width", "max-height":
		return strings.Contains(style, "overflow") && anySize(value, func(n float64, unit string) bool { return n < tiny && unit != "em" && unit != "rem" })
	}
	return false
}

// hasWord reports whether a value has a word among others.
func hasWord(value, word string) bool {
	for one := range strings.FieldsSeq(value) {
		if one == word {
			return true
		}
	}
	return false
}

// hasDeclaration reports whether a style declares one of a family of properties to
// be a value.
func hasDeclaration(style, family, value string) bool {
	for one := range strings.SplitSeq(style, ";") {
		property, v, _ := strings.Cut(one, ":")
		if strings.HasPrefix(strings.TrimSpace(property), family) && strings.TrimSpace(v) == value {
			return true
		}
	}
	return false
}

// tinyLetters reports whether a length is that of letters nobody can read. A
// number without a unit is the weight of letters, but for 0.
func tinyLetters(n float64, unit string) bool {
	switch unit {
	case "":
		return n == 0
	case "%":
		return n < 10*tiny
	case "px", "pt", "q", "mm", "vw", "vh", "vmin", "vmax":
		return n < tiny
	}
	return n < 0.1*tiny
}

// invisible reports whether a colour lets everything through.
func invisible(colour string) bool {
	if colour == "transparent" || strings.HasPrefix(colour, "#") && (len(colour) == 9 && colour[7] == '0' || len(colour) == 5 && colour[4] == '0') {
		return true
	}
	_, args, ok := strings.Cut(strings.TrimSuffix(colour, ")"), "(")
	if !ok || !strings.HasPrefix(colour, "rgba") && !strings.HasPrefix(colour, "hsla") && !strings.Contains(args, "/") {
		return false
	}
	last := args[strings.LastIndexAny(args, ",/")+1:]
	return anySize(last, func(n float64, unit string) bool { return n < 0.1 || unit == "%" && n < 10 })
}

// movedAway reports whether a transformation makes nothing of what it is applied
// to, or takes it out of the window.
func movedAway(value string) bool {
	for one := range strings.SplitSeq(value, ")") {
		f, args, _ := strings.Cut(one, "(")
		f = strings.TrimSpace(f)
		switch {
		case strings.HasPrefix(f, "scale"), strings.HasPrefix(f, "matrix"):
			first, _, _ := strings.Cut(args, ",")
			if anySize(first, func(n float64, unit string) bool { return n > -0.1 && n < 0.1 }) {
				return true
			}
			if strings.HasPrefix(f, "matrix") && anySize(args, func(n float64, _ string) bool { return n <= -outside || n >= beyond }) {
				return true
			}
		case strings.HasPrefix(f, "translate"):
			if anySize(args, func(n float64, _ string) bool { return n <= -outside || n >= beyond }) {
				return true
			}
		case strings.HasPrefix(f, "rotate") && f != "rotate" && f != "rotatez", strings.HasPrefix(f, "skew"):
			if anySize(args, func(n float64, _ string) bool { return n >= 80 || n <= -80 }) {
				return true
			}
		case strings.Contains(args, "("), f == "perspective":
			return f != "perspective"
		}
	}
	return false
}

// anySize reports whether a test holds for any number in a value, with its unit.
func anySize(value string, test func(n float64, unit string) bool) bool {
	for i := 0; i < len(value); {
		end := number(value[i:])
		if end == 0 || i > 0 && (isLetter(value[i-1]) || value[i-1] == '#') {
			i++
			continue
		}
		n, err := strconv.ParseFloat(value[i:i+end], 64)
		i += end
		start := i
		for i < len(value) && (isLetter(value[i]) || value[i] == '%') {
			i++
		}
		if err == nil && test(n, value[start:i]) {
			return true
		}
	}
	return false
}

// number returns the length of the number that s begins with, or 0.
func number(s string) int {
	i, digits := 0, 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		if s[i] != '.' {
			digits++
		}
		i++
	}
	if digits == 0 {
		return 0
	}
	if j := i + 1; i < len(s) && s[i] == 'e' && j < len(s) {
		if s[j] == '-' || s[j] == '+' {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			i = j
		}
	}
	return i
}
