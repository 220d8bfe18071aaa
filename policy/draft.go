package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate"
)

// DraftLabel guesses the labels of a tool by the words in its name and in its
// arguments' names, for a person to correct. Where words say nothing it takes the
// worst: a result that somebody outside may have written, an effect on others,
// every argument as control. What the server says of the tool in annotations can
// only make it worse, since the server may be the one to be careful with. Results are
// what the tool has said, if any are known: places of them hold ids, parties and names of
// records by the words of their names and by what stands there in each.
func DraftLabel(name string, definition gate.Doc, results ...gate.Doc) Label {
	l := Label{Pattern: name, ToolLabels: gate.ToolLabels{Result: gate.ResultUntrusted}}
	_, local, _ := strings.Cut(name, "__")
	words := nameWords(local)
	properties := definition.At("/inputSchema/properties")
	var to, which, when, what []string
	for arg := range properties.Members() {
		pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(arg)
		switch w := nameWords(arg); {
		case anyOf(w, destinationWords):
			to = append(to, pointer)
		case anyOf(w, contentWords):
			what = append(what, pointer)
		case anyOf(w, commitWords):
			when = append(when, pointer)
		case anyOf(w, selectorWords):
			which = append(which, pointer)
		}
	}
	for _, e := range effectWords {
		if anyOf(words, e.words) {
			l.Effects = append(l.Effects, e.effect)
		}
	}
	l.Effects = worsened(l.Effects, words, properties, definition.Get("annotations"))
	l.Private = anyOf(words, privateWords)
	l.draftPlaces(words, results)
	if slices.Equal(l.Effects, []gate.ToolEffect{gate.EffectRead}) {
		return l
	}
	if slices.Contains(l.Effects, gate.EffectCredential) || len(to)+len(which) == 0 {
		return l // all arguments are control
	}
	l.To, l.Commits, l.Content = to, when, what
	for _, pointer := range which {
		if kind := idKind(nameWords(pointer), words); kind != "" {
			if l.Takes == nil {
				l.Takes = make(map[string]string)
			}
			l.Takes[pointer] = kind
		}
		if len(to) > 0 && !slices.Contains(l.Effects, gate.EffectDestructive) {
			l.Commits = append(l.Commits, pointer)
		} else {
			l.To = append(l.To, pointer)
		}
	}
	return l
}

// worsened completes the effects that a tool's own words give.
func worsened(effects []gate.ToolEffect, words []string, properties, hints gate.Doc) []gate.ToolEffect {
	if anyOf(words, readWords) && len(effects) == 0 {
		effects = []gate.ToolEffect{gate.EffectRead}
		if hint := hints.Get("readOnlyHint"); hint.Kind() == gate.Bool && !hint.True() {
			effects = []gate.ToolEffect{gate.EffectExternal}
		}
	}
	if len(effects) == 0 {
		effects = append(effects, gate.EffectExternal)
	}
	for arg := range properties.Members() {
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

// The words by which tools are told apart.
var (
	readWords   = strings.Fields("get list read search find query show describe view lookup check count browse fetch download inspect status ls cat grep stat tree")
	effectWords = []struct {
		effect gate.ToolEffect
		words  []string
	}{
		{gate.EffectLocal, strings.Fields("exec execute run shell command eval install kill")},
		{gate.EffectInternal, strings.Fields("create update write append set edit rename move schedule reschedule add insert save put copy upload mark modify change patch make open close start stop")},
		{gate.EffectExternal, strings.Fields("send post publish share invite email mail message notify reply forward transfer pay payment purchase buy book reserve order submit tweet comment transaction participants attendees exec execute run shell command eval")},
		{gate.EffectDestructive, strings.Fields("delete remove drop destroy cancel purge truncate overwrite reset erase clear wipe revoke transfer pay purchase buy transaction kill")},
		{gate.EffectCredential, strings.Fields("password passwd credential credentials token permission permissions grant role roles auth access secret key")},
	}
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
