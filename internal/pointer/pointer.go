// Package pointer writes and reads the tokens of JSON Pointers (RFC 6901, section 3).
package pointer

import "strings"

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// Escape returns a name as a JSON Pointer has it.
func Escape(name string) string {
	if strings.IndexByte(name, '~') < 0 && strings.IndexByte(name, '/') < 0 { // nearly always
		return name
	}
	return escapes.Replace(name)
}

// Unescape is the reverse of [Escape].
func Unescape(token string) string {
	if strings.IndexByte(token, '~') < 0 {
		return token
	}
	return unescapes.Replace(token)
}
