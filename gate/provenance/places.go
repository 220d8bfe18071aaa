package provenance

import (
	"iter"
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
