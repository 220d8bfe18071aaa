package draft

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// effectsOf returns the effects that the words of a tool's name suggest. After a verb of reading, as in
// get_open_orders, words that can also be things count as things, unless another verb is to come, as in
// find_and_order. Changing a letter that one already has, as mark_email does, sends nothing to anyone.
func effectsOf(words []string) (effects []provenance.ToolEffect) {
	reads := slices.IndexFunc(words, isVerb)
	if reads < 0 || !isOne(words[reads], readWords) {
		reads = len(words)
	}
	destroys, keeps := anyOf(words, destroyingWords), len(words) > 0 && isOne(words[0], keepingWords)
	for _, e := range effectWords {
		for i, w := range words {
			thing := isOne(w, thingWords)
			if i > reads && thing && !slices.Contains(joiningWords, words[i-1]) {
				continue
			}
			if e.effect == provenance.EffectExternal && thing && (destroys || keeps && isOne(w, letterWords)) {
				continue // what is destroyed or kept is sent to no one
			}
			if isOne(w, e.words) {
				effects = append(effects, e.effect)
				break
			}
		}
	}
	return effects
}

// reads reports whether a tool's words say that it reads, and nothing else may be meant: a
// word that could be the verb before one of reading, as in unsubscribe_list, or another one
// to come, as in find_and_zap.
func reads(words []string) bool {
	at := slices.IndexFunc(words, func(w string) bool { return isOne(w, readWords) })
	if at < 0 || words[at] == "check" && at+1 < len(words) && slices.Contains([]string{"in", "out"}, words[at+1]) {
		return false
	}
	if isOne(words[at], afterWords) && slices.ContainsFunc(words[:at], func(w string) bool { return !isThing(w) }) {
		return false
	}
	for i, w := range words[at+1:] {
		if slices.Contains([]string{"by", "for", "of", "with", "in", "from", "between"}, w) {
			return true
		}
		before := words[at+i]
		if slices.Contains(joiningWords, before) && !isThing(w) && !isOne(w, readWords) {
			return false
		}
	}
	return true
}

// isThing reports whether a word is known to be a thing.
func isThing(w string) bool {
	for _, things := range [][]string{thingWords, kindWords, privateWords, contentWords, commitWords, namingWords, destinationWords, placeWords, environWords} {
		if isOne(w, things) {
			return true
		}
	}
	return false
}

// isVerb reports whether a word says what a tool does, and is no thing as well.
func isVerb(w string) bool {
	if isOne(w, thingWords) {
		return false
	}
	return isOne(w, readWords) || slices.ContainsFunc(effectWords, func(e effectWord) bool { return isOne(w, e.words) })
}

// takesProgram reports whether a tool takes instructions in a language: it does what those say,
// whatever its own name is.
func takesProgram(properties gate.Doc) bool {
	for arg := range properties.Members() {
		if anyOf(nameWords(arg), programWords) {
			return true
		}
	}
	return false
}

// worsened completes the effects that a tool's own words give.
func worsened(effects []provenance.ToolEffect, words []string, properties, hints gate.Doc) []provenance.ToolEffect {
	if len(effects) == 0 && reads(words) && !takesProgram(properties) {
		effects = []provenance.ToolEffect{provenance.EffectRead}
		if hint := hints.Get("readOnlyHint"); hint.Kind() == doc.Bool && !hint.True() {
			effects = []provenance.ToolEffect{provenance.EffectExternal}
		}
	}
	if len(effects) == 0 {
		effects = append(effects, provenance.EffectExternal)
	}
	for arg := range properties.Members() {
		reads := slices.Equal(effects, []provenance.ToolEffect{provenance.EffectRead})
		if w := nameWords(arg); !reads && reachesPeople(w) && !slices.Contains(effects, provenance.EffectExternal) {
			effects = append(effects, provenance.EffectExternal)
		}
		if anyOf(nameWords(arg), []string{"url", "uri", "endpoint", "webhook"}) && !slices.Contains(effects, provenance.EffectEgress) {
			effects = append(effects, provenance.EffectEgress)
		}
	}
	if hints.Get("destructiveHint").True() && !slices.Contains(effects, provenance.EffectDestructive) {
		effects = append(effects, provenance.EffectDestructive)
	}
	if len(effects) > 1 {
		effects = slices.DeleteFunc(effects, func(e provenance.ToolEffect) bool { return e == provenance.EffectRead })
	}
	return effects
}

// reachesPeople reports whether an argument's name is one of addresses of people.
func reachesPeople(w []string) bool { return anyOf(w, peopleWords) && !idOfMessage(w) && !isHead(w) }

// idOfMessage reports whether an argument's name is one of ids of messages, which is no
// address: email_id.
func idOfMessage(words []string) bool {
	return anyOf(words, idWords) && anyOf(words, []string{"email"})
}
