package provenance

import (
	"slices"
	"strings"

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
