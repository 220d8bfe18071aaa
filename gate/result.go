package gate

import "strings"

// Text returns the texts of a tool's result, a line break between two of them; ""
// if it has none.
func (r Result) Text() string {
	var b strings.Builder
	for block := range r.Doc.Get("content").Elements() {
		if block.Get("type").Text() != "text" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(block.Get("text").Text())
	}
	return b.String()
}
