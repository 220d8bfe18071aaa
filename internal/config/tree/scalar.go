package tree

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)
	wordScalar  = regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

// Scalar returns s as a YAML scalar: as it is if every reader
// takes it for text, else in the quotes of JSON, which YAML 1.2 includes.
func Scalar(s string) string {
	if plainScalar.MatchString(s) && !wordScalar.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
