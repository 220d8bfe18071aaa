package draft

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
)

// A Draft drafts labels of tools. Make one with [Of].
type Draft struct {
	tools  map[string]gate.Doc
	family map[string]family // by server
}

// A family is what the tools of one server have in common.
type family struct {
	prefix []string                   // words that say whose a tool is, and not what it does
	first  map[string]int             // how many of its tools begin with a word
	takes  map[string]map[string]bool // by kind, the words by which its tools take records: id, number
	fields map[string]map[string]bool // by kind, the names by which its tools take parts of a record
}

// Of makes a draft for tools, whose definitions it has by their names, server__tool.
func Of(tools map[string]gate.Doc) *Draft {
	d := &Draft{tools: tools, family: make(map[string]family)}
	first := make(map[string]map[string]int) // how many tools of a server begin with a word
	count := make(map[string]int)
	for name, definition := range tools {
		server, local, _ := strings.Cut(name, "__")
		if first[server] == nil {
			first[server] = make(map[string]int)
			d.family[server] = family{takes: make(map[string]map[string]bool), fields: make(map[string]map[string]bool)}
		}
		words := nameWords(local)
		d.family[server].learn(words, definition)
		if count[server]++; len(words) > 1 {
			first[server][words[0]]++
		}
	}
	for server, words := range first {
		f := d.family[server]
		f.prefix, f.first = nameWords(server), words
		for word, n := range words {
			if n >= minFamily && 2*n > count[server] && !isVerb(word) && !isOne(word, thingWords) {
				f.prefix = append(f.prefix, word)
			}
		}
		d.family[server] = f
	}
	return d
}

// learn adds what one tool says of the records of its server.
func (f family) learn(words []string, definition gate.Doc) {
	about := kindOf(words)
	add := func(to map[string]map[string]bool, kind, word string) {
		if to[kind] == nil {
			to[kind] = make(map[string]bool)
		}
		to[kind][word] = true
	}
	for arg := range definition.At("/inputSchema/properties").Members() {
		w := nameWords(arg)
		if kind := takenKind(w, words); kind != "" {
			add(f.takes, kind, singular(w[len(w)-1]))
		}
		if paysAmount(w, words) {
			add(f.takes, amountKind, amountKind)
		}
		add(f.fields, about, singular(strings.Join(w, "_")))
	}
}

// minFamily is how many tools of a server begin with a word that is their family's name.
const minFamily = 3

// Label guesses the labels of a tool by the words in its name and in its
// arguments' names, for a person to correct. Where words say nothing it takes the
// worst: a result that somebody outside may have written, an effect on others,
// every argument as control. What the server says of the tool in annotations and descriptions can
// only make it worse, since the server may be the one to be careful with. Results are
// what the tool has said, if any are known: places of them hold ids, parties and names of
// records by the words of their names and by what stands there in each.
func (d *Draft) Label(name string, results ...gate.Doc) policy.Label {
	definition := d.tools[name]
	l := policy.Label{Pattern: name, ToolLabels: provenance.ToolLabels{Result: provenance.ResultUntrusted}}
	server, local, _ := strings.Cut(name, "__")
	of := d.family[server]
	words := withoutPrefix(nameWords(local), of.prefix)
	input := definition.Get("inputSchema")
	l.Effects = worsened(effectsOf(words), words, input.Get("properties"), definition.Get("annotations"))
	l.Private = anyOf(words, privateWords)
	draftPlaces(&l, words, of, definition, results)
	if !slices.Equal(l.Effects, []provenance.ToolEffect{provenance.EffectRead}) {
		draftArguments(&l, words, input)
	} else if isOwnRecord(words, input) {
		l.Own = slices.Clone(ownPlaces)
	}
	return l
}

// withoutPrefix takes from a tool's words those that say whose it is.
func withoutPrefix(words, prefix []string) []string {
	for len(words) > 1 && slices.Contains(prefix, words[0]) {
		words = words[1:]
	}
	return words
}
