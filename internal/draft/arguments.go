package draft

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/policy"
)

// A role is what an argument says.
type role int

const (
	unknown  role = iota
	whom          // to whom, or where
	place         // where on a map, or a part of a person's name
	content       // what is handed to others
	commits       // when, how much, in which way
	selects       // which of several
	selectsN      // which of several, by a name of one's own that says nothing of its kind
)

// draftArguments guesses what the arguments of a tool with an effect say.
func draftArguments(l *policy.Label, words []string, input gate.Doc) {
	var required []string
	for name := range input.Get("required").Elements() {
		required = append(required, name.Text())
	}
	var to, where, which, when, what []string
	public := anyOf(words, publicWords) && slices.Contains(l.Effects, provenance.EffectExternal)
	own := slices.Equal(l.Effects, []provenance.ToolEffect{provenance.EffectInternal})
	takes := make(map[string]string)
	for arg, schema := range input.Get("properties").Members() {
		at := "/" + pointer.Escape(arg)
		w := nameWords(arg)
		switch r := roleOf(w, schema); {
		case r == whom:
			to = append(to, at)
			public = public && !slices.Contains(required, arg)
		case r == place && anyOf(append(slices.Clone(w), words...), parcelWords):
			to = append(to, at)
		case r == place:
			where = append(where, at)
		case r == content, r == selectsN && own && anyOf(words, []string{"create"}) && !anyOf(words, []string{"update", "write", "overwrite"}):
			what = append(what, at)
		case r == commits:
			when = append(when, at)
		case r == selects || r == selectsN:
			which = append(which, at)
		}
		if kind := takenKind(w, words); kind != "" {
			takes[at] = kind
		} else if paysAmount(w, words) {
			takes[at] = amountKind
		}
	}
	if public || slices.Contains(l.Effects, provenance.EffectCredential) || len(to)+len(where)+len(which) == 0 && !(own && len(what)+len(when) > 0) {
		return // all arguments are control, as of what is for everybody to read
	}
	if own && len(to)+len(which) == 0 && anyOf(words, updateWords) {
		return // it is the user's own data, and any part of it can be what an outsider wants
	}
	if own {
		what = append(what, where...) // an entry's, not where something goes
	} else {
		to = append(to, where...)
	}
	l.To, l.Commits, l.Content = append([]string{}, to...), when, what
	for _, at := range which {
		if len(to) > 0 && !slices.Contains(l.Effects, provenance.EffectDestructive) && !anyOf(nameWords(at), formWords) {
			l.Commits = append(l.Commits, at)
		} else {
			l.To = append(l.To, at)
		}
	}
	for _, at := range slices.Concat(l.To, l.Commits) {
		if kind := takes[at]; kind != "" {
			if l.Takes == nil {
				l.Takes = make(map[string]string)
			}
			l.Takes[at] = kind
		}
	}
}

// roleOf returns what an argument says, by the words of its name, and where these say
// nothing by its schema. What the schema's description says can only make it worse.
func roleOf(w []string, schema gate.Doc) role {
	r := roleOfWords(w)
	kinds := typesOf(schema)
	switch {
	case r == whom, r == selects, r == selectsN && len(w) > 1:
		return r
	case slices.Contains([]string{"email", "idn-email", "uri", "url"}, schema.Get("format").Text()):
		return whom
	case len(w) == 1 && (r == selectsN || isOne(w[0], []string{"target", "value"})) && anyOf(nameWords(schema.Get("description").Text()), saidOfPeople):
		return whom
	case r != unknown:
		return r
	case slices.Equal(kinds, []string{"boolean"}) || slices.Equal(kinds, []string{"integer"}) || slices.Equal(kinds, []string{"number"}),
		schema.Get("enum").Kind() == doc.Array,
		slices.Contains([]string{"date", "date-time", "time", "duration"}, schema.Get("format").Text()):
		return commits
	}
	return unknown
}

// typesOf returns the types that a schema lets through but for null.
func typesOf(schema gate.Doc) []string {
	var kinds []string
	take := func(d gate.Doc) {
		if kind := d.Text(); kind != "" && kind != "null" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	take(schema.Get("type"))
	for kind := range schema.Get("type").Elements() {
		take(kind)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		for one := range schema.Get(word).Elements() {
			take(one.Get("type"))
		}
	}
	return kinds
}

func roleOfWords(w []string) role {
	if len(w) == 0 {
		return unknown
	}
	head := w[len(w)-1]
	switch {
	case isOne(w[0], countWords) && len(w) > 1, isHead(w) && isOne(head, commitWords):
		return commits
	case isHead(w):
		return content
	case isOne(head, []string{"to", "from"}) && anyOf(w, []string{"date", "time", "start", "end", "valid", "price", "min", "max"}):
		return commits
	case anyOf(w, destinationWords) && !idOfMessage(w):
		return whom
	case isOne(head, idWords) && len(w) > 1, isNumberOf(w):
		return selects
	case anyOf(w, placeWords):
		return place
	case isOne(head, []string{"name", "filename"}):
		return selectsN
	case anyOf(w, contentWords):
		return content
	case anyOf(w, commitWords):
		return commits
	case anyOf(w, selectorWords):
		return selects
	}
	return unknown
}

// isHead reports whether the last word of a name says what an argument is, whatever stands
// before it.
func isHead(w []string) bool { return len(w) > 0 && isOne(w[len(w)-1], headWords) }

// isNumberOf reports whether a name is one of numbers by which records are known: issue_number.
func isNumberOf(w []string) bool {
	return len(w) > 1 && w[len(w)-1] == "number" && isOne(w[len(w)-2], kindWords)
}

// takenKind names the kind of the ids that an argument takes; "" if it takes none. What is said
// to people goes to ids that its server has listed; what is paid does not.
func takenKind(own, tool []string) string {
	kind := recordKind(own, tool)
	if kind == "" && len(own) == 1 && isOne(own[0], contactWords) && !anyOf(tool, payWords) {
		kind = talkKind("user")
	}
	return kind
}

// paysAmount reports whether an argument is how much a tool pays.
func paysAmount(own, tool []string) bool {
	return slices.Equal(own, []string{amountKind}) && anyOf(tool, payWords)
}

// talkKind is the kind of ids to which one talks.
func talkKind(kind string) string { return provenance.Recipient + "." + kind }

func recordKind(own, tool []string) string {
	if kind := idKind(own, tool); kind != "" {
		return kind
	}
	if isNumberOf(own) {
		return kindNamed(own[len(own)-2])
	}
	if len(own) == 1 && isOne(own[0], kindWords) && !isOne(own[0], contentWords) && !isOne(own[0], letterWords) && !isOne(own[0], commitWords) {
		return kindNamed(own[0])
	}
	return ""
}
