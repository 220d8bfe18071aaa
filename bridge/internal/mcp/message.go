package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ReadLine reads a line of at most max bytes, without its end. Of a longer one it
// returns some, and the error is a [*ProtocolError].
func ReadLine(r *bufio.Reader, max int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > max+1 {
			return append(line, part...), &ProtocolError{fmt.Errorf("the message has more than %d bytes", max)}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("the last line has no end: %w", io.ErrUnexpectedEOF)
		default:
			return nil, err
		}
	}
}
