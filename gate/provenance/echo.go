package provenance

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
)

// Echoes remembers what tools have said that are labelled echo. So it can tell what they say every
// time from what somebody has put there. For all tools it remembers which labelled places none of
// their results has had. The zero value remembers nothing yet. Use it from several goroutines.
type Echoes struct {
	mu     sync.Mutex
	said   map[string]*echoed       // by the tool's name and definition
	places map[string]map[Place]int // by the tool's name: the results without the place, or matched
}

// echoed is what one tool has said.
type echoed struct {
	mu    sync.Mutex
	calls map[string]bool // by the digest of their arguments
	times map[uint64]int  // in how many of them something was said
}

const (
	maxEchoes    = 512     // tools that are remembered
	maxEchoed    = 1 << 12 // things that each has said
	maxEchoCalls = 256     // by which each has said them
	// echoTimes is in how many earlier results, of other arguments, a tool has said what
	// counts as its own words.
	echoTimes = 3
	// maxEchoRow is how many words in a row a tool may say that its call did not bring.
	maxEchoRow = 12
)

// A Saying is a result of a tool, and the call that it answers.
type Saying struct {
	Tool         string // its name and the digest of its definition
	Said         ToolLabels
	Args, Result doc.Doc
	Own          Identities // of the principal
	Structure    func(text string) (doc.Doc, bool)
}

// Contradicts returns a place of a result at which it is not what the operator says of its tool,
// and "" if there is none: an echo that says what was not in its arguments, prose where ids are to
// be, or prose in a trusted result that has none of the labelled places. Nil Echoes remember
// nothing.
func Contradicts(e *Echoes, s Saying) string {
	e.count(s)
	if s.Said.Result == ResultUntrusted {
		return ""
	}
	at := proseAmongIDs(s)
	switch {
	case at != "":
	case s.Said.Result == ResultEcho:
		at = e.broken(s)
	case s.Said.places():
		at = proseElsewhere(s)
	}
	return at
}

// isProse reports whether a document says more than ids do.
func isProse(d doc.Doc) bool {
	return slices.ContainsFunc(leavesOf(d), func(leaf doc.Doc) bool { return !isID(TextOf(leaf)) })
}

// proseAmongIDs returns a place that is labelled as one of ids and has a value that is not an id.
func proseAmongIDs(s Saying) string {
	for d := range documents(s.Result.Get("content"), s.Result.Get("structuredContent"), s.Structure) {
		for place := range s.Said.IDs {
			if slices.ContainsFunc(place.in(d), func(v placed) bool { return isProse(v.doc) }) {
				return string(place)
			}
		}
	}
	return ""
}

// proseElsewhere returns a place of prose in a result that has none of the labelled places: the
// result has another shape than the operator knows. The text of an error has no places.
func proseElsewhere(s Saying) string {
	if s.Result.Get("isError").True() {
		return ""
	}
	content, structured := s.Result.Get("content"), s.Result.Get("structuredContent")
	for d := range documents(content, structured, s.Structure) {
		for place := range s.Said.eachPlace {
			if len(place.in(d)) > 0 {
				return ""
			}
		}
	}
	if isProse(structured) {
		return "/structuredContent"
	}
	i := 0
	for block := range content.Elements() {
		text := block.Get("text")
		if d, ok := document(text.Text(), s.Structure); ok {
			text = d
		}
		if isProse(text) {
			return "/content/" + strconv.Itoa(i)
		}
		i++
	}
	return ""
}

// broken returns the place of something in a result that neither the call brought nor the tool says
// every time. Values at places with labels are left out: they are not trusted because of the tool.
func (e *Echoes) broken(s Saying) string {
	told := newTelling()
	for _, leaf := range leavesOf(s.Args) {
		told.text(TextOf(leaf))
	}
	content, structured := s.Result.Get("content"), s.Result.Get("structuredContent")
	for d := range documents(content, structured, s.Structure) {
		for place := range s.Said.IDs {
			told.placed(place.in(d))
		}
		for _, place := range s.Said.Identity {
			told.placed(place.in(d))
		}
	}
	before := e.of(s.Tool)
	before.mu.Lock()
	defer before.mu.Unlock()
	var news []uint64
	at := ""
	look := func(pointer, text string) {
		told.news(text, s.Own, func(hash uint64) {
			news = append(news, hash)
			if at == "" && before.times[hash] < echoTimes {
				at = pointer
			}
		})
	}
	for _, leaf := range leavesOf(structured) {
		look("/structuredContent", TextOf(leaf))
	}
	i := 0
	for block := range content.Elements() {
		look("/content/"+strconv.Itoa(i), block.Get("text").Text())
		i++
	}
	before.learn(s.Args.Digest(), news)
	return at
}

// of returns what one tool has said, for the caller to lock.
func (e *Echoes) of(tool string) *echoed {
	fresh := &echoed{calls: map[string]bool{}, times: map[uint64]int{}}
	if e == nil {
		return fresh
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if said := e.said[tool]; said != nil {
		return said
	}
	if e.said == nil || len(e.said) == maxEchoes { // those that speak are met again
		e.said = make(map[string]*echoed)
	}
	e.said[tool] = fresh
	return fresh
}

// learn counts what a result had beyond the arguments of its call. A call that comes again says
// nothing new.
func (e *echoed) learn(args string, news []uint64) {
	if e.calls[args] || len(e.calls) == maxEchoCalls {
		return
	}
	e.calls[args] = true
	slices.Sort(news)
	for _, hash := range slices.Compact(news) {
		if _, known := e.times[hash]; known || len(e.times) < maxEchoed {
			e.times[hash]++
		}
	}
}

// told is what a result may say: values, and which words follow which.
type told struct {
	values map[string]bool
	pairs  map[[2]string]bool
}

func newTelling() told { return told{map[string]bool{}, map[[2]string]bool{}} }

func (t told) text(text string) {
	for _, form := range allForms(text) {
		t.values[form] = true
	}
	address.In(text, func(a string) { t.values[addressForm+a] = true })
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = strings.ToLower(trimmed(word))
		for _, form := range allForms(trimmed(word)) {
			t.values[form] = true
		}
		if i > 0 {
			t.pairs[[2]string{words[i-1], words[i]}] = true
		}
	}
}

func (t told) placed(all []placed) {
	for _, v := range all {
		for _, leaf := range leavesOf(v.doc) {
			t.text(TextOf(leaf))
		}
		for _, a := range addressesOf(v.doc) {
			t.text(a)
		}
	}
}

// news calls f with each value in a text, and each row of words, that was not told.
func (t told) news(text string, own Identities, f func(hash uint64)) {
	address.In(text, func(a string) {
		if !t.values[addressForm+a] && !own.has(a) {
			f(hashOf(addressForm + a))
		}
	})
	words := strings.Fields(text)
	within := (&notes{met: map[uint64]Source{}, of: &Reading{}}).dates(words)
	var row []string
	for i, word := range words {
		word = trimmed(word)
		words[i] = strings.ToLower(word)
		if !within[i] && strings.ContainsAny(word, "0123456789") && !t.knows(word, own) {
			f(hashOf(word))
		}
		if i > 0 && t.pairs[[2]string{words[i-1], words[i]}] {
			row = nil
			continue
		}
		if row = append(row, words[i]); len(row) > maxEchoRow {
			f(hashOf(strings.Join(row[len(row)-maxEchoRow-1:], " ")))
		}
	}
}

// knows reports whether a word was an argument, in any spelling, or is a date or a time.
func (t told) knows(word string, own Identities) bool {
	if _, _, dated := moment(word); dated || own.has(word) {
		return true
	}
	return slices.ContainsFunc(allForms(word), func(form string) bool { return t.values[form] })
}
