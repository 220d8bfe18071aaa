package provenance

import (
	"path"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

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

// skip leaves a value out of all that is taken after this.
func (n *notes) skip(v string) {
	if n.skipped == nil {
		n.skipped = make(map[string]bool)
	}
	n.skipped[v] = true
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

// Made returns the ids in a value of the arguments by which a call has made something, for
// tools of the server that take the kind.
func Made(server, kind string, value doc.Doc) []string {
	var all []string
	for _, leaf := range leavesOf(value) {
		all = append(all, idOf(server, kind, TextOf(leaf)))
	}
	return all
}
