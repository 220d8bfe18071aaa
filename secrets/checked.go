package secrets

import (
	"strings"

	"github.com/wasmgate/wasmgate/internal/apikey"
)

// The rules of [Options.Checked]: numbers that prove themselves by a checksum.
const (
	RuleCard = "payment-card" // 14 to 19 digits of a known network, Luhn (ISO/IEC 7812-1)
	RuleIBAN = "iban"         // length by country, modulo 97 (ISO 13616)
)

// RuleGatewayKey is the rule for API keys of wasmgate, which prove themselves by their
// checksum.
const RuleGatewayKey = "wasmgate-key"

// A check is a rule without an expression.
type check struct {
	*rule
	always bool // without [Options.Checked]
	find   func(all []match, r *rule, text string) []match
}

func checks() []check {
	return []check{
		{checkedRule(RuleGatewayKey, "Found an API key of wasmgate; its checksum is right."), true, gatewayKeys},
		{checkedRule(RuleURL, "Found a password or a token in the user information of a URL."), true, urlCredentials},
		{checkedRule(RuleCard, "Found the number of a payment card; its check digit is right."), false, cards},
		{checkedRule(RuleIBAN, "Found the number of a bank account (IBAN); its check digits are right."), false, ibans},
	}
}

func checkedRule(id, kind string) *rule {
	return &rule{ruleSource: ruleSource{ID: id, Description: kind}}
}

func gatewayKeys(all []match, r *rule, text string) []match {
	for at := 0; ; {
		i := strings.Index(text[at:], apikey.Prefix)
		if i < 0 {
			return all
		}
		from := at + i
		at = from + len(apikey.Prefix)
		if to := from + apikey.Size; to <= len(text) {
			if _, ok := apikey.ID(text[from:to]); ok {
				all = append(all, match{rule: r, start: from, end: to, whole: [2]int{from, to}, secret: text[from:to]})
				at = to
			}
		}
	}
}

// A number is what a text has, without what separates its groups.
type number struct {
	bytes [maxNumber]byte
	len   int
}

func (n *number) match(r *rule, start, end int) match {
	return match{rule: r, start: start, end: end, whole: [2]int{start, end}, secret: string(n.bytes[:n.len])}
}

// Lengths of numbers.
const (
	minCard, maxCard = 14, 19
	maxNumber        = 34 // of an IBAN
)

// cards finds runs of digits, in groups or not, that are a card's number. Numbers
// that go on, with a point or a letter, are none.
func cards(all []match, r *rule, text string) []match {
	var n number
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		end := n.read(text, i, maxCard+1, isDigit)
		if n.len >= minCard && n.len <= maxCard && !joined(text, i, end) && n.isCard() {
			all = append(all, n.match(r, i, end))
		}
		i = end
	}
	return all
}

// ibans finds two capitals and two digits that begin an account's number.
func ibans(all []match, r *rule, text string) []match {
	var n number
	for i := 0; i+4 < len(text); i++ {
		if !isCapital(text[i]) || !isCapital(text[i+1]) || !isDigit(text[i+2]) || !isDigit(text[i+3]) {
			continue
		}
		length := ibanLength(text[i : i+2])
		if end := n.read(text, i, length, isCapitalOrDigit); length > 0 && n.len == length && !joined(text, i, end) && n.isIBAN() {
			all = append(all, n.match(r, i, end))
			i = end
		}
	}
	return all
}

// read reads up to most characters of a kind, with spaces or hyphens between groups
// of four, or of four, six and the rest, and returns where they end.
func (n *number) read(text string, start, most int, is func(byte) bool) (end int) {
	n.len = 0
	for i := start; i < len(text) && n.len < most; i++ {
		switch c := text[i]; {
		case is(c):
			n.bytes[n.len] = c
			n.len++
			end = i + 1
		case (c == ' ' || c == '-') && i == end && (n.len%4 == 0 || n.len == 10):
		default:
			return end
		}
	}
	return end
}

// joined reports whether a number is a part of something longer.
func joined(text string, start, end int) bool {
	if start > 0 && (isWord(text[start-1]) || text[start-1] == '.' || text[start-1] == '-') {
		return true
	}
	return end < len(text) && (isWord(text[end]) || text[end] == '.' && end+1 < len(text) && isWord(text[end+1]))
}

// networks are the first digits of cards and the lengths of their numbers, as they
// are issued today: other lengths are mostly numbers of something else.
var networks = []struct {
	first, last string
	min, max    int
}{
	{"34", "34", 15, 15}, {"37", "37", 15, 15}, // American Express
	{"300", "305", 14, 14}, {"36", "36", 14, 14}, {"38", "39", 14, 14}, // Diners Club
	{"3528", "3589", 16, 16},                       // JCB
	{"4", "4", 16, 16},                             // Visa
	{"51", "55", 16, 16}, {"2221", "2720", 16, 16}, // Mastercard
	{"50", "50", 16, 16}, {"56", "58", 16, 16}, // Maestro
	{"6011", "6011", 16, 16}, {"644", "659", 16, 16}, // Discover
	{"62", "62", 16, 19},     // UnionPay
	{"2200", "2204", 16, 19}, // Mir
}

func (n *number) isCard() bool {
	digits := n.bytes[:n.len]
	for _, net := range networks {
		first := string(digits[:len(net.first)])
		if n.len >= net.min && n.len <= net.max && first >= net.first && first <= net.last {
			return luhn(digits)
		}
	}
	return false
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isIBAN computes the remainder of the number as it is written for the check:
// its first four characters last, letters as numbers from 10 on.
func (n *number) isIBAN() bool {
	rest := 0
	for i := range n.len {
		c := n.bytes[(i+4)%n.len]
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
}

// ibanLengths are the countries of the IBAN registry, and how long their numbers
// are.
const ibanLengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27" +
	"GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19" +
	"MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24" +
	"TR26UA29VA22VG24XK20YE30"

func ibanLength(country string) int {
	for i := 0; i < len(ibanLengths); i += 4 {
		if ibanLengths[i:i+2] == country {
			return int(ibanLengths[i+2]-'0')*10 + int(ibanLengths[i+3]-'0')
		}
	}
	return 0
}
