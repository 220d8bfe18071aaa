package plain

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a path or URL that is looked at, in bytes; PATH_MAX is this on
// Linux. A longer one is not plain.
const maxName = 4096

// Within reports whether path is root or lies below it. Both are absolute; root
// may end in a separator.
func Within(path, root string) bool {
	if trimmed := strings.TrimRight(root, `/\`); len(root)-len(trimmed) == 1 && trimmed != "" && !drive.MatchString(trimmed) {
		root = trimmed
	}
	p, ok1 := canonicalPath(path)
	r, ok2 := canonicalPath(root)
	return ok1 && ok2 && (p == r || strings.HasPrefix(p, strings.TrimSuffix(r, "/")+"/"))
}

var (
	drive   = regexp.MustCompile(`^[A-Za-z]:$`)
	percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	short   = regexp.MustCompile(`~[0-9]`) // PROGRA~1, the other name of a file on Windows
)

// looksLike are characters that some systems and libraries turn into / \ or .
const looksLike = "\u2024\u2025\u2044\u2215\u29f5\u29f8\ufe52\ufe68\uff0e\uff0f\uff3c"

// hidden reports whether a character is not simply shown: a control, a mark of
// direction, white space other than a space.
func hidden(r rune) bool { return !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) }

// canonicalPath returns a path with / as its separator, and false unless it is
// absolute and has one reading on every system: /a/b, or C:\a\b with a drive.
func canonicalPath(s string) (string, bool) {
	if s == "" || len(s) > maxName || !utf8.ValidString(s) || percent.MatchString(s) || strings.ContainsAny(s, looksLike) ||
		strings.ContainsFunc(s, hidden) {
		return "", false
	}
	volume := ""
	if len(s) >= 2 && drive.MatchString(s[:2]) {
		volume, s = strings.ToUpper(s[:2]), s[2:]
		if strings.Contains(s, `\`) == strings.Contains(s, "/") || strings.ContainsAny(s, `<>:"|?*`) || short.MatchString(s) {
			return "", false // no separator, or both
		}
		s = strings.ReplaceAll(s, `\`, "/")
	}
	if s[0] != '/' || strings.Contains(s, `\`) {
		return "", false
	}
	if s == "/" {
		return volume + s, true
	}
	for segment := range strings.SplitSeq(s[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", false
		}
		if volume != "" && strings.TrimRight(segment, ". ") != segment { // Windows leaves them out
			return "", false
		}
	}
	return volume + s, true
}
