package provenance

import (
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Place is a JSON Pointer into what a result says, in which * stands for every element
// of an array and every member of an object: /channels/*, /items/*/sender. It is into the
// structured content, or into the JSON or the document that a text is, and stands for all
// below it. /**/sender is a member of a record by itself, in a list, or in a list within
// something else (/sender, /*/sender, /*/*/sender), however its name is spelt: Sender, sender_,
// senders. /**/name and /**/id are also the elements of a list of ids that is all of a result.
type Place string

// An Origin is one place in which a session has met a value.
type Origin struct {
	Source  string `json:"source"`            // a name of [Source.Names]
	Server  string `json:"server,omitempty"`  // "" for what is no result
	Tool    string `json:"tool,omitempty"`    // server__tool
	Pointer string `json:"pointer,omitempty"` // JSON Pointer into what the result says
	Call    string `json:"call"`              // its ID
	Label   string `json:"label,omitempty"`   // the operator's label of the place: identity, or a kind of ids
}

const (
	// maxOrigins bounds how many values of a session have origins, the newest ones.
	maxOrigins = 4096
	// originsOfOne bounds the origins of one value.
	originsOfOne = 4
)

// newerFirst joins the origins of a value.
func newerFirst(older, newer []Origin) []Origin {
	all := append(slices.Clone(newer), older...)
	return all[:min(len(all), originsOfOne)]
}

// newest returns the layers without the oldest ones, so that at most max values are left,
// or one layer.
func (l *layer[V]) newest(max int) *layer[V] {
	if l == nil || l.total <= max {
		return l
	}
	older := l.older.newest(max - len(l.values))
	if len(l.values) >= max {
		older = nil
	}
	total := len(l.values)
	if older != nil {
		total += older.total
	}
	return &layer[V]{l.values, older, total}
}

// Origins returns the places in which a value was met, the newest first, as far as they
// are kept.
func (p Provenance) Origins(a Argument) []Origin {
	return p.originsOf(a.Form)
}

func (p Provenance) originsOf(text string) []Origin {
	if p.places == nil || text == "" {
		return nil
	}
	var all []Origin
	for _, form := range allForms(text) {
		key := hashOf(form)
		for l := p.places; l != nil; l = l.older {
			for _, o := range l.values[key] {
				if !slices.Contains(all, o) && len(all) < originsOfOne {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// allForms are the forms in which a value can have been met.
func allForms(text string) []string {
	v := plain(text)
	all := append([]string{v}, forms(v)...)
	if n := amount(v); n != "" {
		all = append(all, n)
	}
	return append(all, parts(v)...)
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

// labelled takes the values at places that the labels describe.
func (n *notes) labelled(content, structured doc.Doc) {
	said := n.of.Said
	if n.of.Tool == "" || !said.places() {
		return
	}
	for d := range documents(content, structured, n.of.Structure) {
		n.ids(d)
		n.parties(d)
		n.own(d)
	}
	n.at, n.label = n.at[:0], ""
}

// documents are what places are in: the structured content, or else the texts that are
// documents.
func documents(content, structured doc.Doc, read func(string) (doc.Doc, bool)) iter.Seq[doc.Doc] {
	return func(yield func(doc.Doc) bool) {
		if !structured.IsZero() {
			yield(structured)
			return
		}
		for block := range content.Elements() {
			if d, ok := document(block.Get("text").Text(), read); ok && !yield(d) {
				return
			}
		}
	}
}

// document returns the document that a text is, and false if it is none.
func document(text string, read func(string) (doc.Doc, bool)) (doc.Doc, bool) {
	d, ok := doc.Embedded(text)
	if !ok && read != nil {
		d, ok = read(text)
	}
	return d, ok
}

// ids takes the ids at the places that hold some.
func (n *notes) ids(d doc.Doc) {
	from := n.from
	if n.of.Made {
		from = FromTrusted
	}
	for at, kind := range n.of.Said.IDs {
		for _, v := range at.in(d) {
			for _, leaf := range leavesOf(v.doc) {
				id := TextOf(leaf)
				if isRecipient(kind) && !isContact(id) {
					continue
				}
				n.at, n.label = append(n.at[:0], v.at...), kind
				n.addFrom(idOf(n.of.Server, kind, id), from)
				if n.from&FromTrusted != 0 { // an id of one server means nothing at another
					n.skip(id)
				}
			}
		}
	}
}

// own takes what the record of the account holder says of him, and the ids that it lists. A record
// that an outsider may have asked for can be somebody else's.
func (n *notes) own(d doc.Doc) {
	if !n.of.Own {
		return
	}
	n.addFrom(ownForm, FromTrusted) // there is such a record
	for _, at := range n.of.Said.Own {
		for _, v := range at.in(d) {
			n.at, n.label = append(n.at[:0], v.at...), "own"
			for _, leaf := range leavesOf(v.doc) {
				for _, form := range ownForms(TextOf(leaf)) {
					n.addFrom(form, FromTrusted)
				}
			}
		}
	}
	for at, kind := range n.of.Said.IDs {
		for _, v := range at.in(d) {
			for _, leaf := range leavesOf(v.doc) {
				n.addFrom(ownForm+idOf(n.of.Server, kind, TextOf(leaf)), FromTrusted)
			}
		}
	}
}

// ownForms are the forms in which a value of one's own can come again.
func ownForms(text string) []string {
	if text == "" {
		return nil
	}
	all := []string{ownForm + text}
	if a := address.Of(text); a != "" {
		all = append(all, ownForm+a)
	}
	return all
}

// isRecipient reports whether one talks to ids of a kind, so that a policy may take a listed one
// for a destination.
func isRecipient(kind string) bool {
	return kind == Recipient || strings.HasPrefix(kind, Recipient+".")
}

// Recipient is the kind of ids to which one talks, such as channels and users. Others begin with
// it: recipient.channel.
const Recipient = "recipient"

// isContact reports whether a text can be an id to which one talks. An address that somebody has
// written from would reach him anywhere, and is none.
func isContact(text string) bool {
	return isID(text) && (digits(text) || address.Of(text) == "")
}

// skip leaves a value out of all that is taken after this.
func (n *notes) skip(v string) {
	if n.skipped == nil {
		n.skipped = make(map[string]bool)
	}
	n.skipped[v] = true
}

// Made returns the ids in a value of the arguments by which a call has made something, for
// tools of the server that take the kind.
func Made(server, kind string, value doc.Doc) []string {
	var all []string
	for _, leaf := range leavesOf(value) {
		all = append(all, idOf(server, kind, TextOf(leaf)))
	}
	return all
}

func idOf(server, kind, text string) string { return idForm + server + "\x00" + kind + "\x00" + text }

// TextOf is what ids are compared by.
func TextOf(leaf doc.Doc) string {
	if leaf.Kind() == doc.Number {
		return string(leaf.Raw())
	}
	return plain(leaf.Text())
}

// parties takes those of the records that the user's words name: of several records of one name
// those that all of them have, so that no one gains by a second one. Where a longer name is another
// record's, the shorter one names nothing: "minutes" is not what the user means by "team minutes".
func (n *notes) parties(d doc.Doc) {
	said := n.of.Said
	names := make(map[string][]string) // by record
	for _, at := range said.Names {
		for _, v := range at.in(d) {
			for _, leaf := range leavesOf(v.doc) {
				if name := n.known.named(leaf); name != "" {
					names[v.record] = append(names[v.record], name)
				}
			}
		}
	}
	shorter := func(name string) bool {
		for _, others := range names {
			if slices.ContainsFunc(others, func(other string) bool { return other != name && strings.Contains(" "+other+" ", " "+name+" ") }) {
				return true
			}
		}
		return false
	}
	parties := make(map[string][]string) // by record
	for _, at := range said.Identity {
		for _, v := range at.in(d) {
			n.at, n.label = append(n.at[:0], v.at...), "identity"
			here := addressesOf(v.doc)
			for _, party := range here {
				n.value(party)
			}
			parties[v.record] = append(parties[v.record], here...)
		}
	}
	common := make(map[string][]string) // by name
	for record, all := range names {
		for _, name := range all {
			if shorter(name) {
				continue
			}
			here := append([]string{}, parties[record]...)
			if before, ok := common[name]; ok {
				here = slices.DeleteFunc(here, func(p string) bool { return !slices.Contains(before, p) })
			}
			common[name] = here
		}
	}
	from := n.from
	for _, all := range common {
		for _, party := range all {
			n.from, n.at = FromPrompt, n.at[:0]
			n.value(party)
		}
	}
	n.from = from
}

// named returns what the user's words call something by what is in a leaf, in small letters: by
// several words, by one that is no ordinary word, or by one between quotation marks. It is "" if
// they do not name it. The name of a file is also named by its words: team-minutes.docx by "team
// minutes".
func (p Provenance) named(leaf doc.Doc) string {
	name := strings.ToLower(TextOf(leaf))
	switch {
	case len(name) < 3:
		return ""
	case p.find(nameForm+name)&FromPrompt != 0:
		return name
	case strings.ContainsAny(name, " 0123456789@./_") && p.Of(leaf)&FromPrompt != 0:
		return name
	}
	if words := wordsOfFile(name); words != "" && p.find(nameForm+words)&FromPrompt != 0 {
		return words
	}
	return ""
}

// wordsOfFile returns the words of a file's name that joins several with hyphens or underscores,
// without its ending; "" if it is no such name.
func wordsOfFile(name string) string {
	if strings.ContainsAny(name, "@/\\: ") {
		return ""
	}
	name = strings.TrimSuffix(name, path.Ext(name))
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	if len(words) < 2 {
		return ""
	}
	return strings.Join(words, " ")
}

// A placed is a value at a place.
type placed struct {
	doc    doc.Doc
	at     string // JSON Pointer
	record string // where the innermost element of a list is that contains the value
}

// in returns the values at a place of a document.
func (at Place) in(d doc.Doc) []placed {
	if name, deep := strings.CutPrefix(string(at), "/**/"); deep {
		var all []placed
		inRecords(placed{doc: d}, spelt(name), maxWrapped, &all)
		if len(all) == 0 && (name == "name" || name == "id") {
			all = inPlainList(placed{doc: d})
		}
		return all
	}
	return inPlace(placed{doc: d}, strings.Split(strings.TrimPrefix(string(at), "/"), "/"))
}

// inPlainList returns the elements of a list that is all of a document, or of the only member of one:
// ["general", "random"]. There are none if one of them is no id.
func inPlainList(v placed) []placed {
	below := v.each()
	if v.doc.Kind() == doc.Object && len(below) == 1 && below[0].doc.Kind() == doc.Array {
		below = below[0].each()
	} else if v.doc.Kind() != doc.Array {
		return nil
	}
	if slices.ContainsFunc(below, func(e placed) bool {
		return e.doc.Kind() != doc.String && e.doc.Kind() != doc.Number || !isID(TextOf(e.doc))
	}) {
		return nil
	}
	return below
}

// inPlace returns the values below a value.
func inPlace(v placed, tokens []string) []placed {
	switch {
	case v.doc.IsZero():
		return nil
	case len(tokens) == 0:
		return []placed{v}
	case tokens[0] != "*":
		return inPlace(placed{v.doc.At("/" + tokens[0]), v.at + "/" + tokens[0], v.record}, tokens[1:])
	}
	var all []placed
	for _, e := range v.each() {
		all = append(all, inPlace(e, tokens[1:])...)
	}
	return all
}

// maxWrapped is in how many lists and other things a record is looked for.
const maxWrapped = 2

// inRecords collects the members of a name of a record, and of those below it.
func inRecords(v placed, name string, wrapped int, all *[]placed) {
	for member, here := range v.doc.Members() {
		if spells(member, name) {
			*all = append(*all, placed{here, v.at + "/" + pointer.Escape(member), v.record})
		}
	}
	if wrapped == 0 {
		return
	}
	for _, e := range v.each() {
		inRecords(e, name, wrapped-1, all)
	}
}

// spelt returns the name of a member without what is not the same everywhere: the size of letters, what joins words, and
// the ending of several.
func spelt(name string) string {
	return strings.TrimSuffix(strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)), "s")
}

// spells reports whether spelt returns name for a member.
func spells(member, name string) bool {
	matched, several := 0, false
	for i := range len(member) {
		c := member[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case c == '_' || c == '-':
		case matched < len(name) && c == name[matched]:
			matched++
		case matched == len(name) && c == 's' && !several:
			several = true
		default:
			return false
		}
	}
	return matched == len(name)
}

// each returns the elements or members of a value, each object a record of its own.
func (v placed) each() []placed {
	var all []placed
	add := func(name string, d doc.Doc) {
		at := v.at + "/" + name
		record := v.record
		if d.Kind() == doc.Object {
			record = at
		}
		all = append(all, placed{d, at, record})
	}
	i := 0
	for e := range v.doc.Elements() {
		add(strconv.Itoa(i), e)
		i++
	}
	for name, d := range v.doc.Members() {
		add(pointer.Escape(name), d)
	}
	return all
}

// leavesOf returns the strings and numbers of a document.
func leavesOf(d doc.Doc) []doc.Doc {
	switch d.Kind() {
	case doc.String, doc.Number:
		return []doc.Doc{d}
	case doc.Array, doc.Object:
		var all []doc.Doc
		for e := range d.Elements() {
			all = append(all, leavesOf(e)...)
		}
		for _, v := range d.Members() {
			all = append(all, leavesOf(v)...)
		}
		return all
	}
	return nil
}

// addressesOf returns the addresses that are whole values or names of members in a document.
func addressesOf(d doc.Doc) []string {
	var all []string
	take := func(text string) {
		if address.Of(plain(text)) != "" {
			all = append(all, text)
		}
	}
	if d.Kind() == doc.Object {
		for name := range d.Members() {
			take(name)
		}
	}
	for _, leaf := range leavesOf(d) {
		take(TextOf(leaf))
	}
	return all
}
