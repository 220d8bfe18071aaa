package sanitize

import "strings"

// An element is what is known of an element of HTML.
type element struct {
	name     string
	attrs    *attrs // those that it may have, with their grammars; nil if it is not on the list
	weight   int    // what it takes of maxDeep in another one, see growing
	void     bool   // it has no end
	unclosed bool   // its end tag may be left out, so that another one closes it
	bare     bool   // it stays without attributes that only load, and is none of the profile html
}

// elements are those of HTML.
var elements = func() *names[*element] {
	attrs := allowed()
	of := make(map[string]*element)
	for name := range words(`a abbr acronym address applet area article aside audio b base bdi bdo big blockquote body br button
	canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fencedframe
	fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins kbd
	 label legend li link listing main map mark marquee math menu menuitem meta meter nav nobr noembed noframes noscript
	object ol optgroup option output p param picture plaintext portal pre progress q rb rp rt rtc ruby s samp script search section select
	selectedcontent slot small source span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead
	time title tr track tt u ul var video wbr xmp`) {
		of[name] = &element{name: name, attrs: attrs[name], weight: growing[name], void: holdNothing[name], unclosed: mayBeUnclosed[name], bare: ofPage[name]}
	}
	return namesOf(of)
}()

// loading are the attributes by which elements of HTML load, leave the page or change it.
var loading = namesOf(words("src srcdoc data code codebase classid archive object type http-equiv content attributename"))

// A meaning is that of an attribute's value, of an element that HTML does not have.
type meaning uint8

const (
	address  meaning = 1 + iota // a URL, or several of them
	declared                    // declarations of CSS
	ofAll                       // what it is on every element
	valued                      // likewise, if it has a value
)

// attributes are those that mean something on an element that HTML does not have, or that
// some readers follow there.
var attributes = namesOf(map[string]meaning{
	"src": address, "background": address, "poster": address, "lowsrc": address, "dynsrc": address, "icon": address, "ping": address, "attributionsrc": address,
	"srcset": address, "imagesrcset": address, "href": address, "xlink:href": address, "action": address, "formaction": address, "longdesc": address,
	"cite": address, "manifest": address, "style": declared,
	"hidden": ofAll, "popover": ofAll, "inert": ofAll, "contenteditable": ofAll, "autofocus": ofAll, "focusgroup": ofAll, "headingreset": ofAll,
	"accesskey": valued, "tabindex": valued, "draggable": valued, "slot": valued, "part": valued, "exportparts": valued, "anchor": valued, "is": valued,
	"interestfor": valued, "headingoffset": valued, "nonce": valued, "commandfor": valued, "popovertarget": valued, "attributename": valued,
})

// alone reports whether an attribute means something without a value on every element.
func alone(name string) bool {
	return len(name) >= len("inert") && strings.IndexByte("hpicaf", name[0]|0x20) >= 0 && attributes.get(name) == ofAll
}

// notAttributes are words that do nothing without a value, as they are in Array<A extends B>
// and <a number>.
var notAttributes = namesOf(words("extends super keyof typeof in as infer null undefined string number boolean any unknown never void const mut dyn impl where int float bool index name id key value path file number text letter or and of the to your"))

// growing are the elements that make letters smaller or larger, or move what they hold, the
// more so the deeper they are in each other, and how much of maxDeep each takes.
var growing = map[string]int{
	"small": 4, "sub": 4, "sup": 4, "big": 6, "rt": 12, "h1": 12, "h2": 8, "h3": 6, "h4": 2, "h5": 4, "h6": 12,
	"blockquote": 2, "ul": 2, "ol": 2, "dl": 1, "dd": 2, "dir": 2, "menu": 2, "figure": 2, "fieldset": 1, "table": 1,
}

// mayBeUnclosed are the elements whose end tag may be left out, and holdNothing those without one.
var (
	mayBeUnclosed = words("li p dd dt td th tr tbody thead tfoot caption colgroup option rb")
	holdNothing   = words("area base br col frame hr image img input link meta param source wbr html head body")
)

// grammar returns that of an attribute on the list, nil for one that is not. The element is
// nil for one that HTML does not have.
func (a *attr) grammar(e *element) *grammar {
	of := everywhere
	if e != nil && e.attrs != nil {
		of = e.attrs
	}
	if len(a.name) > 5 && a.name[4] == '-' && strings.EqualFold(a.name[:5], "data-") {
		return of.get("data-*")
	}
	return of.get(a.name)
}
