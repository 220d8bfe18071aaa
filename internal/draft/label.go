package draft

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/policy"
)

// Label guesses the labels of a tool by the words in its name and in its
// arguments' names, for a person to correct. Where words say nothing it takes the
// worst: a result that somebody outside may have written, an effect on others,
// every argument as control. What the server says of the tool in annotations can
// only make it worse, since the server may be the one to be careful with. Results are
// what the tool has said, if any are known: places of them hold ids, parties and names of
// records by the words of their names and by what stands there in each.
func Label(name string, definition gate.Doc, results ...gate.Doc) policy.Label {
	l := policy.Label{Pattern: name, ToolLabels: gate.ToolLabels{Result: gate.ResultUntrusted}}
	_, local, _ := strings.Cut(name, "__")
	words := nameWords(local)
	properties := definition.At("/inputSchema/properties")
	var to, where, which, when, what []string
	for arg := range properties.Members() {
		at := "/" + pointer.Escape(arg)
		switch w := nameWords(arg); {
		case anyOf(w, destinationWords) && !idOfMessage(w):
			to = append(to, at)
		case anyOf(w, placeWords):
			where = append(where, at)
		case anyOf(w, contentWords):
			what = append(what, at)
		case anyOf(w, commitWords):
			when = append(when, at)
		case anyOf(w, selectorWords):
			which = append(which, at)
		}
	}
	l.Effects = worsened(effectsOf(words), words, properties, definition.Get("annotations"))
	l.Private = anyOf(words, privateWords)
	draftPlaces(&l, words, definition.Get("outputSchema"), results)
	if slices.Equal(l.Effects, []gate.ToolEffect{gate.EffectRead}) {
		return l
	}
	if slices.Contains(l.Effects, gate.EffectCredential) || len(to)+len(where)+len(which) == 0 {
		return l // all arguments are control
	}
	if slices.Equal(l.Effects, []gate.ToolEffect{gate.EffectInternal}) {
		what = append(what, where...) // an entry's, not where something goes
	} else {
		to = append(to, where...)
	}
	l.To, l.Commits, l.Content = append([]string{}, to...), when, what
	for _, at := range which {
		if kind := idKind(nameWords(at), words); kind != "" {
			if l.Takes == nil {
				l.Takes = make(map[string]string)
			}
			l.Takes[at] = kind
		}
		if len(to) > 0 && !slices.Contains(l.Effects, gate.EffectDestructive) {
			l.Commits = append(l.Commits, at)
		} else {
			l.To = append(l.To, at)
		}
	}
	return l
}

// effectsOf returns what words of a tool's name say that it does. After a verb of reading,
// as in get_open_orders, words that are things as well say nothing, unless another verb is
// to come, as in find_and_order.
func effectsOf(words []string) (effects []gate.ToolEffect) {
	reads := slices.IndexFunc(words, isVerb)
	if reads < 0 || !slices.Contains(readWords, words[reads]) {
		reads = len(words)
	}
	destroys := anyOf(words, destroyingWords)
	for _, e := range effectWords {
		for i, w := range words {
			thing := slices.Contains(thingWords, w)
			if i > reads && thing && !slices.Contains(joiningWords, words[i-1]) {
				continue
			}
			if e.effect == gate.EffectExternal && thing && destroys {
				continue // what is gone reaches nobody
			}
			if slices.Contains(e.words, w) {
				effects = append(effects, e.effect)
				break
			}
		}
	}
	return effects
}

// takesProgram reports whether a tool is told what to do in a language: it does what that
// says, whatever its own name is.
func takesProgram(properties gate.Doc) bool {
	for arg := range properties.Members() {
		if anyOf(nameWords(arg), programWords) {
			return true
		}
	}
	return false
}

// isVerb reports whether a word says what a tool does, and is no thing as well.
func isVerb(w string) bool {
	if slices.Contains(thingWords, w) {
		return false
	}
	return slices.Contains(readWords, w) || slices.ContainsFunc(effectWords, func(e effectWord) bool { return slices.Contains(e.words, w) })
}

// idOfMessage reports whether an argument's name is one of ids of messages, which is no
// address: email_id.
func idOfMessage(words []string) bool {
	return anyOf(words, []string{"id", "ids"}) && anyOf(words, []string{"email", "emails"})
}

// worsened completes the effects that a tool's own words give.
func worsened(effects []gate.ToolEffect, words []string, properties, hints gate.Doc) []gate.ToolEffect {
	if anyOf(words, readWords) && len(effects) == 0 && !takesProgram(properties) {
		effects = []gate.ToolEffect{gate.EffectRead}
		if hint := hints.Get("readOnlyHint"); hint.Kind() == gate.Bool && !hint.True() {
			effects = []gate.ToolEffect{gate.EffectExternal}
		}
	}
	if len(effects) == 0 {
		effects = append(effects, gate.EffectExternal)
	}
	for arg := range properties.Members() {
		reads := slices.Equal(effects, []gate.ToolEffect{gate.EffectRead})
		if w := nameWords(arg); !reads && anyOf(w, peopleWords) && !idOfMessage(w) && !slices.Contains(effects, gate.EffectExternal) {
			effects = append(effects, gate.EffectExternal)
		}
		if anyOf(nameWords(arg), []string{"url", "uri", "endpoint", "webhook"}) && !slices.Contains(effects, gate.EffectEgress) {
			effects = append(effects, gate.EffectEgress)
		}
	}
	if hints.Get("destructiveHint").True() && !slices.Contains(effects, gate.EffectDestructive) {
		effects = append(effects, gate.EffectDestructive)
	}
	if len(effects) > 1 {
		effects = slices.DeleteFunc(effects, func(e gate.ToolEffect) bool { return e == gate.EffectRead })
	}
	return effects
}

// An effectWord is one of the words by which tools have an effect.
type effectWord struct {
	effect gate.ToolEffect
	words  []string
}

// The words by which tools are told apart.
var (
	readWords   = strings.Fields("get list read search find query show describe view lookup check count browse fetch download inspect status ls cat grep stat tree")
	effectWords = []effectWord{
		{gate.EffectLocal, strings.Fields("exec execute run shell command eval install kill")},
		{gate.EffectInternal, strings.Fields("create update write append set edit rename move schedule reschedule add insert save put copy upload mark modify change patch make open close start stop")},
		{gate.EffectExternal, strings.Fields("send post publish share invite email mail message notify reply forward transfer pay payment purchase buy book reserve order submit tweet comment transaction participants attendees exec execute run shell command eval")},
		{gate.EffectDestructive, strings.Fields("delete remove drop destroy cancel purge truncate overwrite reset erase clear wipe revoke transfer pay purchase buy transaction kill")},
		{gate.EffectCredential, strings.Fields("password passwd credential credentials token permission permissions grant role roles auth access secret key")},
	}
	// thingWords are those of them that are things, or say how things are, as often as verbs.
	thingWords       = strings.Fields("email mail message tweet comment post share transaction transfer payment purchase order book participants attendees password passwd credential credentials token permission permissions role roles auth access secret key shell command schedule set open close start stop change patch mark")
	joiningWords     = strings.Fields("and or then")
	destroyingWords  = strings.Fields("delete remove drop destroy cancel purge truncate erase clear wipe")
	programWords     = strings.Fields("sql cypher statement statements script command commands")
	peopleWords      = strings.Fields("recipient recipients cc bcc email emails participant participants attendee attendees invitee invitees")
	placeWords       = strings.Fields("street city zip postal country first last family middle given")
	destinationWords = strings.Fields("to cc bcc recipient recipients email emails url uri endpoint webhook channel user username account iban participant participants member members attendee attendees invitee invitees phone host domain address owner org organization")
	selectorWords    = strings.Fields("id ids path paths file files filename name key target command code query sql script branch repo repository hotel restaurant")
	contentWords     = strings.Fields("body text message content contents subject note description comment title caption data attachments location")
	commitWords      = strings.Fields("amount price quantity count number date day time start end when until deadline recurring permission permissions priority status duration limit n")
	partyWords       = strings.Fields("sender from recipient recipients to cc bcc participant participants attendee attendees member members owner author email shared with")
	namingWords      = strings.Fields("title subject name filename file summary topic")
	kindWords        = strings.Fields("message mail email event file document folder channel user contact transaction payment order invoice issue ticket task project repository repo branch comment page note thread post product customer account booking reservation room hotel record item job run list card board")
	privateWords     = strings.Fields("mail email emails inbox message messages file files document documents calendar contact contacts account balance transaction transactions user profile secret secrets iban note notes history")
)

func anyOf(words, known []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
}

// nameWords splits a name at what is no letter and before capitals.
func nameWords(name string) []string {
	var words []string
	var word []rune
	lower := false
	for _, r := range name + "_" {
		if !unicode.IsLetter(r) || lower && unicode.IsUpper(r) {
			if len(word) > 0 {
				words = append(words, strings.ToLower(string(word)))
			}
			word = word[:0]
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
		lower = unicode.IsLower(r)
	}
	return words
}
