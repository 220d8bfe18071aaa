package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lines reads lines and knows where in the file the next one begins.
type lines struct {
	r   *bufio.Reader
	off int64
	buf []byte
}

var errTooLong = fmt.Errorf("is longer than a line may be (%d bytes)", maxLine)

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its newline, valid until the call after.
// At the end it returns what is left of a line, with io.EOF. A line that is too
// long is passed over, with errTooLong.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for n := int64(0); ; {
		part, err := l.r.ReadSlice('\n')
		n += int64(len(part))
		if n <= maxLine {
			l.buf = append(l.buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return l.buf, err
		}
		l.off += n
		if n > maxLine {
			return nil, errTooLong
		}
		return l.buf[:n-1], nil
	}
}
