package provenance

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// use is what holds for the arguments of one call besides what its session has met.
type use struct {
	server       string
	labels       ToolLabels
	own          Identities
	destinations []string
}

// Identities are what a principal is called elsewhere: addresses, accounts, folders, and
// domains as @example.com.
type Identities []string

// has reports whether a value is one of them. Addresses are compared in any of their
// spellings, and a domain has each e-mail address of it, not those of domains below it.
func (ids Identities) has(value string) bool {
	if len(ids) == 0 {
		return false
	}
	value = plain(value)
	one := address.Of(value)
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, "@"):
			if _, domain, ok := strings.Cut(one, "@"); ok && !strings.Contains(one, "/") && strings.EqualFold(domain, id[1:]) {
				return true
			}
		case value == id, one != "" && one == address.Of(id):
			return true
		}
	}
	return false
}

// cover reports whether a value is a path below one of them that is a folder. Hidden files say
// what programs do, and are not covered.
func (ids Identities) cover(value string) bool {
	if len(ids) == 0 {
		return false
	}
	path := slashed(plain(value))
	return slices.ContainsFunc(ids, func(id string) bool {
		folder := strings.TrimRight(slashed(id), "/")
		rooted := strings.HasPrefix(folder, "/") || len(folder) > 2 && folder[1:3] == ":/"
		below, ok := strings.CutPrefix(path, folder+"/")
		return rooted && ok && !strings.ContainsAny(below, "%\x00") && !strings.Contains("/"+below, "/.")
	})
}

// slashed returns a path with one kind of slashes.
func slashed(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// For returns what is known with what holds for the arguments of one call of a server's tool: the
// operator's labels of the tool, what is the principal's own, and the destinations at the server
// that a person has approved.
func For(p Provenance, server string, said ToolLabels, own Identities, destinations []string) Provenance {
	p.use = &use{server, said, own, destinations}
	return p
}

// IsTo reports whether an argument of the call that [For] was given says to whom or where.
func IsTo(p Provenance, a Argument) bool {
	return a.Form != "" && (p.use == nil || p.use.labels.to(a.Pointer))
}

// used completes an argument by what holds for its call.
func (p Provenance) used(a *Argument) {
	u := p.use
	if u == nil {
		return
	}
	if a.Takes = KindOf(u.labels, a.Pointer); a.Takes != "" {
		s := p.find(idOf(u.server, a.Takes, a.Form))
		a.Listed = s != 0
		a.Source |= s & FromTrusted
		if u.labels.DestroysOwn {
			a.Source |= p.find(ownForm + idOf(u.server, a.Takes, a.Form))
		}
	}
	if u.own.has(a.Form) || u.all(a.Form) || p.owns(a.Form) {
		a.Own = true
		a.Source |= FromTrusted
	}
	if u.own.cover(a.Form) {
		a.Own = true
		if !slices.Contains(u.labels.Effects, EffectDestructive) {
			a.Source |= FromTrusted
		}
	}
	if !u.labels.to(a.Pointer) {
		return
	}
	if u.destination(a.Form) {
		a.Source |= FromTrusted
	}
	a.Near = u.labels.fetches() && p.near(a.Form)
}

// owns reports whether the account holder's own record has a value. Most sessions have read none.
func (p Provenance) owns(value string) bool {
	return p.find(ownForm) != 0 && slices.ContainsFunc(ownForms(value), func(form string) bool { return p.find(form) != 0 })
}

// names collects the names in the pointers by which the operator says what arguments are for.
func (u *use) names(names map[string]bool) {
	if u == nil {
		return
	}
	for _, pointers := range [][]string{u.labels.Control, u.labels.Content, u.labels.To, u.labels.Commits} {
		for _, p := range pointers {
			for _, name := range strings.Split(p, "/")[1:] {
				names[pointer.Unescape(name)] = true
			}
		}
	}
}

// destination reports whether a person has approved a value as a destination at the server.
func (u *use) destination(value string) bool {
	return len(u.destinations) > 0 && covers(u.destinations, value)
}

// covers reports whether values have all that a value says: it, or each address of a list.
func covers(values []string, all string) bool {
	has := func(one string) bool {
		return slices.ContainsFunc(values, func(v string) bool {
			return same(v, one) || slices.ContainsFunc(addressList(v), func(of string) bool { return same(of, one) })
		})
	}
	list := addressList(all)
	return has(all) || len(list) > 0 && !slices.ContainsFunc(list, func(one string) bool { return !has(one) })
}

// same reports whether two values are one as a whole, in whatever spelling.
func same(v, w string) bool {
	v, w = plain(v), plain(w)
	all := forms(v)
	return v != "" && (v == w || slices.ContainsFunc(forms(w), func(form string) bool { return slices.Contains(all, form) }))
}

// all reports whether a value is a list of addresses, and all of them are the principal's own.
func (u *use) all(value string) bool {
	if len(u.own) == 0 {
		return false
	}
	list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' })
	return len(list) > 1 && !slices.ContainsFunc(list, func(one string) bool { return !u.own.has(one) })
}

// fetches reports whether a tool does nothing but read, at an address.
func (l ToolLabels) fetches() bool {
	return slices.Contains(l.Effects, EffectEgress) && !slices.ContainsFunc(l.Effects, func(e ToolEffect) bool { return e != EffectRead && e != EffectEgress })
}

// near reports whether a URL has the origin of one in the user's own words, and takes
// nothing along that is private.
func (p Provenance) near(v string) bool {
	origin, rest := originOf(v)
	return origin != "" && p.find(originForm+origin)&FromPrompt != 0 && !strings.ContainsAny(rest, "@\\") && !p.holdsPrivate(rest)
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

// Private reports whether a text holds what the session knows only from a private result: an
// address, a number of at least four digits, a row of words.
func (p Provenance) Private(text string) bool { return p.holdsPrivate(text) }

func (p Provenance) holdsPrivate(text string) bool {
	if p.newest == nil || p.lost { // what is not kept can be in any text
		return p.lost && text != ""
	}
	private := func(form string) bool {
		s := p.find(form)
		return s&fromPrivate != 0 && s&(FromPrompt|FromApproved) == 0
	}
	found := false
	address.In(text, func(a string) { found = found || private(addressForm+a) })
	if found {
		return true
	}
	fingerprints(text, func(print string) bool {
		found = private(print)
		return !found
	})
	if found {
		return true
	}
	for word := range strings.FieldsSeq(text) {
		if word = trimmed(word); telling(word) && (private(word) || slices.ContainsFunc(strings.FieldsFunc(word, mark), private)) {
			return true
		}
	}
	return false
}

// mark reports whether a character is none of a code.
func mark(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// uncommon reports whether a value is one that is hardly met twice by chance: of three
// digits or eight letters. Dates and times are none.
func uncommon(v string) bool {
	n := 0
	for i := range len(v) {
		if v[i] >= '0' && v[i] <= '9' {
			n++
		}
	}
	if _, _, dated := moment(v); dated {
		return false
	}
	return n >= 3 || len(v)-n >= 8
}

// minTelling is how many digits a word has that tells something by itself.
const minTelling = 4

// telling reports whether a word is a code, a number or an id that no one comes upon by chance.
// Dates and times are none.
func telling(word string) bool {
	n := 0
	for i := range len(word) {
		if word[i] >= '0' && word[i] <= '9' {
			n++
		}
	}
	if n < minTelling {
		return false
	}
	_, _, dated := moment(word)
	return !dated
}

const (
	// printWords is how many words a fingerprint has, printWindow of how many in a row one
	// is taken: any row of printWords+printWindow-1 words has one.
	printWords  = 5
	printWindow = 4
)

// fingerprints calls f with rows of words of a text, so chosen that a longer row gives one of its
// own wherever it is (Schleimer, Wilkerson and Aiken 2003), until f returns false.
func fingerprints(text string, f func(string) bool) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f)
	})
	var prints []string
	var hashes []uint64
	for i := 0; i+printWords <= len(words); i++ {
		print := printForm + strings.Join(words[i:i+printWords], " ")
		prints, hashes = append(prints, print), append(hashes, hashOf(print))
	}
	last := -1
	for i := 0; i+printWindow <= len(hashes); i++ {
		least := i
		for j := i; j < i+printWindow; j++ {
			if hashes[j] <= hashes[least] {
				least = j
			}
		}
		if least != last && !f(prints[least]) {
			return
		}
		last = least
	}
}
