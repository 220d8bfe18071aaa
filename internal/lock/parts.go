package lock

import (
	"maps"
	"regexp"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// hash begins a digest, wherever one is written.
const hash = "sha256:"

// Parts are the members of a definition, by name, each with the beginning of its digest, as
// the lockfile has them: "description:0123456789abcdef inputSchema:...". They tell which part
// of a definition has changed that is known by its digests alone, and approve nothing.
type Parts string

const (
	partDigits = 16 // of the digest of a part
	maxParts   = 64 // of one definition; more are not listed
)

var partName = regexp.MustCompile(`^[A-Za-z0-9_.$-]{1,64}$`)

// partsOf returns the parts of a definition. Members with other names than partName says
// are not among them: only the digest of the whole covers those.
func partsOf(d gate.Doc) Parts {
	var all []string
	for _, name := range names(gate.Doc{}, d) {
		if partName.MatchString(name) && len(all) < maxParts {
			all = append(all, name+":"+d.Get(name).Digest()[:partDigits])
		}
	}
	return Parts(strings.Join(all, " "))
}

// split returns the digests by name.
func (p Parts) split() map[string]string {
	all := make(map[string]string)
	for part := range strings.FieldsSeq(string(p)) {
		name, digest, _ := strings.Cut(part, ":")
		all[name] = digest
	}
	return all
}

// common returns the parts that are the same in both.
func (p Parts) common(o Parts) map[string]string {
	other := o.split()
	same := p.split()
	maps.DeleteFunc(same, func(name, digest string) bool { return other[name] != digest })
	return same
}
