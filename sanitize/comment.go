package sanitize

import "strings"

const (
	// maxComment bounds a comment that may stay, in bytes.
	maxComment = 4 << 10
	// maxOwnWords is how many words of its own a comment that stays may have.
	maxOwnWords = 2
)

// hidesWords reports whether what s begins with, "<!", "<?" or "</", hides anything
// that somebody should read (HTML Living Standard, 13.2.5.41 to 53), and how much of it
// was read.
func hidesWords(s string) (hides bool, read int) {
	rest := s[:min(len(s), maxComment)]
	end, own := ">", 0
	if strings.HasPrefix(s, "<!--") {
		rest, end, own = rest[len("<!--"):], "-->", maxOwnWords
	}
	body, _, ok := strings.Cut(rest, end)
	switch {
	case !ok && len(s) > maxComment:
		return true, len(rest)
	case own == 0 && len(body) > len("<!doctype") && strings.EqualFold(body[:len("<!doctype")], "<!doctype"):
		return !isDoctype(body[len("<!doctype"):]), len(body)
	}
	return ownWords(body) > own, len(body)
}

// ownWords counts the words of a comment that are not those which tools and licences
// put into every file.
func ownWords(body string) (own int) {
	for word := range strings.FieldsFuncSeq(body, func(r rune) bool { return isWhite(r) || r < 0x80 && !isWord(r) && r != '-' && r != ':' && r != '\'' }) {
		word = strings.Trim(word, "-:'_")
		if len(word) > 1 && !isNumber(word) && !commentWords[strings.ToLower(word)] {
			own += 1 + len(word)/maxWord
		}
	}
	return own
}

// maxWord is longer than any word.
const maxWord = 32

// isNumber reports whether a word is a number, a date, or the short name of a rule,
// such as MD013.
func isNumber(word string) bool {
	digits := strings.TrimLeft(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return digits != "" && len(word)-len(digits) <= 3 && strings.Trim(digits, "0123456789-:") == ""
}

// commentWords are those of the headers of licences, and of the marks of tools that
// write into files. None of them tells anybody to do anything to anything else.
var commentWords = words(`
a about above accompanying acknowledgments additional affiliates against agreed agreement all allow also an and any apache applicable
are arising as asf associated at author authors available be been being below benefits binary both bsd business but by c can cause
caused certain charge claim clause code company comment comments condition conditions conjunction consequential contained contract
contributor contributors copies copy copyright corporation damages data dealings defects derived described details direct disclaimer
disclaims distributed distribution documentation due either even event every exemplary exist express file files fitness following foot for
foundation forms found free from further furnished general generated gnu goods governing governed grant granted hereby herein holder
holders however identifier if implied in inc incidental included including incompatible indemnify indirect information infringement
interruption is isc it its kind language law least lesser liability liable library license licensed licenses limitation limitations
limited llc loss ltd made manner materials may merchantability merge met mit modification modifications modified modify more mozilla mpl must names
neither negligence nor noninfringement not notice notices obtain obtained of on one only open or org original other otherwise out
ownership particular parties parts patent permission permissions permit permitted person portions possibility procurement
product products profits project provided provides public publish purpose redistribute redistribution redistributions regarding
reproduce required reserved restriction retain right rights see sell services shall should simultaneously software source spdx
special specific stated strict subject sublicense substantial substitute such terms that the their them theory there these they this
those title to tort under unless unmodified use used using version versions warranties warranty was way were when where whether which
while whom whose will with without work works writing written year you your
all-contributors-list all-contributors-list:start all-contributors-list:end all-contributors-badge:start all-contributors-badge:end
allow auto automatically begin cspell cspell:disable cspell:enable disable disable-file disable-line disable-next-line doctoc
dont edit don't editing enable end endif eslint-disable eslint-enable here ignore-start ignore-end instead keep lint manually
markdownlint markdownlint-capture markdownlint-disable markdownlint-disable-file markdownlint-disable-line
markdownlint-disable-next-line markdownlint-enable markdownlint-restore prettier-ignore prettier-ignore-start prettier-ignore-end
cdata xml utf-8 encoding standalone yes
re-run regenerate rerun section start stop toc tocstop update vale`)

// isDoctype reports whether the rest of a document type is a name and the
// identifiers that standards give.
func isDoctype(body string) bool {
	own := 0
	for i, part := range strings.Split(body, `"`) {
		identifier := !strings.Contains(part, " ") && (strings.HasPrefix(part, "urn:") || strings.HasSuffix(part, ".dtd")) || strings.HasPrefix(part, "-//") || strings.HasPrefix(part, "http://") || strings.HasPrefix(part, "https://") || part == "about:legacy-compat"
		if i%2 == 1 && (!identifier || len(part) > 60) {
			return false
		}
		own += len(strings.Fields(part))
	}
	return own <= 7
}
