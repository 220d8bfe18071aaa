package audit

import (
	"bufio"
	"bytes"
)

// logBegins is how the lines of a log begin, and lookahead how far it is looked for.
const (
	logBegins = `{"log":`
	lookahead = 64
)

// IsLog reports whether what r reads next is a log, rather than another file of JSON
// lines. It takes nothing from r.
func IsLog(r *bufio.Reader) bool {
	begin, _ := r.Peek(lookahead)
	return bytes.HasPrefix(bytes.TrimSpace(begin), []byte(logBegins))
}
