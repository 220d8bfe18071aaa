package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
)

// logBegins is how the lines of a log begin, and lookahead how far it is looked for; packed
// text is looked at with its header.
const (
	logBegins       = `{"log":`
	lookahead       = 64
	packedLookahead = 4 << 10
)

// IsLog reports whether what r reads next is a log, packed or not, rather than another file
// of JSON lines. It takes nothing from r.
func IsLog(r *bufio.Reader) bool {
	begin, _ := r.Peek(packedLookahead)
	if z, err := gzip.NewReader(bytes.NewReader(begin)); err == nil {
		text := make([]byte, lookahead)
		n, _ := io.ReadFull(z, text)
		begin = text[:n]
	}
	return bytes.HasPrefix(bytes.TrimSpace(begin[:min(len(begin), lookahead)]), []byte(logBegins))
}
