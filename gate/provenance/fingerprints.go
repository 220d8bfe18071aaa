package provenance

import "strings"

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
