package words

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// counted are tokens where a number of them is asked for, as by max_tokens. Without a word
// that says so they are what a device shows for a login.
var counted = regexp.MustCompile(`\b(?:max|maximum|min|minimum|number of|how many)(?: (?:number|of|new|input|output|prompt|completion|context|thinking))* tokens\b|\btokens at (?:most|least)\b`)

// Uncounted returns the words of a text without those of a number of tokens.
func Uncounted(text string) string {
	if !strings.Contains(strings.ToLower(text), "tokens") {
		return text
	}
	return counted.ReplaceAllString(strings.Join(wordsOf(text), " "), ".")
}

// Describes reports whether a name is not of a secret, but of what is known about one, as
// token_name is. A longer one can be a sentence, as enter_your_password_of_any_type.
func Describes(name string) bool {
	words := wordsOf(name)
	return 2 <= len(words) && len(words) <= 3 &&
		slices.Contains([]string{"name", "label", "type", "length", "count", "limit", "policy", "expiry", "expires", "ttl"}, words[len(words)-1]) &&
		!slices.ContainsFunc(words[:len(words)-1], func(w string) bool { return slices.Contains(sentenceWords, w) })
}

// sentenceWords are words of who asks, or that join two things.
var sentenceWords = []string{"your", "my", "the", "enter", "give", "type", "please", "put", "input", "provide", "confirm", "and", "or", "with", "by", "not"}

// warning is a sentence at the end of a description that asks for no secret to be given.
// It has nothing but names of what is not to be given: "spaces in your password" and
// "spaces, password of the database" ask for one.
var (
	warning  = regexp.MustCompile(`(?i)(?:^|[.!?;(\n])[ \t]*(?:please )?(?:do not|don['’]t|never) (?:give us|send us|enter|include|type|paste|provide) ([a-z0-9,/ ]+)[.)! ]*$`)
	unasked  = []string{"your", "a", "an", "any", "or", "and", "such", "as", "phone", "number", "numbers", "email", "address", "personal", "sensitive", "private", "confidential", "card", "info", "information", "data", "api", "key", "keys"}
	noSecret = func(word string) bool { return !slices.Contains(unasked, word) && !Asked(word) }
)

// orOther ends a list; "any other password" would leave one that is asked for.
var orOther = regexp.MustCompile(`(?i) or (?:any )?other (sensitive|private|personal|confidential|info|information|data|secrets)\b`)

// Unwanted returns a description without the warning at its end not to give secrets.
func Unwanted(description string) string {
	at := warning.FindStringSubmatchIndex(description)
	if at == nil || slices.ContainsFunc(wordsOf(orOther.ReplaceAllString(description[at[2]:at[3]], " $1")), noSecret) {
		return description
	}
	return description[:at[0]]
}

// secretNames are words, and words that follow each other with or without something
// between them, by which a form asks for a secret.
var secretNames = func() map[string]bool {
	names := make(map[string]bool)
	for _, n := range strings.Fields(`
		password passwords passwd passphrase passphrases passcode passcodes pwd pswd
		secret secrets token tokens bearer jwt credential credentials creds
		apikey apikeys access_key access_keys private_key private_keys signing_key encryption_key ssh_key
		recovery_key recovery_code recovery_codes recovery_phrase backup_code backup_codes seed_phrase mnemonic recovery_words seed_words
		session_cookie session_cookies auth_cookie login_cookie connection_string connection_strings your_env_file
		pin pins pincode otp totp mfa one_time_code verification_code security_code security_answer two_factor_code auth_code authorization_code authenticator_app
		card_number card_no credit_card debit_card payment_card cvv cvc cvn back_of_your_card back_of_the_card
		bank_account account_number iban social_security_number ssn
		passwort kennwort geheimnis zugangsdaten contrasena contrasenya senha mot_de_passe wachtwoord haslo losenord heslo jelszo sifre
		пароль секрет токен`) {
		names[strings.ReplaceAll(n, "_", "")] = true
	}
	return names
}()

var (
	// properties are names of properties that mean something else in a sentence.
	properties = []string{"pass", "pw", "pan", "cred"}
	// secretStems are secrets within whatever word, as newpassword.
	secretStems = []string{"password", "passwd", "passphrase", "passcode", "passwort", "apikey", "privatekey", "secretkey", "accesskey", "cardnumber", "creditcard"}
	// secretEnds are secrets at the end of a word, as authtoken.
	secretEnds = []string{"secret", "secrets", "token", "tokens"}
	// secretSigns are those of scripts without spaces between words.
	secretSigns = []string{"密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호"}
)

// Property reports whether a property of a form asks for a secret by a name that means
// something else in a sentence.
func Property(name string) bool { return slices.Contains(properties, strings.ToLower(name)) }

// maxSecretWords is of how many words the longest of secretNames is.
const maxSecretWords = 4

// Asked reports whether a text has a word, or words, of secretNames, however it
// is spelt: in other case, joined by _, - or capital letters, in wide letters, with
// accents, or with digits in the place of letters. A word in letters of several
// scripts is taken for one: no honest form needs it.
func Asked(text string) bool {
	words := wordsOf(text)
	for i := range words {
		if mixed(words[i]) {
			return true
		}
		words[i] = strings.TrimRight(unleet(strings.TrimRight(words[i], "0123456789")), "0123456789")
	}
	for i, word := range words {
		if slices.ContainsFunc(secretStems, func(stem string) bool { return strings.Contains(word, stem) }) ||
			slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) }) {
			return true
		}
		for n := 1; n <= maxSecretWords && i+n <= len(words); n++ {
			if name := strings.Join(words[i:i+n], ""); secretNames[name] {
				return true
			}
		}
	}
	return slices.ContainsFunc(secretSigns, func(s string) bool { return strings.Contains(text, s) })
}

// wordsOf splits a text into words of lower case, without accents: at what is no
// letter, and in front of a capital letter that follows a small one.
func wordsOf(text string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
		}
		word = nil
	}
	before := rune(0)
	for _, r := range text {
		if r >= 0xFF01 && r <= 0xFF5E { // wide forms of ASCII
			r -= 0xFEE0
		}
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r): // accents on their own, and what is not seen
			continue
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			fallthrough
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '$' || r == '@':
			word = append(word, unaccented(unicode.ToLower(r)))
		default:
			end()
		}
		before = r
	}
	end()
	return words
}

// unaccented returns a small letter of Latin without its accent.
func unaccented(r rune) rune {
	const accented, bare = "àáâãäåāçćčèéêëēęìíîïīłñńňòóôõöøōùúûüūýÿžźżşšś", "aaaaaaaccceeeeeeiiiiilnnnooooooouuuuuyyzzzsss"
	at := 0
	for _, a := range accented {
		if a == r {
			return rune(bare[at])
		}
		at++
	}
	return r
}

// unleet returns a word with letters in the place of digits that stand for them.
var unleet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s").Replace

// mixed reports whether a word has letters of Latin and of a script whose letters look
// like those.
func mixed(word string) bool {
	latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
	return latin && strings.ContainsFunc(word, func(r rune) bool {
		return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
	})
}
