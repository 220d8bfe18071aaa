package provenance

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

const (
	// maxWords bounds the phrases that are taken from a user's words.
	maxWords = 8
	// maxPhrases bounds how many words of a prompt are taken as phrases, and not
	// one by one alone: a page.
	maxPhrases = 500
	// maxNaming bounds how many of them can name a record, whatever the size of their letters.
	maxNaming = 250
)

// Meet returns the values in a document that the session has met in from, and
// that are new to p. Of a tool's result it takes the content and the structured
// content, of any other document all of it. It keeps at most limit of them.
func (p Provenance) Meet(d doc.Doc, from Source, limit int) Met {
	return Read(p, Reading{From: d, Source: from}, limit)
}

// A Reading is a document that a session reads, and what is known of it.
type Reading struct {
	From    doc.Doc
	Source  Source
	Private bool // what it holds is not for everybody
	// Call is the ID of the call that brought it, Server and Tool are of the tool whose result it
	// is; "" if it is not a result. Said has the operator's labels of the tool.
	Call, Server, Tool string
	Said               ToolLabels
	// Own says that no outsider has chosen whose record the result is, so that the places Own of
	// its tool are of the account holder.
	Own bool
	// Made says that the call made what the result has ids of, and IDs are more ids that it
	// has made: see [Made].
	Made bool
	Used bool // From are arguments of a call, which vouches for none that only a listing has brought up
	IDs  []string
	// Structure reads a text that is no JSON as a document, nil reads none. Origins has
	// the places kept in which values were met.
	Structure func(text string) (doc.Doc, bool)
	Origins   bool
}

// Read is [Provenance.Meet] for a document about which more is known.
func Read(p Provenance, r Reading, limit int) Met {
	n := notes{met: make(map[uint64]Source), from: r.Source, known: p, room: limit, of: &r, used: r.Used && p.shown != nil}
	if r.Source == FromPrompt { // it comes again with each call
		prompt := promptForm + r.From.Text()
		if p.find(prompt) != 0 {
			return Met{}
		}
		n.add(prompt)
	}
	if r.Private {
		n.from |= fromPrivate
	}
	n.document(r.From)
	for _, id := range r.IDs {
		n.add(id)
	}
	return Met{n.met, n.places, n.lists, n.room < 0}
}

// notes collects the values that a document holds.
type notes struct {
	met    map[uint64]Source
	places map[uint64][]Origin // nil unless the lesson has them kept
	known  Provenance
	from   Source
	room   int // for values, below zero when there were more
	words  int // of the prompt, so far
	of     *Reading
	at     []byte // JSON Pointer of what is taken, as far as the lesson has it kept

	used  bool   // by a call: what a listing has brought up is left out
	label string // the operator's label of that place

	skipped map[string]bool // values that are not taken
	lists   []List
}

func (n *notes) add(form string) { n.addFrom(form, n.from) }

func (n *notes) addFrom(form string, from Source) {
	if n.room < 0 {
		return
	}
	key := hashOf(form)
	known := n.known.at(key)
	if known != 0 && known&fromPrivate == 0 {
		from &^= fromPrivate // it was no secret
	}
	if n.met[key]&from == from {
		return
	}
	n.place(key)
	if known&from == from {
		return
	}
	if n.met[key] != 0 {
		n.met[key] |= from
		return
	}
	if n.room--; n.room >= 0 {
		n.met[key] = from
	}
}

// place keeps where a value was met.
func (n *notes) place(key uint64) {
	if !n.of.Origins {
		return
	}
	o := Origin{Source: n.from.Names()[0], Call: n.of.Call, Server: n.of.Server, Tool: n.of.Tool, Pointer: string(n.at), Label: n.label}
	if n.places == nil {
		n.places = make(map[uint64][]Origin)
	}
	if was := n.places[key]; len(was) < originsOfOne && !slices.Contains(was, o) && len(n.places) <= maxOrigins {
		n.places[key] = append(was, o)
	}
}

// enter goes below a place, and returns how long the pointer was.
func (n *notes) enter(name string) int {
	was := len(n.at)
	if n.of.Origins {
		n.at = append(append(n.at, '/'), pointer.Escape(name)...)
	}
	return was
}

// document takes the values of a result, or of any other document.
func (n *notes) document(d doc.Doc) {
	content, structured := d.Get("content"), d.Get("structuredContent")
	if content.Kind() != doc.Array && structured.IsZero() {
		n.leaves(d, 0)
		return
	}
	read := n.of.Structure
	if !n.of.Said.places() { // no label says that its texts are documents
		read = nil
	}
	n.labelled(content, structured)
	n.takeLists(content, structured, read)
	n.leaves(structured, 0)
	i := 0
	for block := range content.Elements() {
		was := n.enter("content")
		n.enter(strconv.Itoa(i))
		n.enter("text")
		i++
		for name, v := range block.Members() {
			switch name {
			case "type", "mimeType", "annotations", "_meta", "data", "blob": // the protocol's words, and bytes
			case "text":
				n.text(v.Text(), 0)
			default:
				n.leaves(v, 0)
			}
		}
		n.at = n.at[:was]
	}
}

// takeLists takes the lists in what a result says that somebody outside may have written. A text
// that is no document is at the place of its block.
func (n *notes) takeLists(content, structured doc.Doc, read func(string) (doc.Doc, bool)) {
	if !n.of.Origins || n.of.Tool == "" || n.from&FromTrusted != 0 {
		return
	}
	l := lister{places: make(map[string]int)}
	if !structured.IsZero() {
		l.take(structured)
	} else {
		i := 0
		for block := range content.Elements() {
			text := block.Get("text").Text()
			if d, ok := document(text, read); ok {
				l.take(d)
			} else {
				l.at = append(l.at[:0], "/content/"+strconv.Itoa(i)+"/text"...)
				l.addresses(text)
				l.at = l.at[:0]
			}
			i++
		}
	}
	for _, one := range l.all {
		if !one.hidden && len(one.Values) > 1 {
			n.lists = append(n.lists, List{n.of.Tool, n.of.Call, one.Place, one.Values})
		}
	}
}

func (n *notes) leaves(d doc.Doc, nested int) {
	switch d.Kind() {
	case doc.Number:
		if n.skipped[string(d.Raw())] || n.used && n.known.brought(n.known.Of(d), "") {
			return
		}
		n.add(numberForm(string(d.Raw())))
		n.add(string(d.Raw()))
	case doc.String:
		n.leaf(d.Text(), nested)
	case doc.Array:
		i := 0
		for e := range d.Elements() {
			was := n.enter(strconv.Itoa(i))
			n.leaves(e, nested)
			n.at, i = n.at[:was], i+1
		}
	case doc.Object:
		for name, v := range d.Members() {
			was := n.enter(name)
			if !n.used || !n.known.brought(n.known.OfText(name), name) {
				n.value(name) // an object can be a list of addresses
			}
			n.leaves(v, nested)
			n.at = n.at[:was]
		}
	}
}

// leaf takes a string that is a value of its own in a structure. If it is trusted, only the whole
// is, and the addresses in it: a word of a title is no title.
func (n *notes) leaf(text string, nested int) {
	if _, ok := doc.Embedded(text); ok || n.from&FromTrusted == 0 {
		n.text(text, nested)
		return
	}
	if n.used && n.known.brought(n.known.OfText(text), text) {
		return
	}
	n.value(text)
	n.addresses(text)
}

// text takes a text as a whole, or as the JSON that it is, and by its lines.
func (n *notes) text(text string, nested int) {
	if inner, ok := doc.Embedded(text); ok && nested < doc.MaxNested {
		if nested == 0 {
			n.at = n.at[:0] // what is said is the document
		}
		n.leaves(inner, nested+1)
		return
	}
	n.value(text)
	for line := range strings.Lines(text) {
		if n.room < 0 {
			return
		}
		n.line(strings.TrimSpace(line))
	}
	n.addresses(text)
	if n.from&(fromPrivate|FromPrompt) != 0 { // the user's own words are no secret, even if others say them
		fingerprints(text, func(print string) bool { n.add(print); return n.room >= 0 })
	}
}

// line takes a line: as a whole, as an item of a list, as a field with a name, as cells of a table,
// as texts between quotation marks, and its words.
func (n *notes) line(line string) {
	if line == "" {
		return
	}
	n.value(line)
	item := strings.TrimLeft(strings.TrimLeft(line, "-*+"), " \t")
	if item != line {
		n.value(item)
	}
	if name, value, ok := strings.Cut(item, ": "); ok && len(name) <= maxFieldName {
		n.value(name)
		n.value(value)
	}
	for _, mark := range [...]string{"\t", "|", ","} {
		if strings.Contains(item, mark) && !strings.Contains(item, ", ") { // else it is a sentence
			for cell := range strings.SplitSeq(item, mark) {
				n.value(cell)
			}
		}
	}
	item = straight.Replace(item)
	n.quoted(item)
	n.wordsOf(item)
}

// maxFieldName bounds the name of a field, in bytes. Anything longer is a sentence with a colon.
const maxFieldName = 64

// straight has one mark for all that quote.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'")

// quoted takes the texts between quotation marks.
func (n *notes) quoted(line string) {
	for _, mark := range [...]string{`"`, "'", "`"} {
		if !strings.Contains(line, mark) {
			continue
		}
		parts := strings.Split(line, mark)
		for i := 1; i < len(parts)-1; i++ {
			n.value(parts[i])
			if n.from == FromPrompt { // a word between quotation marks is meant as a name
				n.add(nameForm + strings.ToLower(plain(parts[i])))
			}
		}
	}
}

// addresses takes the addresses in a text.
func (n *notes) addresses(text string) {
	address.In(text, func(a string) {
		n.add(addressForm + a)
		if n.from == FromPrompt {
			if origin, _ := originOf(a); origin != "" {
				n.add(originForm + origin)
			}
		}
	})
}

// wordsOf takes the words of a line, and from a user's words the phrases.
func (n *notes) wordsOf(line string) {
	words := strings.Fields(line)
	within := n.dates(words)
	for i, word := range words {
		if within[i] {
			continue
		}
		if of := beside(words, i); of != "" && len(word) <= maxValue {
			n.valueOf(trimmed(word), of)
			continue
		}
		n.value(trimmed(word))
		if _, value, ok := strings.Cut(word, "="); ok {
			n.value(trimmed(value))
		}
	}
	if n.from != FromPrompt {
		return
	}
	n.phrases(words)
	for _, word := range words[:min(len(words), maxPhrases)] {
		for _, name := range named(trimmed(word)) {
			n.value(name)
		}
		n.host(trimmed(word))
	}
	for _, number := range telephone.FindAllString(line, maxPhrases) {
		n.value(number)
		n.value(ungroup.Replace(number))
	}
}

var (
	// telephone matches a number as it is written within a country.
	telephone = regexp.MustCompile(`\(?\b[0-9]{3}\)?[ ./-]?[0-9]{3}[ ./-][0-9]{4}\b`)
	ungroup   = strings.NewReplacer("(", "", ")", "", " ", "", ".", "", "/", "", "-", "")
)

// named returns what a word of the user names besides itself: whose something is (Bob's), a
// channel or a person (#general, @bob), a number (#12), a folder (docs/), an owner and a
// repository (acme/site), and what a URL has in its path.
func named(word string) []string {
	var all []string
	if whose, ok := strings.CutSuffix(word, "'s"); ok {
		all = append(all, whose)
		word = whose
	}
	if bare := strings.TrimLeft(word, "#@"); bare != word {
		all = append(all, bare)
	}
	if folder := strings.TrimRight(word, "/"); folder != word {
		all = append(all, folder)
		word = folder
	}
	_, path, isURL := strings.Cut(word, "://")
	if _, below, ok := strings.Cut(path, "/"); isURL && ok {
		path, _, _ = strings.Cut(below, "?")
		path, _, _ = strings.Cut(path, "#")
		return append(all, strings.Split(path, "/")...)
	}
	if owner, repo, ok := strings.Cut(word, "/"); ok && owner != "" && owner != "." && owner != ".." && !strings.Contains(repo, "/") {
		all = append(all, owner, repo)
	}
	return all
}

// host takes a host that the user names without a scheme as the addresses to which it leads.
func (n *notes) host(word string) {
	if strings.ContainsAny(word, "@/:") {
		return
	}
	const port = ":443" // with one, main.rs is no host
	if a, ok := strings.CutSuffix(address.Of(word+port), port); ok && strings.HasPrefix(a, "https://") {
		n.addresses(a)
		n.addresses("http" + strings.TrimPrefix(a, "https"))
	}
}

// phrases takes each row of up to maxWords words: the names of what the user
// speaks of have several words, and no marks around them.
func (n *notes) phrases(words []string) {
	for i := range words {
		if n.words++; n.words > maxPhrases {
			return
		}
		for j := i + 2; j <= min(i+maxWords, len(words)); j++ {
			phrase := strings.TrimSuffix(trimmed(strings.Join(words[i:j], " ")), "'s")
			n.value(phrase)
			if n.words <= maxNaming {
				n.add(nameForm + strings.ToLower(phrase))
			}
		}
	}
}

// value takes one value in all of its forms.
func (n *notes) value(v string) {
	if len(v) > maxValue {
		return
	}
	n.valueOf(v, currencyOf(plain(v)))
}

// valueOf takes a value that is of a currency, if it is an amount; "" if of none.
func (n *notes) valueOf(v, of string) {
	v = plain(v)
	if v == "" || n.skipped[v] {
		return
	}
	n.add(v)
	if number := amount(v); number != "" {
		n.add(number)
		if of != "" {
			n.add(number + " " + of)
		} else {
			n.add(number + bareAmount)
		}
	}
	for _, form := range forms(v) {
		n.add(form)
	}
}

// dates takes the dates and times of day that are written in several words, and
// returns which words are parts of one, or of an account number: the 13 of June
// 13 is no value by itself.
func (n *notes) dates(words []string) []bool {
	within := make([]bool, len(words))
	for i, word := range words {
		if word = trimmed(word); !within[i] && address.Group(word) {
			if _, parts := address.Grouped(words[i:]); parts > 0 {
				for j := range parts {
					within[i+j] = true
				}
			}
		}
		if month := monthOf(word); month > 0 {
			n.dateAround(words, i, month, within)
		}
		if i > 0 && (strings.EqualFold(word, "am") || strings.EqualFold(word, "pm")) {
			if _, clock, ok := moment(trimmed(words[i-1]) + word); ok && clock != "" {
				n.add(timeForm + clock)
				within[i-1], within[i] = true, true
			}
		}
	}
	return within
}

// dateAround reads a date around the month at words[i].
func (n *notes) dateAround(words []string, i, month int, within []bool) {
	day, from, to := 0, i, i+1
	if i+1 < len(words) {
		day = dayOf(trimmed(words[i+1]))
	}
	switch {
	case day > 0: // June 13
		to = i + 2
	case i > 0 && dayOf(trimmed(words[i-1])) > 0: // 13 June
		day, from = dayOf(trimmed(words[i-1])), i-1
	case i > 1 && words[i-1] == "of" && dayOf(trimmed(words[i-2])) > 0: // 13th of June
		day, from = dayOf(trimmed(words[i-2])), i-2
	default:
		return
	}
	date := two(month) + "-" + two(day)
	if to < len(words) {
		if year := trimmed(words[to]); len(year) == 4 && digits(year) && year[0] != '0' {
			date, to = year+"-"+date, to+1
		}
	}
	n.add(dateForm + date)
	for j := from; j < to; j++ {
		within[j] = true
	}
}
