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

// Path returns the names and indices that a pointer consists of.
func Path(p string) (path []string) {
	for token := range strings.SplitSeq(p, "/") {
		path = append(path, Unescape(token))
	}
	return path[1:] // what comes before the first slash is empty
}

// Unescape is the reverse of [Escape].
func Unescape(token string) string {
	if strings.IndexByte(token, '~') < 0 {
		return token
	}
	return unescapes.Replace(token)
}
