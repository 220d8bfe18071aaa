package sanitize

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Drawing is [Sanitizer.Sanitize] for a text that is said to be a drawing in SVG. Under the
// profiles Text and HTML its tags stay, and with them what it hides, if nothing in it runs,
// loads or leads where links may not.
func (s *Sanitizer) Drawing(text string) (clean string, found []Finding) {
	if s.profile == Text || s.profile == HTML {
		if (&drawing{links: s.links}).passive(text) {
			s = &Sanitizer{profile: passive, links: s.links, max: s.max}
		}
	}
	return s.Sanitize(text)
}

// A drawing is judged as a reader of XML sees it, and as one of HTML does, which may find other
// elements in the same text.
type drawing struct {
	links Links
	depth int // how many drawings it is in
}

const (
	// maxDrawings bounds drawings in each other, and maxElements the elements.
	maxDrawings = 4
	maxElements = 200
)

func (d *drawing) passive(text string) bool {
	return d.depth < maxDrawings && d.passiveXML(text) && d.passiveHTML(text)
}

// A part is an element of a drawing.
type part struct{ space, name string }

// Namespaces, by the names that x/net/html has for them.
const (
	ofSVG   = "svg"
	ofHTML  = ""
	ofOther = "other" // of editors, and metadata
)

func spaceOf(uri string) string {
	switch uri {
	case "http://www.w3.org/2000/svg", "":
		return ofSVG
	case "http://www.w3.org/1999/xhtml":
		return ofHTML
	case "http://www.w3.org/1998/Math/MathML":
		return "math"
	}
	return ofOther
}

// passiveXML judges a drawing as a reader of XML sees it.
func (d *drawing) passiveXML(text string) bool {
	r := xml.NewDecoder(strings.NewReader(text))
	r.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if !asciiCharsets.MatchString(charset) {
			return nil, fmt.Errorf("the encoding %s is not supported", charset)
		}
		return in, nil
	}
	var open []part
	var css strings.Builder // of the style that is open
	drawn := false
	for {
		token, err := r.Token()
		if err != nil {
			return err == io.EOF && drawn
		}
		switch t := token.(type) {
		case xml.StartElement:
			p := part{spaceOf(t.Name.Space), t.Name.Local}
			if !drawn && p != (part{ofSVG, "svg"}) || len(open) == maxElements || !d.passiveElement(p) {
				return false
			}
			drawn = true
			for _, a := range t.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" && !d.passiveAttr(p, a.Name.Local, a.Value) {
					return false
				}
			}
			open = append(open, p)
			css.Reset()
		case xml.EndElement:
			if open[len(open)-1].isStyle() && !d.passiveCSS(css.String()) {
				return false
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && open[len(open)-1].isStyle() {
				css.Write(t)
			}
		case xml.ProcInst:
			if strings.EqualFold(t.Target, "xml-stylesheet") {
				return false
			}
		case xml.Directive:
			if strings.Contains(string(t), "[") { // entities
				return false
			}
		}
	}
}

// asciiCharsets are the encodings that have ASCII where ASCII has it.
var asciiCharsets = regexp.MustCompile(`(?i)^(?:utf-?8|us-ascii|iso-8859-\d+|windows-125\d)$`)

// passiveHTML judges a drawing as a page has it that it is put into.
func (d *drawing) passiveHTML(text string) bool {
	nodes, err := html.ParseFragment(strings.NewReader(text), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
	return err == nil && !slices.ContainsFunc(nodes, func(n *html.Node) bool { return !d.passiveNode(n) })
}

func (d *drawing) passiveNode(n *html.Node) bool {
	if n.Type == html.ElementNode {
		p := part{n.Namespace, n.Data}
		if p.space == ofSVG && strings.Contains(p.name, ":") {
			p.space = ofOther
		}
		if !d.passiveElement(p) {
			return false
		}
		for _, a := range n.Attr {
			if name := a.Key[strings.LastIndexByte(a.Key, ':')+1:]; a.Namespace != "xmlns" && !d.passiveAttr(p, name, a.Val) {
				return false
			}
		}
		if p.isStyle() {
			var css strings.Builder
			for c := range n.ChildNodes() {
				css.WriteString(c.Data)
			}
			if !d.passiveCSS(css.String()) {
				return false
			}
		}
	}
	for c := range n.ChildNodes() {
		if !d.passiveNode(c) {
			return false
		}
	}
	return true
}

func (p part) isStyle() bool { return p.space != ofOther && strings.EqualFold(p.name, "style") }

// drawn are the elements of SVG that a drawing may have.
var drawn = words(`a altglyph altglyphdef altglyphitem animate animatecolor animatemotion animatetransform circle clippath color-profile
	defs desc ellipse feblend fecolormatrix fecomponenttransfer fecomposite feconvolvematrix fediffuselighting fedisplacementmap
	fedistantlight fedropshadow feflood fefunca fefuncb fefuncg fefuncr fegaussianblur feimage femerge femergenode femorphology feoffset
	fepointlight fespecularlighting fespotlight fetile feturbulence filter font font-face font-face-format font-face-name font-face-src
	foreignobject g glyph glyphref hatch hatchpath hkern image line lineargradient marker mask mesh meshgradient meshpatch meshrow
	metadata missing-glyph mpath path pattern polygon polyline radialgradient rect set solidcolor stop style svg switch symbol text
	textpath title tref tspan use view vkern`)

// actingSVG are the elements of SVG that run or load, but for those that HTML has, too.
var actingSVG = words("handler listener font-face-uri")

// passiveElement reports whether an element does nothing: one of drawings, one of HTML that is on
// the list of profile text, or one of another language, which browsers do not know.
func (d *drawing) passiveElement(p part) bool {
	e := elements.get(p.name)
	switch p.space {
	case ofSVG:
		name := strings.ToLower(p.name)
		return drawn[name] || e == nil && !actingSVG[name]
	case ofHTML:
		return e != nil && e.attrs != nil && !e.bare && e.name != "input"
	}
	return p.space == ofOther
}

// shown are the elements that show what they name as a picture, in which nothing runs or loads.
var shown = words("image img feimage")

// passiveAttr reports whether an attribute, named without its prefix, does nothing.
func (d *drawing) passiveAttr(of part, name, value string) bool {
	name, element := strings.ToLower(name), strings.ToLower(of.name)
	switch {
	case name == "" || handler(name):
		return false
	case name == "base": // it moves what fragments are of
		return value == ""
	case name == "attributename":
		moved := strings.ToLower(strings.TrimSpace(value[strings.LastIndexByte(value, ':')+1:]))
		return moved != "" && moved != "href" && !handler(moved)
	case name == "href" && element == "a":
		return !runs(value) && d.links.Link(value)
	case strings.HasSuffix(name, "srcset"):
		return !slices.ContainsFunc(strings.Split(value, ","), func(one string) bool { return !d.passiveTarget(one, false) })
	case attributes.get(name) == address:
		return d.passiveTarget(value, shown[element])
	case name == "content" || strings.HasPrefix(name, "data-"): // what editors keep in a drawing
		return true
	}
	return d.passiveCSS(value)
}

// enclosed are the beginnings of data URLs that hold a picture or a font.
var enclosed = regexp.MustCompile(`(?i)^\s*data:(?:image/(?:png|jpe?g|gif|webp|avif|bmp)|font/[\w+-]+|application/(?:x-)?font-[\w-]+|application/octet-stream)[;,]`)

// passiveTarget reports whether a target that is fetched is in the drawing or next to it, or on
// the list; picture says that a drawing there is shown as a picture.
func (d *drawing) passiveTarget(target string, picture bool) bool {
	if enclosed.MatchString(target) || d.links.Image(target) {
		return true
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(target), "data:image/svg+xml")
	if !ok || !picture {
		return false
	}
	options, data, ok := strings.Cut(rest, ",")
	if !ok || !plainOptions.MatchString(options) {
		return false
	}
	data, err := url.PathUnescape(data)
	if err == nil && strings.HasSuffix(options, ";base64") {
		var b []byte
		b, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(data), ""), "="))
		data = string(b)
	}
	return err == nil && (&drawing{d.links, d.depth + 1}).passive(data)
}

// plainOptions are what data URLs of drawings may say.
var plainOptions = regexp.MustCompile(`(?i)^(?:;(?:charset=)?utf-?8)?(?:;base64)?$`)

// lists are the functions and rules of CSS that take targets in other forms than url(...).
var lists = []string{"image-set(", "image(", "cross-fade(", "@import"}

// pinned is a position that covers the page in which a drawing is.
var pinned = regexp.MustCompile(`position(?:\s|/\*.*?\*/)*:(?:\s|/\*.*?\*/)*(?:fixed|sticky|-webkit-sticky)`)

// passiveCSS reports whether a style fetches nothing and keeps its place.
func (d *drawing) passiveCSS(css string) bool {
	if !strings.ContainsAny(css, `(@\:`) {
		return true
	}
	css = plainCSS(css)
	if pinned.MatchString(css) || slices.ContainsFunc(lists, func(one string) bool { return strings.Contains(css, one) }) {
		return false
	}
	for _, f := range []string{"url(", "src("} {
		for _, rest := range strings.Split(css, f)[1:] {
			target := strings.Trim(until(rest, ")"), " \t\r\n\f\"'")
			if !d.passiveTarget(target, false) {
				return false
			}
		}
	}
	return true
}
