package sanitize

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Links says which targets of links and images stay active in a text. The zero value is for texts
// whose readers render Markdown or HTML: nothing is fetched without a click, and a click sends
// nothing but a path. A link that is off the list stays readable: one space makes it mere text.
//
// [Links.Image] and [Links.Link] are for URLs outside of a text, such as those of icons.
type Links struct{ allow []string }

// NewLinks returns the links to the given targets: an origin such as https://example.com, a host
// such as example.com or *.example.com, or * for all of http and https. An empty list is different
// from the zero Links: with it every link is neutralized.
func NewLinks(allow []string) (Links, error) {
	for _, a := range allow {
		host := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://"), "*.")
		if a != "*" && (host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/*?#@\\ ")) {
			return Links{}, fmt.Errorf("%q is not an origin, no host and not *: write https://example.com, example.com or *.example.com", a)
		}
	}
	return Links{append([]string{}, allow...)}, nil
}

// Image reports whether a URL may be fetched without a click, as the source of an image or an icon:
// one within the text, one relative to it, or one on the list.
func (l Links) Image(target string) bool { return !remote(target, false) || l.keeps(target, true) }

// Link reports whether a URL may stand where a click follows it.
func (l Links) Link(target string) bool { return !remote(target, false) || l.keeps(target, false) }

// keeps reports whether a link to a remote target stays; fetched says that it is
// fetched without a click, as images are.
func (l Links) keeps(target string, fetched bool) bool {
	switch {
	case l.allow == nil && !fetched && ordinary(target):
		return true
	case l.allow == nil && leavesHost(target) && (fetched || strings.IndexByte(target, '?') >= 0):
		return false
	case len(target) >= maxTarget:
		return false
	}
	inHTML, inMarkdown := readTargets(target)
	if strings.HasPrefix(strings.ToLower(inHTML), "data:") && spacedType(target) {
		return false
	}
	within := strings.TrimFunc(html.UnescapeString(target), isDropped)
	if l.allow != nil && strings.IndexFunc(within, func(r rune) bool { return r > 0x7f && isForeign(r) }) >= 0 {
		return false // some readers end it there
	}
	spaced := strings.Contains(within, " ")
	return l.keepsRead(inHTML, fetched, spaced) && (inMarkdown == inHTML || l.keepsRead(inMarkdown, fetched, spaced))
}

// keepsRead is keeps for a target as a browser reads it, but for the spaces in it.
func (l Links) keepsRead(t string, fetched, spaced bool) bool {
	if leavesHost(t) {
		t = "https://" + t[2:]
	}
	scheme, rest, named := strings.Cut(t, ":")
	if !named || strings.ContainsAny(scheme, "/?#") {
		return true // relative to the text, wherever that is
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "mailto", "tel":
		return !fetched
	case "data":
		return fetched && picture(strings.ToLower(rest)) || !fetched && namespaced(rest)
	case "javascript", "vbscript", "livescript":
		return false
	case "http", "https":
	default:
		return !fetched && !spaced && (ownScheme(scheme, rest) || namespaced(rest))
	}
	u, err := url.Parse(t)
	if err != nil || u.Host == "" || strings.Contains(t, `\`) {
		return false
	}
	if l.allow == nil {
		return !fetched && u.RawQuery == "" && u.User == nil
	}
	host := strings.ToLower(u.Host)
	for _, a := range l.allow {
		parent, below := strings.CutPrefix(a, "*.")
		if a == "*" || a == host || a == strings.ToLower(u.Scheme)+"://"+host || below && strings.HasSuffix(host, "."+parent) {
			return u.User == nil
		}
	}
	return false
}

// off returns the rule by which a target is off the list, or "".
func (l Links) off(target string, fetched bool) string {
	if remote(target, false) && !l.keeps(target, fetched) {
		return linkRule(fetched)
	}
	return ""
}

// anyOff returns the rule by which one of a list of images is off the list, or "".
func (l Links) anyOff(images string) string {
	for one := range strings.SplitSeq(images, ",") {
		if rule := l.off(one, true); rule != "" {
			return rule
		}
	}
	return ""
}

// leavesHost reports whether a target names another host by its first two letters.
func leavesHost(t string) bool {
	return len(t) > 1 && (t[0] == '/' || t[0] == '\\') && (t[1] == '/' || t[1] == '\\')
}

// takenSchemes are those that a browser, an editor or a system acts on.
var takenSchemes = []string{
	"javascript", "vbscript", "livescript", "data", "about", "blob", "filesystem", "view-source", "jar", "mhtml", "file", "ftp", "shell",
	"vscode", "vscode-insiders", "cursor", "command", "search", "search-ms", "intent", "magnet", "sms", "skype", "callto", "facetime", "slack", "steam", "zoommtg", "whatsapp", "tg", "ldap", "smb", "nfs", "ssh", "sftp", "telnet", "res", "moz-extension", "android-app", "itms", "itms-apps", "market", "feed", "news", "nntp", "webcal", "ws", "wss",
}

// taken reports whether a browser, an editor or a system acts on a scheme.
func taken(scheme string) bool {
	return strings.HasPrefix(scheme, "ms-") || strings.HasPrefix(scheme, "chrome") || slices.Contains(takenSchemes, scheme)
}

// ownScheme reports whether a target is a name under a scheme of somebody's own,
// such as ref:block, which nothing fetches and which has no room for much.
func ownScheme(scheme, rest string) bool {
	if len(scheme) > maxScheme || len(rest) > maxScheme || taken(scheme) {
		return false
	}
	return !strings.HasPrefix(rest, "/") && strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("-./:", r) }) < 0
}

// namespaced reports whether what follows the first colon of a target makes it a name of C++, Rust or
// Perl, such as File::Spec, which leads nowhere.
func namespaced(rest string) bool {
	return len(rest) <= maxScheme && strings.HasPrefix(rest, ":") && strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) && r != ':' }) < 0
}

// ordinary is the quick answer for the targets of most links: a host and a path.
func ordinary(target string) bool {
	rest, ok := strings.CutPrefix(target, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(target, "http://")
	}
	if !ok || rest == "" || !isWord(rune(rest[0])) || len(rest) > maxTarget {
		return false
	}
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; !isWord(rune(c)) && strings.IndexByte("-./:#~+,=_", c) < 0 {
			return false
		}
	}
	return true
}

// spacedType reports whether there are spaces in the media type of a data URL, which browsers
// take for no image then.
func spacedType(target string) bool {
	kind, _, _ := strings.Cut(html.UnescapeString(target), ",")
	return strings.IndexFunc(strings.TrimFunc(kind, isDropped), isWhite) >= 0
}

// picture reports whether the rest of a data URL is an image that holds no
// markup.
func picture(rest string) bool {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		if strings.HasPrefix(rest, kind+";") || strings.HasPrefix(rest, kind+",") {
			return true
		}
	}
	return false
}

// readTargets returns a target as a browser reads it, without character references and what URLs
// drop (WHATWG URL, 4.4): as it is in HTML, and as a renderer of Markdown writes it.
func readTargets(s string) (inHTML, inMarkdown string) {
	s = html.UnescapeString(s)
	return asURL(s), asURL(strings.ReplaceAll(unescapedMarkdown(s), `\`, "%5C"))
}

func asURL(s string) string {
	s = strings.Map(func(r rune) rune {
		if isDropped(r) {
			return -1
		}
		return r
	}, s)
	return strings.TrimLeft(s, "<") // the angle of a target of Markdown, behind white space that only its reader drops
}

// unescapedMarkdown drops the backslash before punctuation (CommonMark 0.31,
// 2.4).
func unescapedMarkdown(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] < 0x80 && !isWord(rune(s[i+1])) && s[i+1] > ' ' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const (
	// maxTarget bounds a target that is looked at; one that is longer is off every
	// list.
	maxTarget = 2 << 10
	// maxScheme bounds a scheme of one server's own, and the name behind it.
	maxScheme = 64
)

// remote reports whether a target, of HTML or of Markdown, names anything but a place in the same
// document or relative to it.
func remote(s string, markdown bool) bool {
	if leavesHost(s) {
		return true
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c) || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.':
		case c == ':':
			return i > 0 && isLetter(s[0])
		case c == '/' && i == 0 && len(s) > 1 && (isWord(rune(s[1])) || s[1] == '.'), c == '/' && i > 0, c == '?', c == '#', c == '_':
			return false
		case len(s) >= maxTarget:
			return true
		default:
			inHTML, inMarkdown := readTargets(s)
			return isRemote(inHTML) || markdown && isRemote(inMarkdown) // not all renderers encode what is no URL
		}
	}
	return false
}

// isRemote is remote for a target as a browser reads it.
func isRemote(s string) bool {
	i := strings.IndexFunc(s, func(r rune) bool { return !isWord(r) && r != '+' && r != '-' && r != '.' || r == '_' })
	return leavesHost(s) || i > 0 && s[i] == ':' && isLetter(s[0])
}

// Resource reports whether a link to a resource may be passed on. Servers have
// schemes of their own; those that a browser or an editor acts on are none of
// them. A list of targets holds for http and https.
func (l Links) Resource(uri string) bool {
	t, _ := readTargets(uri)
	scheme, _, ok := strings.Cut(t, ":")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "http", scheme == "https":
		return l.allow == nil && !strings.Contains(t, `\`) || l.keeps(uri, false)
	case scheme == "file": // of the server's machine
	case taken(scheme):
		return false
	}
	return ok && t == uri
}

// isScheme reports whether a text can be no more than a scheme.
func isScheme(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !isWord(r) && r != '+' && r != '-' && r != '.' }) < 0
}
