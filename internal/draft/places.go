package draft

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/policy"
)

// maxDrafted bounds how many results are looked at.
const maxDrafted = 100

// idKind names the kind of the ids that an argument takes, or a place holds: by its own
// name, as of person_id, or else by what its tool is about. It is "" if neither says so.
func idKind(own, tool []string) string {
	if len(own) == 0 || !isOne(own[len(own)-1], idWords) {
		return ""
	}
	if before := own[:len(own)-1]; len(before) > 0 && !isOne(before[len(before)-1], vagueWords) {
		return kindNamed(before[len(before)-1])
	}
	if len(own) == 1 && !isOne(own[0], []string{"id", "uuid", "guid"}) {
		return ""
	}
	return kindOf(tool)
}

// kindOf names the kind of the records that a tool is about; "" if its words do not say.
func kindOf(tool []string) string {
	if of := slices.IndexFunc(tool, func(w string) bool { return slices.Contains([]string{"by", "in", "of", "for", "from"}, w) }); of > 0 {
		tool = tool[:of] // get_file_by_name, get_users_in_channel
	}
	for _, w := range slices.Backward(tool) {
		if w = singular(w); slices.Contains(kindWords, w) && !slices.Contains(readWords, w) {
			return kindNamed(w)
		}
	}
	return ""
}

// kindNamed is the kind of what has a name: a mail is a message, a channel one to which one talks.
func kindNamed(w string) string {
	switch w = singular(w); {
	case slices.Contains(letterWords, w):
		return "message"
	case slices.Contains(talkKinds, w):
		return talkKind(w)
	}
	return w
}

// draftPlaces guesses the places of results: those for which the words of their names
// speak, and where a result has what they are said to hold. Where no result is known,
// the output schema says what there will be.
func draftPlaces(l *policy.Label, words []string, of family, definition gate.Doc, results []gate.Doc) {
	seen := make(map[string][]string) // texts, by place
	if len(results) == 0 {
		eachDeclared(definition.Get("outputSchema"), "", 0, seen)
	}
	for _, r := range results[:min(len(results), maxDrafted)] {
		eachPlace(r, "", seen)
	}
	if len(seen) == 0 {
		draftUsualPlaces(l, words, of, definition.Get("description").Text())
		return
	}
	for _, place := range slices.Sorted(maps.Keys(seen)) {
		name := nameWords(place[strings.LastIndexByte(strings.TrimSuffix(place, "/*"), '/')+1:])
		all := func(is func(string) bool) bool {
			return !slices.ContainsFunc(seen[place], func(v string) bool { return !is(v) })
		}
		switch kind := placedKind(place, name, words); {
		case anyOf(name, partyWords) && slices.ContainsFunc(seen[place], isAddress):
			l.Identity = append(l.Identity, provenance.Place(place))
		case kind == "" && anyOf(name, senderWords) && of.takes[talkKind("user")] != nil && all(isContact):
			if l.IDs == nil {
				l.IDs = make(map[provenance.Place]string)
			}
			l.IDs[provenance.Place(place)] = talkKind("user")
		case kind != "" && (all(isID) || place == "/*" && all(isName)):
			if l.IDs == nil {
				l.IDs = make(map[provenance.Place]string)
			}
			l.IDs[provenance.Place(place)] = kind
		case anyOf(name, namingWords) && all(func(v string) bool { return len(v) <= 128 }):
			l.Names = append(l.Names, provenance.Place(place))
		}
	}
	if l.Identity == nil {
		l.Names = nil
	}
}

// draftUsualPlaces guesses where a tool that reads records has their ids, parties and names. It knows
// nothing of them but how the server's tools, and this one, speak of them.
func draftUsualPlaces(l *policy.Label, words []string, of family, about string) {
	kind := kindOf(words)
	if kind == "" || !slices.Equal(l.Effects, []provenance.ToolEffect{provenance.EffectRead}) ||
		slices.Contains(textKinds, kind) && !anyOf(words, listingWords) || anyOf(words, []string{"content", "text"}) {
		return
	}
	var said []string
	for _, w := range nameWords(about) {
		if !slices.Contains(plainWords, w) {
			said = append(said, singular(w))
		}
	}
	has := func(field string) bool {
		return of.fields[kind][field] || slices.Contains(said, field) || slices.Contains(usualFields[kind], field)
	}
	l.IDs = make(map[provenance.Place]string)
	thing := strings.TrimPrefix(kind, talkKind(""))
	for word := range of.takes[kind] {
		switch {
		case isOne(word, idWords) || word == "number":
			l.IDs[provenance.Place("/**/"+word)] = kind
			l.IDs[provenance.Place("/**/"+thing+"_"+word)] = kind
		case word == thing:
			l.IDs["/**/name"] = kind
		}
	}
	if slices.Contains(paidKinds, kind) && !anyOf(words, askedWords) && of.takes[amountKind] != nil {
		l.IDs["/**/"+amountKind] = amountKind
	}
	for _, field := range senderWords {
		if has(field) && of.takes[talkKind("user")] != nil {
			l.IDs[provenance.Place("/**/"+field)] = talkKind("user")
		}
	}
	for _, field := range partyFields {
		if has(field) {
			l.Identity = append(l.Identity, provenance.Place("/**/"+field))
		}
	}
	for _, field := range nameFields {
		if has(field) && l.Identity != nil {
			l.Names = append(l.Names, provenance.Place("/**/"+field))
		}
	}
	if len(l.IDs) == 0 {
		l.IDs = nil
	}
}

// isOwnRecord reports whether a tool reads the record of the account that it is called with, and can be
// asked for no other.
func isOwnRecord(words []string, input gate.Doc) bool {
	for range input.Get("properties").Members() {
		return false
	}
	about := func(w string) bool { return slices.Contains(accountWords, w) }
	return slices.ContainsFunc(words, about) && !slices.ContainsFunc(words, func(w string) bool {
		return !about(w) && !slices.Contains(plainReadWords, w) && !slices.Contains(recordWords, w)
	})
}

// placedKind names the kind of the ids at a place: one of its name, or of what a list has
// that is all of a result.
func placedKind(place string, name, tool []string) string {
	switch {
	case place == "/*":
		return kindOf(tool)
	case slices.Equal(name, []string{"number"}), slices.Equal(name, []string{"key"}):
		return kindOf(tool)
	case isNumberOf(name):
		return kindNamed(name[len(name)-2])
	}
	return idKind(name, tool)
}

// isContact reports whether a text can name a person within a server: a word or two, and no address.
func isContact(v string) bool {
	return len(v) <= 64 && len(strings.Fields(v)) <= 2 && address.Of(v) == ""
}

// isID reports whether a text can be an id: a word.
func isID(v string) bool { return len(v) <= 64 && !strings.ContainsAny(v, " \n") }

// isName reports whether a text can be what people call something.
func isName(v string) bool {
	return len(v) <= 64 && len(strings.Fields(v)) <= 6 && !strings.Contains(v, "\n")
}

// eachPlace collects the values at the places of a document, elements of lists together. Members whose
// names are addresses are treated as elements of a list of addresses.
func eachPlace(d gate.Doc, at string, seen map[string][]string) {
	switch d.Kind() {
	case doc.Array:
		for e := range d.Elements() {
			eachPlace(e, at+"/*", seen)
		}
	case doc.Object:
		for name, v := range d.Members() {
			if isAddress(name) {
				seen[at] = append(seen[at], name)
				continue
			}
			eachPlace(v, at+"/"+pointer.Escape(name), seen)
		}
	case doc.String:
		seen[at] = append(seen[at], d.Text())
	case doc.Number:
		seen[at] = append(seen[at], string(d.Raw()))
	}
}

// maxDeclared bounds how deep a schema is looked into.
const maxDeclared = 16

// eachDeclared collects the places that a schema declares, with an example of what is to stand
// there: an address where it says so, and else something that could be an id or a name.
func eachDeclared(schema gate.Doc, at string, depth int, seen map[string][]string) {
	if depth > maxDeclared {
		return
	}
	if schema.Get("items").Kind() == doc.Object {
		eachDeclared(schema.Get("items"), at+"/*", depth+1, seen)
	}
	for name, v := range schema.Get("properties").Members() {
		eachDeclared(v, at+"/"+pointer.Escape(name), depth+1, seen)
	}
	switch kind := schema.Get("type").Text(); {
	case kind == "string" && schema.Get("format").Text() == "email":
		seen[at] = append(seen[at], "a@b.example")
	case kind == "string" || kind == "integer":
		seen[at] = append(seen[at], "1")
	}
}

// isAddress reports whether a text is one address: of a mailbox, a telephone, an account. Other parties
// cannot be distinguished from names.
func isAddress(v string) bool { return address.Of(v) != "" && !strings.Contains(v, "://") }
