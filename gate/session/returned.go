package session

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Returned remembers the words of results, by session and server, so that what comes back
// in an argument to the same server is not taken for a secret because it looks like one:
// a place in a list, the key of a row. The zero value remembers nothing yet. It is used
// concurrently, and forgets the oldest beyond its bounds.
type Returned struct {
	mu    sync.Mutex
	words map[returnedTo]*returnedWords
	last  []returnedTo // the one that was used last at the end
}

var wordSeed = maphash.MakeSeed()

type returnedTo struct {
	session gate.SessionKey
	server  string
}

type returnedWords struct {
	known map[uint64]struct{}
	order []uint64
}

// Bounds of what is remembered.
const (
	maxReturned      = 256     // sessions, each with each of its servers
	maxReturnedWords = 1 << 14 // of each
	minReturnedWord  = 8       // bytes
)

// Learn takes the words of a result as its client gets it.
func (r *Returned) Learn(s gate.SessionKey, server string, result gate.Doc) {
	var words []uint64
	_, _ = doc.MapStrings(result, func(_ doc.Leaf, text string) string {
		eachWord(text, func(word uint64) bool {
			words = append(words, word)
			return len(words) < maxReturnedWords
		})
		return text
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.of(returnedTo{s, server})
	for _, word := range words {
		if _, ok := kept.known[word]; ok {
			continue
		}
		if len(kept.order) == maxReturnedWords {
			delete(kept.known, kept.order[0])
			kept.order = kept.order[1:]
		}
		kept.known[word] = struct{}{}
		kept.order = append(kept.order, word)
	}
}

// of returns what is kept of one, and makes it the last. The caller holds mu.
func (r *Returned) of(to returnedTo) *returnedWords {
	if r.words == nil {
		r.words = make(map[returnedTo]*returnedWords)
	}
	if i := slices.Index(r.last, to); i >= 0 {
		r.last = slices.Delete(r.last, i, i+1)
	} else if len(r.last) == maxReturned {
		delete(r.words, r.last[0])
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, to)
	if r.words[to] == nil {
		r.words[to] = &returnedWords{known: make(map[uint64]struct{})}
	}
	return r.words[to]
}

// Knows reports whether the text has words, and all of them were in results.
func (r *Returned) Knows(s gate.SessionKey, server, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.words[returnedTo{s, server}]
	if kept == nil {
		return false
	}
	some, all := false, true
	eachWord(text, func(word uint64) bool {
		_, known := kept.known[word]
		some, all = true, known
		return all
	})
	return some && all
}

// eachWord calls f for the words of a text that could be taken for secrets, until it
// returns false. Those of letters alone are not.
func eachWord(text string, f func(uint64) bool) {
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && inWord[text[end]] {
			end++
		}
		word := strings.TrimRight(text[start:end], ".")
		if len(word) >= minReturnedWord && strings.ContainsAny(word, "0123456789+/~") && !f(maphash.String(wordSeed, word)) {
			return
		}
		start = end + 1
	}
}

// inWord are the characters of tokens, in base64 and other alphabets.
var inWord = func() (in [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/~") {
		in[c] = true
	}
	return in
}()
