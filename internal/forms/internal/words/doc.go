// Package words knows the words by which a form asks a person for a secret, in
// several languages and spellings.
package words
