package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const maxLine = 64 << 20 // bytes of a line; both documents at the gateway's default limits take 14 MiB

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

// begins returns the number and the time of a file's first line.
func begins(name string) (seq uint64, at time.Time, err error) {
	f, err := openLog(name)
	if err != nil {
		return 0, time.Time{}, err
	}
	defer f.Close()
	b, err := newLines(f.text).next()
	var first struct {
		Seq  uint64
		Time time.Time
	}
	if err == nil {
		err = json.Unmarshal(b, &first)
	}
	return first.Seq, first.Time, err
}
