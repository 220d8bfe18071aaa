package schema

import (
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// findMember returns the path of the first member that is meant; nil if there is none.
func findMember(d gate.Doc, meant func(name string, v gate.Doc) bool) (path []string) {
	var search func(gate.Doc) bool
	search = func(d gate.Doc) bool {
		for name, v := range d.Members() {
			path = append(path, name)
			if meant(name, v) || search(v) {
				return true
			}
			path = path[:len(path)-1]
		}
		i := 0
		for v := range d.Elements() {
			path = append(path, strconv.Itoa(i))
			if search(v) {
				return true
			}
			path = path[:len(path)-1]
			i++
		}
		return false
	}
	search(d)
	return path
}

// pointerTo returns the JSON Pointer (RFC 6901) of a path.
func pointerTo(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(pointer.Escape(token))
	}
	return b.String()
}
