package draft

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Doubt returns why a tool may do more than read; "" if its name, its texts, its arguments and
// its hints all say that it only reads. Each of them can raise a doubt, none can remove one: a
// server can claim anything. A tool without doubt has the drafted effect read and no other.
func (d *Draft) Doubt(name string) string {
	l, definition := d.Label(name), d.tools[name]
	if !slices.Equal(l.Effects, []provenance.ToolEffect{provenance.EffectRead}) {
		return "its drafted effect is " + strings.Join(effectNames(l.Effects), ", ")
	}
	server, local, _ := strings.Cut(name, "__")
	words := nameWords(local)
	if why := textDoubt(local, nil); why != "" {
		return why
	}
	for i, w := range words {
		if slices.Contains(changingWords, w) || i > 0 && slices.Contains(joiningWords, words[i-1]) && slices.Contains(clauseVerbs, w) {
			return fmt.Sprintf("its name says %q", w)
		}
	}
	words = withoutPrefix(words, d.family[server].prefix)
	verb := slices.IndexFunc(words, func(w string) bool { return isOne(w, readWords) })
	if i := slices.IndexFunc(words[:max(verb, 0)], func(w string) bool {
		return !isThing(w) && !slices.Contains(modifiers, w) && d.family[server].first[w] < minFamily
	}); i >= 0 {
		return fmt.Sprintf("its name begins with %q", words[i])
	}
	for _, text := range []gate.Doc{definition.Get("title"), definition.At("/annotations/title"), definition.Get("description")} {
		if why := textDoubt(text.Text(), clauseVerbs); why != "" {
			return why
		}
	}
	if about := definition.Get("description").Text(); about != "" && !speaksOfReading(about) {
		return "its description does not say that it reads"
	}
	return argumentsDoubt(definition.Get("inputSchema"))
}

func effectNames(effects []provenance.ToolEffect) (names []string) {
	for _, e := range effects {
		names = append(names, string(e))
	}
	return names
}

// firstOf returns the first of words that is one of those known, "" if none is.
func firstOf(words, known []string) string {
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(known, w) }); i >= 0 {
		return words[i]
	}
	return ""
}

var (
	// changingWords are verbs of changing that are hardly ever things: they count wherever they are in a name.
	changingWords = strings.Fields(`abort activate adjust allocate alter amend append apply approve attach ban cancel configure create deactivate decline delete
		deprovision destroy detach disable disconnect discard drop edit eject enable encrypt enqueue erase eval evict exec execute expire flush forget generate inject insert
		install invalidate invoke kick kill make migrate modify move mutate overwrite persist provision publish purge reboot register reject remove rename repair replace
		reschedule resize restart restore revert revoke rewrite rm rotate save send shutdown submit subscribe suspend synchronize terminate toggle truncate
		unarchive unblock uninstall unlink unlock unmount unpin unpublish unregister unset unshare unsubscribe upload upsert wipe write`)
	// clauseVerbs are things as often as verbs, and count where a sentence says what it does.
	clauseVerbs = append(strings.Fields(`add archive block book broadcast build buy change charge clear clone close commit copy cut deploy donate duplicate email empty export fill fix fork
		force format forward grant hide import invite join label launch link lock log manage mark merge message mount mute open order patch pay pin pledge post pull purchase push put
		record refund release reply request reserve reset resolve resume run scale schedule sell set share sign start stop store sync tag trade train transfer trash trigger
		tweet unpack update upgrade upvote vote wire withdraw`), changingWords...)
	// beforeVerbs are words behind which a sentence says what a tool does.
	beforeVerbs = strings.Fields("then to also will can may must should it which that tool automatically permanently silently")
	// argumentVerbs are those by which an argument says that the tool changes something.
	argumentVerbs = strings.Fields(`append apply commit confirm create delete destroy drop dry edit erase eval exec execute force insert install kill modify overwrite patch
		purge remove rename replace replacement save send truncate upload upsert wipe write`)
	// programArguments say what the tool is to do, or where it goes.
	programArguments = strings.Fields("sql cypher statement script command cmd code expression javascript js python shell eval function program operation action method mutation graphql url uri endpoint webhook")
	// newArguments hold what is to be written.
	newArguments = strings.Fields("body content contents payload patch edits changes replacement update updates values new")
	// placed are texts that are harmless by themselves, and content where a place to put them is named, too.
	placedTexts = strings.Fields("text message data value note comment description title")
	targetWords = strings.Fields("path file filename folder key id url to channel recipient document table")
	outputWords = strings.Fields("output out save destination dest")
	personWords = strings.Fields("cc bcc recipient recipients attendees participants invitees")
	readingText = strings.Fields("return provide give report lookup retrieval information detail read overview statistic result analytics access")
	modifiers   = strings.Fields("advanced bulk batch deep fast full global hybrid local multi multiple quick semantic simple smart text vector keyword document documentation doc info detail code symbol api data")
)

// lastLatin is the last letter of the block Latin Extended-B.
const lastLatin = '\u024f'

// textDoubt returns what a text says of the tool beyond reading: one of these verbs where a
// sentence or what follows it begins, or one that is hardly ever a thing in a list.
func textDoubt(text string, verbs []string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > lastLatin && unicode.IsLetter(r) }) >= 0 {
		return "it has letters of an alphabet in which no verb is known here"
	}
	before, known := []string{}, verbs
	for _, w := range tokens(text) {
		if w == "." || w == "," {
			known = verbs
			if w == "," {
				known = changingWords
			}
			continue
		}
		if n := len(before); known == nil && n > 0 && !denied(before) {
			switch last := before[n-1]; {
			case slices.Contains(beforeVerbs, last):
				known = verbs
			case slices.Contains(joiningWords, last):
				known = changingWords
			}
		}
		if isForm(w, known) || passive(before) && isParticiple(w) {
			return fmt.Sprintf("its text says %q", w)
		}
		before, known = append(before, w), nil
	}
	return ""
}

// tokens returns the words of a text, "." where a sentence may begin, and "," where a part of one
// does. A word with a digit or an underscore in it is a name and no verb: it becomes "-".
func tokens(text string) (all []string) {
	var word strings.Builder
	end := func(mark string) {
		if w := strings.Trim(strings.ToLower(word.String()), "-'"); w != "" {
			if strings.IndexFunc(w, func(r rune) bool { return unicode.IsDigit(r) || r == '_' }) >= 0 {
				w = "-"
			}
			all = append(all, w)
		} else if word.Len() > 0 {
			all = append(all, ".") // a dash by itself
		}
		word.Reset()
		if mark != "" {
			all = append(all, mark)
		}
	}
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("_'-", r):
			word.WriteRune(r)
		case unicode.IsSpace(r) && r != '\n', r == '"', r == '`':
			end("")
		case r == ',', r == '/', r == '(':
			end(",")
		default:
			end(".")
		}
	}
	end("")
	return all
}

// denied reports whether the last words say that something does not happen, or that another tool
// does it, whose name is "-".
func denied(before []string) bool {
	last := before[max(0, len(before)-3):]
	return anyOf(last, strings.Fields("not cannot never without no don't doesn't can't won't need needs needed required able ask asks want wants how -"))
}

// passive reports whether what follows these words is done by the tool. What a relative clause
// says is so before.
func passive(before []string) bool {
	last := before[max(0, len(before)-4):]
	return len(last) > 0 && slices.Contains([]string{"is", "are", "be", "gets"}, last[len(last)-1]) && !denied(before) &&
		firstOf(last, strings.Fields("that which whether if when who while what must")) == ""
}

// isForm reports whether a word is one of these verbs, as delete, deletes or deleting.
func isForm(w string, verbs []string) bool {
	for _, stem := range stems(w, "s", "es", "ing") {
		if slices.Contains(verbs, stem) {
			return true
		}
	}
	return slices.Contains(verbs, w)
}

func isParticiple(w string) bool {
	irregular := map[string]string{"overwritten": "overwrite", "rewritten": "rewrite", "written": "write", "sent": "send", "run": "run", "set": "set", "put": "put", "paid": "pay", "bought": "buy", "sold": "sell"}
	for _, stem := range stems(w, "ed") {
		if slices.Contains(changingWords, stem) {
			return true
		}
	}
	return irregular[w] != ""
}

// stems returns the words that a word with one of these endings may come from.
func stems(w string, endings ...string) (all []string) {
	for _, ending := range endings {
		stem, found := strings.CutSuffix(w, ending)
		if !found || len(stem) < 2 {
			continue
		}
		all = append(all, stem, stem+"e")
		if n := len(stem); stem[n-1] == stem[n-2] {
			all = append(all, stem[:n-1])
		}
		if root, found := strings.CutSuffix(stem, "i"); found {
			all = append(all, root+"y")
		}
	}
	return all
}

// speaksOfReading reports whether a text has a word of reading. One in a language that is not
// known here has none.
func speaksOfReading(text string) bool {
	return slices.ContainsFunc(nameWords(text), func(w string) bool {
		return isForm(w, readWords) || isOne(w, readingText)
	})
}

// argumentsDoubt returns what the arguments of a tool say beyond reading.
func argumentsDoubt(schema gate.Doc) (why string) {
	var texts, targets string
	eachProperty(schema, func(name string, property gate.Doc) {
		w := nameWords(name)
		has := func(known []string) bool { return firstOf(w, known) != "" }
		switch {
		case why != "" || len(w) == 0:
		case slices.Contains(argumentVerbs, w[0]), has(programArguments), has(newArguments), has(personWords),
			has(outputWords) && (len(w) == 1 && w[0] != "output" || anyOf(w, []string{"path", "file", "filename", "dir", "folder", "directory", "to", "as", "name", "table"})):
			why = fmt.Sprintf("its argument %q", name)
		case has(placedTexts):
			texts = name
		case has(targetWords):
			targets = name
		}
		for value := range property.Get("enum").Elements() {
			if v := nameWords(value.Text()); why == "" && len(v) > 0 && (slices.Contains(argumentVerbs, v[0]) || slices.Contains([]string{"post", "put"}, v[0])) {
				why = fmt.Sprintf("its argument %q can be %q", name, value.Text())
			}
		}
		if why == "" {
			if said := textDoubt(property.Get("description").Text(), changingWords); said != "" {
				why = fmt.Sprintf("its argument %q: %s", name, said)
			}
		}
	})
	if why == "" && texts != "" && targets != "" {
		why = fmt.Sprintf("its arguments %q and %q", targets, texts)
	}
	return why
}

// eachProperty calls f with each property of a schema, at any depth.
func eachProperty(schema gate.Doc, f func(name string, property gate.Doc)) {
	for name, property := range schema.Get("properties").Members() {
		f(name, property)
	}
	for _, part := range schema.Members() {
		switch part.Kind() {
		case doc.Object:
			eachProperty(part, f)
		case doc.Array:
			for one := range part.Elements() {
				eachProperty(one, f)
			}
		}
	}
}
