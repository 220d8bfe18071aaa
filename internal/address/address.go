package address

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns the one spelling of a text that is a URL, an e-mail address, or the number of an
// account, a wallet or a telephone, or "".
func Of(v string) string {
	v = readable(v)
	if at := strings.IndexByte(v, '<'); at >= 0 && strings.HasSuffix(v, ">") && !strings.ContainsAny(v[:at], "@,;<>") {
		v = v[at+1 : len(v)-1] // Name <a@example.com>
	}
	if len(v) > len("mailto:") && strings.EqualFold(v[:len("mailto:")], "mailto:") {
		v, _, _ = strings.Cut(v[len("mailto:"):], "?")
	}
	v = unescaped(v)
	switch {
	case v == "" || strings.ContainsAny(v, "\n\t,;<>\""):
		return ""
	case v[0] == '+':
		var number string
		telephones(v, func(n string) { number = n })
		return number
	case strings.Contains(v, " "):
		return account(v)
	case strings.Contains(v, "://") || strings.HasPrefix(v, "www."):
		return link(v)
	case strings.Count(v, "@") == 1:
		name, host, _ := strings.Cut(v, "@")
		if name == "" || !domain(host) && !numbered(host) {
			return ""
		}
		return strings.ToLower(v)
	}
	if host, path, ok := strings.Cut(v, "/"); ok && path != "" && domain(host) && !strings.HasPrefix(v, ".") {
		return link(v)
	}
	if a := bare(v); a != "" {
		return a
	}
	if a := wallet(v); a != "" {
		return a
	}
	return account(v)
}

// link returns the one spelling of a URL: with its scheme and host in small
// letters, and without what makes no difference to where it leads.
func link(v string) string {
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok {
		scheme, rest = "https", v
	}
	scheme = strings.ToLower(scheme)
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if host == "" {
		return ""
	}
	return scheme + "://" + strings.ToLower(host) + strings.TrimSuffix(path, "/")
}

// domain reports whether s looks like the name of a host on the internet.
func domain(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || len(s)-dot < 3 || len(s) > 253 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !alphanumeric(c) && c != '.' && c != '-' {
			return false
		}
	}
	return strings.Trim(s[dot+1:], "0123456789") != ""
}

// numbered reports whether s is the number of a host.
func numbered(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= utf8.RuneSelf
}

// minAccount is how many digits a number of no other shape has that is taken for
// that of an account. Most telephone numbers have them, too.
const minAccount = 10

// ungroup takes out what people put between groups of digits.
var ungroup = strings.NewReplacer(" ", "", "-", "")

// account returns an account number without the spaces and dashes that people
// put into it: an IBAN (ISO 13616: two letters, two digits, 11 to 30 of both), or
// a long number.
func account(v string) string {
	if len(v) < minAccount || len(v) > 64 || !strings.ContainsAny(v, "0123456789") {
		return ""
	}
	compact := strings.ToUpper(ungroup.Replace(v))
	switch {
	case len(compact) >= minAccount && digits(compact) && !strings.Contains(v, "--"):
		return compact
	case len(compact) >= 15 && len(compact) <= 34 && upper(compact[:2]) && digits(compact[2:4]) &&
		strings.IndexFunc(compact[4:], func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') }) < 0 &&
		strings.ContainsAny(compact[4:], "0123456789"):
		return compact
	}
	return ""
}

func upper(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// In calls f with each address in a text, whatever it is wrapped in. Each address has one spelling.
func In(text string, f func(address string)) {
	text = readable(text)
	if !strings.ContainsAny(text, "@/.0123456789") {
		return
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "+") {
			telephones(line, func(number string) { f(number) })
		}
		words := strings.FieldsFunc(line, wraps)
		for i := 0; i < len(words); i++ {
			word := strings.TrimRight(words[i], ":!?._")
			if j := strings.Index(word, "://"); j > 0 { // whatever stands before the scheme
				start := j
				for start > 0 && alphanumeric(word[start-1]) && word[start-1] < utf8.RuneSelf {
					start--
				}
				word = word[start:]
			}
			if a := Of(word); a != "" {
				f(a)
			} else if a, n := Grouped(words[i:]); n > 0 {
				f(a)
				i += n - 1
			}
		}
	}
}

// Delimiters are characters that surround words in a text and seldom belong to them.
const Delimiters = "\"'`()[]{}<>,;:!?.*"

// wraps reports whether a character stands between an address and what is around
// it.
func wraps(r rune) bool {
	switch r {
	case ' ', '\t', '\r', '\n', '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|', '=', '\\', '*':
		return true
	}
	return r >= utf8.RuneSelf && unicode.IsSpace(r)
}

// Grouped returns an account number that begins with the first of the words and
// goes on in groups of up to four, and how many words it has.
func Grouped(words []string) (string, int) {
	if !Group(words[0]) {
		return "", 0
	}
	n := 1
	for n < len(words) && n < maxGroups && Group(strings.TrimRight(words[n], Delimiters)) {
		n++
	}
	for ; n > 1; n-- {
		if a := account(strings.TrimRight(strings.Join(words[:n], ""), Delimiters)); a != "" {
			return a, n
		}
	}
	return "", 0
}

// maxGroups is how many groups of four the longest IBAN has.
const maxGroups = 9

// Group reports whether a word could be a group of an account number.
func Group(word string) bool {
	if len(word) == 0 || len(word) > 4 {
		return false
	}
	for i := range len(word) {
		if c := word[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
