package sanitize

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"

	"github.com/wasmgate/wasmgate/internal/lazy"
)

//go:generate env WASMGATE_WRITE=allowlist go test -run TestAllowlistInDocs .

// An allowance is a row of the list of what stays: elements of HTML, and which attributes
// they may have, each with the grammar of its values.
type allowance struct {
	elements string
	attrs    string // name=grammar; one without a grammar has no value
}

// allowances are the list. Elements of HTML that are not on it, and attributes of those that are,
// are neutralized. A name that HTML does not have is no element to a browser: it shows what it
// holds, and keeps its attributes but for the ones that every element has.
var allowances = []allowance{
	{"", "class=words id=anchor lang=word dir=direction title=text role=word style=style aria-hidden=word aria-label=text aria-describedby=anchor data-*=plain"},
	{"a", "href=link name=anchor-or-word rel=relation target=window"},
	{"abbr acronym address article aside b bdi big br center cite code dfn em figcaption footer header hgroup i kbd main mark nav rb ruby rt s samp search section small strike strong sub sup summary tt u var wbr", ""},
	{"blockquote del ins q", "cite=link datetime=plain"},
	{"caption col colgroup div h1 h2 h3 h4 h5 h6 hr p pre tbody td tfoot th thead tr table", "align=position valign=position width=width height=width markdown=word"},
	{"col colgroup", "span=number"},
	{"data", ""},
	{"dd dl dt dir figure menu ul", ""},
	{"details", "open"},
	{"font", "color=colour size=font-size"},
	{"form label legend fieldset link meta object option output button html head body image map param frame base", ""},
	{"html", "xmlns=plain"},
	{"hr", "noshade size=number"},
	{"img", "src=picture alt=text width=size height=size align=position border=number loading=word decoding=word srcset=pictures sizes=plain"},
	{"input", "type=checkbox checked disabled"},
	{"li", "value=number"},
	{"link", "rel=quiet href=address title=text type=plain hreflang=word"},
	{"meta", "charset=word"},
	{"ol", "start=number type=numbering reversed"},
	{"picture", "width=size height=size"},
	{"source", "srcset=pictures media=media type=plain width=size height=size"},
	{"span", ""},
	{"table", "border=number cellpadding=number cellspacing=number summary=text"},
	{"td th", "colspan=number rowspan=number scope=word nowrap"},
	{"time", "datetime=plain"},
}

// A grammar says what values stay, in words and as an expression; those of addresses are
// judged as targets, too.
type grammar struct {
	words  string
	values func() *regexp.Regexp
	target func(l Links, value string) string // returns the rule by which an address or a style is off
}

var grammars = map[string]*grammar{
	"text":           {words: "any words", values: whole(`[^<>]*`)},
	"plain":          {words: "letters, digits, spaces and `.,:/+_-`, no address", values: whole(`[\w .,+-]*(?:[:/][\w .,+-]+)*`)},
	"word":           {words: "one word", values: whole(`[\w-]{0,40}`)},
	"words":          {words: "words", values: whole(`[\w\s:/.-]*`)},
	"anchor":         {words: "a name that no script can take for one of its own, such as `user-content-a` or `fn:1`", values: whole(`\w+(?:[-.:][\w.:-]*)+|\d\w*`)},
	"anchor-or-word": {words: "a name", values: whole(`[\w.:-]{1,100}`)},
	"direction":      {words: "`ltr`, `rtl`, `auto`", values: whole(`ltr|rtl|auto`)},
	"position":       {words: "`left`, `right`, `center`, `middle`, `top`, `bottom`, `justify`, `baseline`", values: whole(`left|right|center|middle|top|bottom|justify|baseline|absmiddle`)},
	"width":          {words: "up to 999, in `px` or without a unit, and up to 100%", values: whole(`[1-9]\d{0,2}(?:px)?|(?:100|[1-9]\d?(?:\.\d+)?)%`)},
	"size":           {words: "up to 1999, in `px` or without a unit, up to 100%, or `auto`", values: whole(`auto|[1-9]\d{0,2}(?:px)?|1\d{3}(?:px)?|(?:100|[1-9]\d?(?:\.\d+)?)%`)},
	"number":         {words: "up to three digits", values: whole(`\d{1,3}`)},
	"numbering":      {words: "`1`, `a`, `A`, `i`, `I`", values: whole(`[1aAiI]`)},
	"font-size":      {words: "2 to 7, `+1` to `+4`", values: whole(`[2-7]|\+[1-4]`)},
	"checkbox":       {words: "`checkbox`", values: whole(`checkbox`)},
	"colour":         {words: "a colour that can be read on white and on black: " + listed(readable) + ", and such in hex", values: whole(colours)},
	"relation":       {words: "kinds of links that load nothing", values: whole(`(?:` + strings.Join(quietRels, "|") + `|\s)*`)},
	"quiet":          {words: "kinds of links that load nothing", values: whole(`(?:` + strings.Join(quietRels, "|") + `|\s)*`)},
	"window":         {words: "`_blank`, `_self`", values: whole(`_blank|_self|blank`)},
	"media":          {words: "`(prefers-color-scheme: dark)`, `(max-width: 600px)` and the like", values: whole(`\((?:prefers-color-scheme|prefers-reduced-motion|m(?:in|ax)-width): ?[\w-]+\)`)},
	"style": {words: "declarations of the properties below", target: func(_ Links, value string) string {
		switch {
		case styles().MatchString(value):
			return ""
		case len(readCSS(value)) > 0:
			return ruleImage
		}
		return ruleHidden
	}},
	"link":     {words: "a target of links, see below", target: func(l Links, value string) string { return l.off(value, false) }},
	"address":  {words: "an address, which nothing follows"},
	"picture":  {words: "a target of images, see below", target: func(l Links, value string) string { return l.off(value, true) }},
	"pictures": {words: "a list of targets of images", target: func(l Links, value string) string { return l.anyOff(value) }},
}

// quietRels are the kinds of links that do nothing to a page.
var quietRels = []string{"self", "alternate", "canonical", "author", "license", "help", "via", "edit", "related", "enclosure", "replies", "next", "prev", "up", "first", "last", "noopener", "noreferrer", "nofollow"}

// readable are the colours in which letters are seen on every page: their contrast to white
// and to black is at least 2.
const readable = "red green blue gray grey purple teal olive brown crimson fuchsia magenta"

// inHex are colours whose green, and red, make them neither too dark nor too light.
const inHex = `#(?:[0-9a-f][5-8][0-9a-f]|[9a-f][0-4][0-9a-f]|[0-9][9a][0-9a-f])|` +
	`#(?:[0-9a-f]{2}[5-8][0-9a-f]{3}|[9a-f][0-9a-f][0-4][0-9a-f]{3}|[0-9][0-9a-f][9a][0-9a-f]{3})`

var colours = strings.ReplaceAll(readable, " ", "|") + "|" + inHex

// properties are those of CSS that a style may declare, with the grammar of their values.
var properties = []struct{ name, values string }{
	{"color", colours},
	{"font-style", "normal|italic|oblique"},
	{"font-weight", "normal|bold|bolder|lighter|[1-9]00"},
	{"height", size}, {"max-height", size}, {"max-width", size},
	{"text-align", "left|right|center|justify|start|end"},
	{"text-decoration", "none|underline|overline|line-through"},
	{"vertical-align", "baseline|top|middle|bottom|sub|super|text-top|text-bottom"},
	{"width", size},
}

const size = `auto|[1-9]\d{0,2}px|(?:100|[1-9]\d?)%|[1-9]\d?r?em`

// styles are the declarations of a style.
var styles = whole(`\s*(?:` + declarations() + `)?(?:\s*;\s*(?:` + declarations() + `)?)*\s*`)

func declarations() string {
	var all []string
	for _, p := range properties {
		all = append(all, p.name+`\s*:\s*(?:`+p.values+`)`)
	}
	return strings.Join(all, "|")
}

// whole returns the expression for a value as a whole, in letters of either case.
func whole(values string) func() *regexp.Regexp { return lazy.Regexp(`(?i)^(?:` + values + `)$`) }

func listed(names string) string { return "`" + strings.ReplaceAll(names, " ", "`, `") + "`" }

// attrs are the attributes of elements with their grammars; nil is that of an attribute
// without a value.
type attrs = names[*grammar]

// everywhere are the attributes that every element may have.
var everywhere = namesOf(attrsOf(allowances[0].attrs))

func attrsOf(list string) map[string]*grammar {
	of := make(map[string]*grammar)
	for attr := range strings.FieldsSeq(list) {
		name, g, _ := strings.Cut(attr, "=")
		of[name] = grammarOf(g)
	}
	return of
}

// allowed returns the attributes that elements may have, by element. Elements with the same ones
// share a table.
func allowed() map[string]*attrs {
	lists := make(map[string]string)
	for _, a := range allowances[1:] {
		for element := range strings.FieldsSeq(a.elements) {
			lists[element] += " " + a.attrs
		}
	}
	tables, elements := make(map[string]*attrs), make(map[string]*attrs)
	for element, list := range lists {
		if tables[list] == nil {
			tables[list] = namesOf(attrsOf(list + " " + allowances[0].attrs))
		}
		elements[element] = tables[list]
	}
	return elements
}

// empty is the grammar of attributes without a value.
var empty = &grammar{words: "no value", values: whole(`|checked|disabled|open|reversed|nowrap|noshade|true`)}

func grammarOf(name string) *grammar {
	switch g := grammars[name]; {
	case name == "":
		return empty
	case g == nil:
		panic("no grammar " + name)
	default:
		return g
	}
}

var linkGrammar, wordsGrammar = grammars["link"], grammars["words"]

// off returns the rule by which a value is none of the grammar's, or "".
func (g *grammar) off(l Links, value string) string {
	switch {
	case g == linkGrammar && l.allow == nil && ordinary(value):
		return ""
	case runs(value):
		return ruleURL
	case g.target != nil:
		return g.target(l, value)
	case g.values == nil || g == wordsGrammar && plainWord(value) || g.values().MatchString(value):
		return ""
	}
	return ruleElement
}

// plainWord is the quick answer for the values of most attributes.
func plainWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isWord(rune(s[i])) && s[i] != '-' {
			return false
		}
	}
	return true
}

// policy returns the list as one of bluemonday's, for the profile html. It has neither elements of
// the head of a page, which show nothing, nor lists of images, which it does not read.
func policy(l Links) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true)
	p.RequireNoFollowOnFullyQualifiedLinks(true)
	for _, scheme := range []string{"http", "https", "mailto", "tel", "data"} {
		p.AllowURLSchemeWithCustomPolicy(scheme, func(u *url.URL) bool { return l.Link(u.String()) || l.Image(u.String()) })
	}
	p.RewriteSrc(func(u *url.URL) {
		if !l.Image(u.String()) {
			*u = url.URL{}
		}
	})
	for _, a := range allowances {
		elements := slices.DeleteFunc(strings.Fields(a.elements), func(name string) bool { return ofPage[name] })
		p.AllowElements(elements...)
		p.AllowNoAttrs().OnElements(elements...)
		for attr := range strings.FieldsSeq(a.attrs) {
			name, g, _ := strings.Cut(attr, "=")
			switch grammar := grammarOf(g); {
			case name == "style", name == "srcset":
			case name == "data-*":
				p.AllowDataAttributes()
			case a.elements == "" && grammar.values != nil:
				p.AllowAttrs(name).Matching(grammar.values()).Globally()
			case grammar.values != nil:
				p.AllowAttrs(name).Matching(grammar.values()).OnElements(elements...)
			default:
				p.AllowAttrs(name).OnElements(elements...)
			}
		}
	}
	for _, property := range properties {
		p.AllowStyles(property.name).Matching(whole(property.values)()).Globally()
	}
	return p
}

// ofPage are elements on the list that belong in the head of a page, or have a meaning in another
// element only.
var ofPage = words("html head body base link meta object param frame image map form option output button source picture")
