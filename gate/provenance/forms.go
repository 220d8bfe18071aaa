package provenance

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/internal/address"
)

// maxValue bounds a value that is kept, in bytes: paths, titles and addresses
// are shorter, and longer texts are kept by their lines.
const maxValue = 1 << 10

// plain returns a value without the space and the quotation marks around it, and
// with one space where there are several.
func plain(v string) string {
	v = strings.TrimSpace(v)
	for len(v) >= 2 && v[0] == v[len(v)-1] && strings.IndexByte("\"'`", v[0]) >= 0 {
		v = strings.TrimSpace(v[1 : len(v)-1])
	}
	for i := range len(v) {
		if c := v[i]; c == '\t' || c == '\n' || c == '\r' || c == ' ' && i+1 < len(v) && v[i+1] == ' ' {
			return spaces(v)
		}
	}
	return v
}

// spaces returns a value with one space where there are several in a line. A line break is
// none: to a shell it is the end of a command.
func spaces(v string) string {
	var lines []string
	for line := range strings.Lines(v) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// The forms in which spellings of one thing are equal begin with a control
// character, so that no text is one of them.
const (
	numericForm = "\x01"
	dateForm    = "\x02" // YYYY-MM-DD, or MM-DD of any year
	timeForm    = "\x03" // HH:MM, or HH:MM:SS
	momentForm  = "\x04" // date and time
	addressForm = "\x05" // URLs, e-mail addresses, account numbers
	promptForm  = "\x06" // a whole prompt, which is read once
	idForm      = "\x07" // an id: its server, its kind and itself, with zeros between them
	nameForm    = "\x08" // words of a prompt, in small letters
	printForm   = "\x0e" // a row of words, see fingerprints
	originForm  = "\x0f" // the origin of a URL in a prompt
	ownForm     = "\x10" // what the record of the account holder says of him, or lists: a text, an address, an id
)

// forms returns the other forms of a value but for that of a number, in which
// spellings of one thing are equal.
func forms(v string) []string {
	if len(v) > maxValue {
		return nil
	}
	var all []string
	if a := address.Of(v); a != "" {
		all = append(all, addressForm+a)
	}
	if date, clock, ok := moment(v); ok {
		switch {
		case clock == "":
			all = append(all, dateForm+date)
		case date == "":
			all = append(all, timeForm+clock)
		default:
			all = append(all, momentForm+date+" "+clock)
		}
	}
	return all
}

// parts returns the forms of the parts that a value is made of, if it is a date
// with a time of day, or a list of addresses.
func parts(v string) []string {
	if date, clock, ok := moment(v); ok && date != "" && clock != "" {
		return []string{dateForm + date, timeForm + clock}
	}
	list := addressList(v)
	for i, a := range list {
		list[i] = addressForm + a
	}
	return list
}

// allForms are the forms in which a value can have been met.
func allForms(text string) []string {
	v := plain(text)
	all := append([]string{v}, forms(v)...)
	if n := amount(v); n != "" {
		all = append(all, n)
	}
	return append(all, parts(v)...)
}

// ownForms are the forms in which a value of one's own can come again.
func ownForms(text string) []string {
	if text == "" {
		return nil
	}
	all := []string{ownForm + text}
	if a := address.Of(text); a != "" {
		all = append(all, ownForm+a)
	}
	return all
}

// addressList returns the addresses of a value that is a list of them.
func addressList(v string) []string {
	list := strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ';' })
	if len(list) < 2 {
		return nil
	}
	for i, one := range list {
		if list[i] = address.Of(strings.TrimSpace(one)); list[i] == "" {
			return nil
		}
	}
	return list
}

// numberForm returns the form of a number as JSON writes it.
func numberForm(literal string) string {
	if form := number10(literal, true); form != "" {
		return form
	}
	return numericForm + strings.ToLower(literal) // with an exponent
}

// maxAmount bounds a number with its currency, in bytes.
const maxAmount = 64

// amount returns the form of a number as people write it, with the sign or the
// letters of a currency before or after it and commas between thousands; "" if
// the text is no number. Three digits after a point are kept as they are: they may be
// thousands.
func amount(v string) string { return number10(v, false) }

// number10 is amount, also of a number as JSON writes it, in which a point is one.
func number10(v string, literal bool) string {
	if len(v) > maxAmount || !strings.ContainsAny(v, "0123456789") {
		return ""
	}
	v = strings.TrimFunc(v, func(r rune) bool { return unicode.Is(unicode.Sc, r) || r == ' ' })
	if before, after, ok := strings.Cut(v, " "); ok {
		switch { // USD 12.50, 12.50 EUR
		case currency(before):
			v = after
		case currency(after):
			v = before
		}
	}
	sign := ""
	if strings.HasPrefix(v, "-") {
		sign, v = "-", v[1:]
	}
	v = strings.TrimLeftFunc(v, func(r rune) bool { return unicode.Is(unicode.Sc, r) })
	whole, fraction, _ := strings.Cut(v, ".")
	whole, ok := ungrouped(whole)
	if !ok || !digits(fraction) || len(whole) > 1 && whole[0] == '0' || strings.HasSuffix(v, ".") {
		return ""
	}
	if len(fraction) == 3 && !literal { // 100.000 is a hundred thousand to half of Europe
		return numericForm + sign + whole + "." + fraction
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return numericForm + sign + whole
}

func currency(s string) bool {
	return len(s) == 3 && strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// bareAmount ends the form of an amount that was written without a currency.
const bareAmount = " "

// symbols are the signs of currencies that have one meaning, or one most often.
var symbols = map[rune]string{'$': "USD", '€': "EUR", '£': "GBP", '¥': "JPY", '₹': "INR", '₿': "BTC", '₩': "KRW", '₽': "RUB"}

// currencyOf returns the currency of an amount, "" if it names none.
func currencyOf(v string) string {
	if len(v) > maxAmount {
		return ""
	}
	for _, r := range v {
		if code, known := symbols[r]; known {
			return code
		}
		if unicode.Is(unicode.Sc, r) {
			return string(r)
		}
	}
	before, after, _ := strings.Cut(v, " ")
	switch {
	case currency(before):
		return before
	case currency(after):
		return after
	}
	return ""
}

// beside returns the currency next to the amount at words[i]; "" if there is none.
func beside(words []string, i int) string {
	if !strings.ContainsAny(words[i], "0123456789") || amount(trimmed(words[i])) == "" {
		return ""
	}
	if i+1 < len(words) && currency(trimmed(words[i+1])) {
		return trimmed(words[i+1])
	}
	if i > 0 && currency(trimmed(words[i-1])) {
		return trimmed(words[i-1])
	}
	return ""
}

// ungrouped takes the commas out of 1,234,567.
func ungrouped(s string) (string, bool) {
	groups := strings.Split(s, ",")
	for i, g := range groups {
		if !digits(g) || g == "" || i > 0 && len(g) != 3 || i == 0 && len(groups) > 1 && len(g) > 3 {
			return "", false
		}
	}
	return strings.Join(groups, ""), true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

var months = [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}

func monthOf(word string) int {
	word = strings.ToLower(word)
	if len(word) < 3 {
		return 0
	}
	return 1 + slices.IndexFunc(months[:], func(m string) bool { return m == word || m[:3] == word || word == "sept" && m == "september" })
}

func dayOf(word string) int {
	for _, ending := range [...]string{"st", "nd", "rd", "th"} {
		word = strings.TrimSuffix(word, ending)
	}
	if day := number(word); len(word) <= 2 && day >= 1 && day <= 31 {
		return day
	}
	return 0
}

// number returns the value of one to four digits, or -1.
func number(s string) int {
	if s == "" || len(s) > 4 || !digits(s) {
		return -1
	}
	n := 0
	for i := range len(s) {
		n = 10*n + int(s[i]-'0')
	}
	return n
}

func two(n int) string { return string([]byte{'0' + byte(n/10), '0' + byte(n%10)}) }

// moment reads a date (YYYY-MM-DD), a time of day (HH:MM, with seconds, with am
// or pm), or both with a space or a T between them. A time zone is dropped.
func moment(v string) (date, clock string, ok bool) {
	if len(v) < 3 || len(v) > 40 || v[0] < '0' || v[0] > '9' {
		return "", "", false
	}
	if len(v) >= 10 && v[4] == '-' && v[7] == '-' {
		year, month, day := number(v[:4]), number(v[5:7]), number(v[8:10])
		if year < 0 || month < 1 || month > 12 || day < 1 || day > 31 {
			return "", "", false
		}
		date, v = v[:10], v[10:]
		if v == "" {
			return date, "", true
		}
		if v[0] != ' ' && v[0] != 'T' {
			return "", "", false
		}
		v = v[1:]
		for _, zone := range [...]string{"Z", "+00:00", ".000", ".000000"} {
			v = strings.TrimSuffix(v, zone)
		}
	}
	clock = clockOf(v)
	return date, clock, clock != ""
}

// clockOf returns a time of day as HH:MM, or HH:MM:SS if there are seconds.
func clockOf(v string) string {
	v = strings.ToLower(v)
	v, pm := strings.CutSuffix(v, "pm")
	v, am := strings.CutSuffix(v, "am")
	v = strings.TrimSpace(v)
	parts := strings.Split(v, ":")
	if len(parts) > 3 || len(parts) == 1 && !am && !pm {
		return ""
	}
	for i, part := range parts {
		if n := number(part); n < 0 || n > 59 || i == 0 && n > 23 || i > 0 && len(part) != 2 {
			return ""
		}
	}
	hour := number(parts[0])
	if (am || pm) && (hour < 1 || hour > 12) {
		return ""
	}
	if am || pm {
		hour %= 12
	}
	if pm {
		hour += 12
	}
	clock := two(hour) + ":00"
	if len(parts) > 1 {
		clock = two(hour) + ":" + parts[1]
	}
	if len(parts) == 3 && parts[2] != "00" {
		clock += ":" + parts[2]
	}
	return clock
}

// originOf returns the origin of a URL of http or https (RFC 6454), and what follows it.
func originOf(v string) (origin, rest string) {
	u, err := url.Parse(v)
	if err != nil || u.User != nil || u.Host == "" || u.Opaque != "" {
		return "", ""
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "https" && scheme != "http" {
		return "", ""
	}
	rest = u.Path
	if u.RawQuery != "" || u.Fragment != "" {
		query, err := url.QueryUnescape(u.RawQuery)
		if err != nil {
			return "", ""
		}
		rest += " " + strings.NewReplacer("&", " ", "=", " ").Replace(query) + " " + u.Fragment
	}
	return scheme + "://" + strings.ToLower(u.Host), strings.ReplaceAll(rest, "/", " ")
}

func trimmed(word string) string { return strings.Trim(word, address.Delimiters) }
