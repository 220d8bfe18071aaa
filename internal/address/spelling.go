package address

import (
	"crypto/sha256"
	"html"
	"math/big"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A reader's browser, mail program or wallet takes more for an address than a specification
// does: full-width marks (UTS 46), HTML's character references, backslashes and missing
// slashes after a scheme (WHATWG URL), what has no scheme at all. These are read here in
// one spelling each, before [Of] looks.

// readable returns a text in which the marks of addresses are spelt in one way.
func readable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		text = strings.Map(asciiMark, text)
	}
	if strings.Contains(text, "&") {
		text = html.UnescapeString(text)
	}
	if strings.ContainsAny(text, "([{") {
		text = wordedMarks.ReplaceAllStringFunc(text, func(m string) string {
			if strings.ContainsAny(m, "aA") {
				return "@"
			}
			return "."
		})
	}
	if strings.Contains(text, `"@`) {
		text = quotedName.ReplaceAllString(text, "$1@")
	}
	if strings.Contains(text, "@[") {
		text = literalHost.ReplaceAllString(text, "@$1")
	}
	if namesScheme(text) {
		text = schemes.ReplaceAllStringFunc(text, func(m string) string {
			scheme, rest, _ := strings.Cut(m, ":")
			return scheme + "://" + strings.ReplaceAll(strings.TrimLeft(rest, `/\`), `\`, "/")
		})
	}
	return text
}

var (
	// wordedMarks matches marks that are written as words: a(at)b(dot)example.
	wordedMarks = regexp.MustCompile(`(?i) ?(?:\(at\)|\[at\]|\{at\}|\(dot\)|\[dot\]|\{dot\}) ?`)
	// quotedName matches the quoted name of a mailbox, literalHost the number of a host after an @ (RFC 5321, section 4.1.2).
	quotedName  = regexp.MustCompile(`"([^"\s@]{1,64})"@`)
	literalHost = regexp.MustCompile(`(?i)@\[(?:IPv6:)?([0-9a-f.:]{2,45})\]`)
)

// namesScheme reports whether a scheme that every browser knows stands before a colon.
func namesScheme(text string) bool {
	for rest := text; ; {
		before, after, found := strings.Cut(rest, ":")
		if !found {
			return false
		}
		for _, scheme := range [...]string{"http", "https", "ws", "wss", "ftp"} {
			if n := len(before) - len(scheme); n >= 0 && strings.EqualFold(before[n:], scheme) {
				return true
			}
		}
		rest = after
	}
}

// schemes matches an address whose scheme every browser knows, with any slashes after it,
// to the end of the word.
var schemes = regexp.MustCompile(`(?i)\b(?:https?|wss?|ftp):[/\\]*[^\s/\\"'<>()\[\]{}|,;` + "`" + `][^\s"'<>()\[\]{}|,;` + "`" + `]*`)

// asciiMark returns the mark that a character of another script stands for in an address,
// and drops what browsers drop from the name of a host.
func asciiMark(r rune) rune {
	switch r {
	case '。', '．', '｡', '﹒':
		return '.'
	case '＠', '﹫':
		return '@'
	case '／', '⁄', '∕':
		return '/'
	case '：', '﹕':
		return ':'
	case '？', '﹖':
		return '?'
	case '＃', '﹟':
		return '#'
	case '％', '﹪':
		return '%'
	case '\u00ad', '\u200b', '\u2060', '\ufeff':
		return -1
	}
	return r
}

// unescaped returns a word whose @, dots and slashes are percent-encoded as it is read,
// unless it is a URL: there they make a difference.
func unescaped(word string) string {
	if !strings.Contains(word, "%") || strings.Contains(word, "://") {
		return word
	}
	if plain, err := url.PathUnescape(word); err == nil && !strings.ContainsFunc(plain, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return plain
	}
	return word
}

// bare returns the one spelling of an address that has no scheme, and no path either
// perhaps: //evil.example/x, evil.example?d=1, evil.example:8080, 203.0.113.5/x.
func bare(v string) string {
	rest := strings.TrimPrefix(v, "//")
	end := strings.IndexAny(rest, ":/?#")
	switch {
	case end < 0 && len(rest) < len(v) && onInternet(rest):
		return link(rest) // //evil.example
	case end <= 0:
		return ""
	}
	host, tail := rest[:end], rest[end:]
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		if tail[0] == '/' && digits(tail[1:]) { // 10.0.0.0/8 is a range of addresses
			return ""
		}
		return link(rest)
	}
	switch {
	case !onInternet(host):
		return ""
	case tail[0] == '/':
		return link(rest)
	case strings.Count(host, ".") == 1 && fileEndings[host[strings.IndexByte(host, '.')+1:]]: // main.rs:12, README.md#use
		return ""
	case tail[0] == ':' && !port.MatchString(tail), strings.HasPrefix(tail, "?."), len(tail) == 1: // a ? b : c, a?.b
		return ""
	}
	return link(rest)
}

var port = regexp.MustCompile(`^:[0-9]{1,5}(?:[/?#]|$)`)

// onInternet reports whether a host has a top-level domain by which programs that make
// links of texts know one: a country's, a common one, or one that is kept for documents and
// for networks of one's own (RFC 2606, RFC 6761, RFC 6762).
func onInternet(host string) bool {
	return domain(host) && topDomains[strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])]
}

var (
	topDomains = wordSet(`example test invalid localhost local internal onion lan home
		com org net edu gov mil int info biz name pro aero asia coop museum jobs mobi travel tel xxx app dev xyz top site online store shop club live
		tech cloud page link click icu vip work world today space fun website email network digital agency life news blog wiki zone host press
		ltd group center company services solutions systems software studio media social chat video photos finance bank money exchange support
		ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca cc cd cf cg ch ci ck cl cm
		cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw
		gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc
		md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt
		pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz
		ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw`)
	// fileEndings are top-level domains by which the names of files end more often.
	fileEndings = wordSet("md rs py sh pl ps cc so ml st tf vi")
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// telephone matches a number with its country (E.164), in groups.
var telephone = regexp.MustCompile(`(?:^|[^0-9A-Za-z+])(\+[1-9](?:[ ./()-]{0,2}[0-9]){6,14})(?:[^0-9]|$)`)

// telephones calls f with the one spelling of each telephone number in a line: one in
// groups, or of at least ten digits.
func telephones(line string, f func(string)) {
	for _, m := range telephone.FindAllStringSubmatch(line, -1) {
		compact := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r == '+' {
				return r
			}
			return -1
		}, m[1])
		if len(compact) < len(m[1]) && len(compact) > 7 || len(compact) > minAccount {
			f(compact)
		}
	}
}

var (
	ethereum = regexp.MustCompile(`^0[xX][0-9a-fA-F]{40}$`)
	segwit   = regexp.MustCompile(`^(?i:bc|tb|ltc)1[02-9ac-hj-np-zAC-HJ-NP-Z]{11,87}$`) // BIP 173
	base58   = regexp.MustCompile(`^[1-9A-HJ-NP-Za-km-z]{26,36}$`)
)

// wallet returns the address of a wallet in its one spelling, "" if it is none. A word in
// base 58 is one if its checksum is right, as of one word in four thousand million.
func wallet(v string) string {
	switch {
	case len(v) < 14 || len(v) > 92 || !strings.ContainsAny(v[:4], "01234") || strings.ContainsAny(v, "./@:-_"):
		return "" // most words, at little cost
	case ethereum.MatchString(v), segwit.MatchString(v):
		return strings.ToLower(v)
	case base58.MatchString(v) && checked58(v):
		return v
	}
	return ""
}

const alphabet58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// checked58 reports whether a text in base 58 ends in the checksum of the rest.
func checked58(v string) bool {
	n := new(big.Int)
	for i := range len(v) {
		n.Mul(n, big.NewInt(58)).Add(n, big.NewInt(int64(strings.IndexByte(alphabet58, v[i]))))
	}
	if n.BitLen() > 25*8 {
		return false
	}
	b := n.FillBytes(make([]byte, 25)) // a version, 20 bytes and the checksum
	first := sha256.Sum256(b[:21])
	sum := sha256.Sum256(first[:])
	return string(sum[:4]) == string(b[21:])
}
