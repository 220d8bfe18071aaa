package pointer

import "strings"

var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

// Escape returns a name as a JSON Pointer has it.
func Escape(name string) string {
	if strings.IndexByte(name, '~') < 0 && strings.IndexByte(name, '/') < 0 { // nearly always
		return name
	}
	var b strings.Builder
	Write(&b, name)
	return b.String()
}

// Write writes what [Escape] returns.
func Write(b *strings.Builder, name string) {
	for {
		i := strings.IndexAny(name, "~/")
		if i < 0 {
			b.WriteString(name)
			return
		}
		b.WriteString(name[:i])
		if name[i] == '~' {
			b.WriteString("~0")
		} else {
			b.WriteString("~1")
		}
		name = name[i+1:]
	}
}

// Unescape is the reverse of [Escape].
func Unescape(token string) string {
	if strings.IndexByte(token, '~') < 0 {
		return token
	}
	return unescapes.Replace(token)
}
