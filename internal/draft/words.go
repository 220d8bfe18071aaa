package draft

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate/provenance"
)

// An effectWord is one of the words by which tools have an effect.
type effectWord struct {
	effect provenance.ToolEffect
	words  []string
}

// The words that show what a tool does. They are in the singular, and mean the plural, too.
var (
	readWords = strings.Fields(`get list read search find query show describe view lookup look check count browse fetch download inspect status ls cat grep stat tree
		retrieve display calculate compute think explain compare estimate preview recommend suggest summarize snapshot screenshot diff whoami`)
	// afterWords are those of them that say nothing behind a word that could be a verb: unsubscribe_list.
	afterWords  = strings.Fields("list query view check count status stat tree look estimate preview snapshot screenshot diff display think")
	effectWords = []effectWord{
		{provenance.EffectLocal, strings.Fields("exec execute run shell command eval install kill")},
		{provenance.EffectInternal, strings.Fields(`create update write append set edit rename move schedule reschedule add insert save put copy upload mark modify change patch make open close start stop
			replace merge archive unarchive restore label tag pin unpin bookmark complete toggle duplicate clone log record link attach draft commit snooze assign import`)},
		{provenance.EffectExternal, strings.Fields(`send post publish share invite email mail message notify reply respond forward transfer pay payment purchase buy book reserve order submit tweet comment
			transaction participant attendee exec execute run shell command eval issue ticket review discussion gist release announcement broadcast announce refund invoice charge payout payee pull shared public
			beneficiary friend donate wire withdraw sell trade checkout exchange deploy push assign merge`)},
		{provenance.EffectDestructive, strings.Fields(`delete remove drop destroy cancel purge truncate overwrite reset erase clear wipe revoke transfer pay purchase buy transaction kill
			kick ban terminate trash discard refund payout wire withdraw donate empty uninstall`)},
		{provenance.EffectCredential, strings.Fields("password passwd credential token permission grant role auth access secret key")},
	}
	// thingWords are those of them that are things, or say how things are, as often as verbs.
	thingWords = strings.Fields(`email mail message tweet comment post share transaction transfer payment purchase order book participant attendee password passwd credential
		token permission role auth access secret key shell command schedule set open close start stop change patch mark label tag pin bookmark complete log record link draft commit
		issue ticket review discussion gist release announcement broadcast refund invoice charge payout payee beneficiary friend wire trade checkout exchange push trash empty reply merge run update upload pull`)
	joiningWords     = strings.Fields("and or then")
	destroyingWords  = strings.Fields("delete remove drop destroy cancel purge truncate erase clear wipe trash discard")
	keepingWords     = strings.Fields("modify move mark label tag archive unarchive star flag draft snooze")
	letterWords      = strings.Fields("email mail message")
	programWords     = strings.Fields("sql cypher statement script command")
	publicWords      = strings.Fields("tweet post publish broadcast announce announcement gist release")
	peopleWords      = strings.Fields("recipient receiver cc bcc email participant attendee invitee assignee reviewer collaborator audience channel chat friend payee beneficiary")
	placeWords       = strings.Fields("street city zip postal postcode country first last family middle given address")
	parcelWords      = strings.Fields("shipping delivery billing ship deliver parcel")
	destinationWords = strings.Fields(`to cc bcc recipient receiver email url uri endpoint webhook channel user username account iban bic swift routing participant member attendee invitee phone host domain
		owner org organization assignee reviewer collaborator payee beneficiary audience group chat destination dest wallet friend mention handle`)
	saidOfPeople  = strings.Fields("recipient receiver user username member participant attendee invitee person email account")
	selectorWords = strings.Fields("id path file filename folder directory name key target command code query sql script branch repo repository project hotel restaurant uuid guid sha ref slug source")
	idWords       = strings.Fields("id key uuid guid sha ref slug ts")
	contentWords  = strings.Fields(`body text message content subject note description comment title caption data location summary topic memo reason markdown html headline bio feedback
		instruction remark observation purpose initial greeting signature children rich entity relation`)
	commitWords = strings.Fields(`amount price quantity count number date day time start end when until deadline recurring permission priority status duration limit n
		type category class format mode state currency language locale timezone zone size color rating min max total minute hour week month year night seat reminder visibility
		attachment option setting field value property filter sort page offset level percent rate frequency interval method dimension width height timestamp reaction emoji
		label tag role row expire expiry check checkin checkout arrival departure pickup dropoff`)
	// headWords say by themselves what an argument is, whatever comes before them: email_subject,
	// to_date.
	headWords    = strings.Fields("body text message content subject note description comment title caption date time day type format amount count price quantity status currency timezone priority")
	countWords   = strings.Fields("number num count total max min maximum minimum")
	partyWords   = strings.Fields("sender from recipient to cc bcc participant attendee member owner author email shared with organizer creator assignee reviewer")
	namingWords  = strings.Fields("title subject name filename file summary topic")
	plainWords   = strings.Fields("from to with name") // that a description has, whatever it says
	partyFields  = strings.Fields("sender from to recipient cc bcc participant attendee member owner author shared_with organizer creator assignee reviewer email")
	nameFields   = strings.Fields("title subject name filename topic summary")
	textKinds    = strings.Fields("file document page note table database") // whose texts anyone may have written
	listingWords = strings.Fields("list search find query")
	kindWords    = strings.Fields("message mail email event file document folder channel user contact transaction payment order invoice issue ticket task project repository repo branch comment page note thread post product customer account booking reservation room hotel restaurant flight car item job run list card board calendar team label playlist song album chat group deal company lead subscription appointment database block table record meeting pull")
	// talkKinds are kinds of records to which one talks, contactWords arguments that name a person.
	talkKinds    = strings.Fields("channel user thread chat")
	contactWords = strings.Fields("recipient receiver member participant invitee username")
	senderWords  = strings.Fields("sender author member participant username")
	// payWords are of tools whose recipients are accounts or addresses, and no users of the server.
	payWords     = strings.Fields("pay payment purchase buy order transfer money transaction refund payout donate wire withdraw sell trade checkout invoice charge book reserve rent mail email")
	updateWords  = strings.Fields("update change modify edit")
	formWords    = strings.Fields("ref selector element field") // parts of a form that a page has
	vagueWords   = strings.Fields("to from new old parent primary secondary target source dest destination")
	privateWords = strings.Fields("mail email inbox message file document calendar contact account balance transaction user profile secret iban note history chat conversation appointment booking reservation card password credential token")
	environWords = strings.Fields("current all my recent directory browser web server")
)

// usualFields are what records of a kind have, whatever is said of them.
var usualFields = map[string][]string{
	"contact":  {"email", "name"},
	"customer": {"email", "name"},
	"file":     {"owner", "shared_with", "filename", "name"},
	"document": {"owner", "shared_with", "title", "name"},
	"event":    {"organizer", "participant", "title"},
	"meeting":  {"organizer", "participant", "title"},
}

// accountWords are of tools that read the account holder's own record, and plainReadWords and recordWords
// are the others that their names have. ownPlaces is where that record says what is the holder's.
var (
	accountWords   = strings.Fields("me myself whoami user profile account")
	plainReadWords = strings.Fields("get read show describe view fetch retrieve display")
	recordWords    = strings.Fields("my own current the info information detail details record data")
	ownPlaces      = []provenance.Place{"/**/email", "/**/address", "/**/phone", "/**/iban"}
)

// amountKind is the kind of amounts at which money has changed hands. The bank writes them. paidKinds
// are the records that have one, askedWords are of those that only ask for one.
const amountKind = "amount"

var (
	paidKinds  = strings.Fields("transaction payment transfer")
	askedWords = strings.Fields("request pending requested due open unpaid invoice bill quote offer draft proposal")
)

// isOne reports whether a word is one of those that are known, or of several of them.
func isOne(w string, known []string) bool {
	return slices.Contains(known, w) || slices.Contains(known, singular(w))
}

func anyOf(words, known []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return isOne(w, known) })
}

// singular returns a word without the ending of several.
func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-len("ies")] + "y"
	case strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us"):
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// nameWords splits a name at what is no letter and before capitals, a row of capitals before its last one.
func nameWords(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	letters := []rune(name)
	for i, r := range letters {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		before := i > 0 && unicode.IsLower(letters[i-1])
		within := i > 0 && unicode.IsUpper(letters[i-1]) && i+1 < len(letters) && unicode.IsLower(letters[i+1]) && letters[i+1] != 's'
		if unicode.IsUpper(r) && (before || within) {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}
