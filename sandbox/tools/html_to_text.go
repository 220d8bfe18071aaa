package tools

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

const (
	maxLinks = 1000 // in the list of one page's links
	maxDepth = 512  // elements inside each other, as browsers bound it
)

var htmlToText = tool.Tool{
	Name:  "html_to_text",
	Title: "HTML to text",
	Description: "Turns an HTML page into readable text: headings, lists, tables and preformatted blocks keep their shape; " +
		"scripts, styles and what the markup hides are left out. Links appear as [1], [2] and are listed.",
	InputSchema: []byte(`{"type":"object","properties":{
		"html":{"type":"string","description":"The page, or a part of one."},
		"links":{"type":"boolean","default":true,"description":"Whether to number and list the links."},
		"max_chars":{"type":"integer","minimum":1,"maximum":200000,"default":50000,"description":"Cut the text after this many characters."}},
		"required":["html"],"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"title":{"type":"string","description":"The page's title; empty if it has none."},
		"text":{"type":"string","description":"The page's text."},
		"links":{"type":"array","items":{"type":"string"},"description":"The targets of the links, the one of [1] first."},
		"truncated":{"type":"boolean","description":"True if the text was cut."}},
		"required":["title","text","links","truncated"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runHTMLToText),
}

type htmlToTextIn struct {
	HTML     string `json:"html"`
	Links    *bool  `json:"links"`
	MaxChars *int   `json:"max_chars"`
}

type htmlToTextOut struct {
	Title     string   `json:"title"`
	Text      string   `json:"text"`
	Links     []string `json:"links"`
	Truncated bool     `json:"truncated"`
}

func runHTMLToText(in htmlToTextIn) (htmlToTextOut, error) {
	limit, err := tool.Bounded("max_chars", in.MaxChars, 50_000, 1, 200_000)
	if err != nil {
		return htmlToTextOut{}, err
	}
	p := page{withLinks: in.Links == nil || *in.Links, links: []string{}}
	for t := range tokens(in.HTML) {
		p.token(t)
		if len(p.elements) > maxDepth {
			return htmlToTextOut{}, fmt.Errorf("argument html: elements nest deeper than %d", maxDepth)
		}
	}
	out := htmlToTextOut{Title: p.title, Text: strings.TrimSpace(p.text.String()), Links: p.links}
	if utf8.RuneCountInString(out.Text) > limit {
		out.Text, out.Truncated = string([]rune(out.Text)[:limit]), true
	}
	return out, nil
}

// A page collects the text of a document.
type page struct {
	text      strings.Builder
	title     string
	links     []string
	withLinks bool

	elements []token // the open ones, outermost first
	hidden   int     // how many of the open elements hide their content
	pre      int     // how many of the open elements are <pre>
	lists    []int   // the next number of each open list; 0 for <ul>
	breaks   int     // line feeds that are due before the next text
	space    bool    // a space is due before the next text
}

// words makes a set of element names.
func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

var (
	void   = words("area base br col embed hr img input link meta param source track wbr")
	unseen = words("script style template noscript iframe object svg math canvas audio video select textarea datalist title")
	// blocks begin and end a line; paragraphs have an empty line around them.
	paragraphs = words("p h1 h2 h3 h4 h5 h6 pre blockquote table ul ol dl section article figure")
	blocks     = words("div li tr dt dd header footer main nav aside form fieldset address caption figcaption details summary body html")
	// ended says which innermost elements a start tag ends, because HTML lets
	// their end tags be left out.
	ended = map[string]map[string]bool{
		"li": words("p li"), "dt": words("p dt dd"), "dd": words("p dt dd"),
		"td": words("p td th"), "th": words("p td th"), "tr": words("p td th tr"), "option": words("option"),
	}
)

func isBlock(name string) bool { return blocks[name] || paragraphs[name] }

func (p *page) token(t token) {
	switch t.kind {
	case startTag:
		ends := ended[t.name]
		if ends == nil && isBlock(t.name) {
			ends = map[string]bool{"p": true}
		}
		for len(p.elements) > 0 && ends[p.elements[len(p.elements)-1].name] {
			p.pop()
		}
		p.push(t)
		if void[t.name] {
			p.pop()
		}
	case endTag:
		// An end tag without its start tag is ignored.
		if i := slices.IndexFunc(p.elements, func(e token) bool { return e.name == t.name }); i >= 0 {
			for open := true; open; {
				open = p.elements[len(p.elements)-1].name != t.name
				p.pop()
			}
		}
	default:
		if len(p.elements) > 0 && p.elements[len(p.elements)-1].name == "title" && p.title == "" {
			p.title = strings.Join(strings.Fields(t.text), " ")
		}
		p.write(t.text)
	}
}

// push opens an element and writes what stands before its content.
func (p *page) push(t token) {
	p.elements = append(p.elements, t)
	if hides(t) {
		p.hidden++
	}
	if isBlock(t.name) {
		p.line(paragraphs[t.name] && len(p.lists) == 0)
	}
	switch t.name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.write(strings.Repeat("#", int(t.name[1]-'0')) + " ")
	case "br":
		p.breaks, p.space = p.breaks+1, false
	case "hr":
		p.line(true)
		p.write("---")
		p.line(true)
	case "img":
		if alt := t.attributes["alt"]; alt != "" {
			p.write("[image: " + alt + "]")
		}
	case "pre":
		p.pre++
	case "ul":
		p.lists = append(p.lists, 0)
	case "ol":
		p.lists = append(p.lists, 1)
	case "li":
		p.item()
	case "td", "th":
		if p.breaks == 0 {
			p.write(" | ")
		}
	}
}

// pop closes the innermost element and writes what stands after its content.
func (p *page) pop() {
	t := p.elements[len(p.elements)-1]
	p.elements = p.elements[:len(p.elements)-1]
	switch t.name {
	case "pre":
		p.pre--
	case "ul", "ol":
		p.lists = p.lists[:len(p.lists)-1]
	case "a":
		p.link(t.attributes["href"])
	}
	if isBlock(t.name) {
		p.line(paragraphs[t.name] && len(p.lists) == 0)
	}
	if hides(t) {
		p.hidden--
	}
}

func (p *page) link(href string) {
	if !p.withLinks || p.hidden > 0 || href == "" || strings.HasPrefix(href, "#") || len(p.links) == maxLinks {
		return
	}
	i := slices.Index(p.links, href)
	if i < 0 {
		i = len(p.links)
		p.links = append(p.links, href)
	}
	p.write(fmt.Sprintf(" [%d]", i+1))
}

// item writes the mark of a list's item, indented by the lists around it.
func (p *page) item() {
	if p.hidden > 0 {
		return
	}
	mark, depth := "- ", len(p.lists)
	if depth > 0 && p.lists[depth-1] > 0 {
		mark = fmt.Sprintf("%d. ", p.lists[depth-1])
		p.lists[depth-1]++
	}
	p.flush()
	p.text.WriteString(strings.Repeat("  ", max(0, depth-1)) + mark)
}

// line ends the current line; empty asks for an empty one after it.
func (p *page) line(empty bool) {
	p.space = false
	p.breaks = max(p.breaks, 1)
	if empty {
		p.breaks = max(p.breaks, 2)
	}
}

// flush writes the line feeds that are due. An empty line never follows
// another.
func (p *page) flush() {
	if p.text.Len() > 0 {
		p.text.WriteString("\n\n"[:min(p.breaks, 2)])
	}
	p.breaks, p.space = 0, false
}

// whiteSpace is what HTML collapses; a no-break space is none of it.
const whiteSpace = " \t\r\n\f"

func isSpace(c rune) bool { return strings.ContainsRune(whiteSpace, c) }

// write appends text; outside of <pre> its white space collapses.
func (p *page) write(s string) {
	if p.hidden > 0 || s == "" {
		return
	}
	if p.pre > 0 {
		p.flush()
		p.text.WriteString(s)
		return
	}
	for i, word := range strings.FieldsFunc(s, isSpace) {
		if i > 0 || isSpace(rune(s[0])) {
			p.space = p.breaks == 0
		}
		if p.space && p.text.Len() > 0 && !strings.HasSuffix(p.text.String(), " ") {
			p.text.WriteByte(' ')
		}
		p.flush()
		p.text.WriteString(word)
	}
	if isSpace(rune(s[len(s)-1])) {
		p.space = p.breaks == 0
	}
}

// hides reports whether a reader does not see the content of an element: by
// its kind, or because the markup says so. Text that no reader sees is how
// pages speak to models behind the reader's back.
func hides(t token) bool {
	if void[t.name] {
		return false
	}
	_, hidden := t.attributes["hidden"]
	style := strings.ToLower(strings.Join(strings.Fields(t.attributes["style"]), ""))
	return unseen[t.name] || hidden || strings.EqualFold(t.attributes["aria-hidden"], "true") ||
		strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}
