package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// byteOrderMark is at the start of what some servers write.
const byteOrderMark = "\ufeff"

// readEvents reads a stream of server-sent events (HTML Living Standard, 9.2)
// and gives the data of each to f until f wants no more or the stream ends. An
// event of more than max bytes is a [*mcp.TooLarge]. at learns where the stream is. Comments
// are skipped, and so are events of another type than message, which is that of MCP's and of
// those without a type (9.2.6).
func readEvents(r io.Reader, max int64, at *place, f func(data []byte) (more bool, err error)) error {
	lines := eventReaders.Get().(*eventLines)
	defer lines.free()
	lines.r.Reset(r)
	lines.max = max + int64(len(byteOrderMark)+len("data: "))
	var data []byte
	other := false // the event has another type
	for first := true; ; first = false {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // an event without its empty line is not one
		}
		if err != nil {
			return err
		}
		if first {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if len(line) == 0 {
			at.passed()
			if len(data) == 0 || other {
				data, other = nil, false
				continue
			}
			more, err := f(data)
			if err != nil || !more {
				return err
			}
			data = nil // f keeps what it was given
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			if kind, ok := bytes.CutPrefix(line, []byte("event:")); ok {
				kind = bytes.TrimPrefix(kind, []byte(" "))
				other = len(kind) > 0 && string(kind) != "message"
			}
			at.field(line)
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if int64(len(data)+len(value)) > max {
			return &mcp.TooLarge{Size: int64(len(data) + len(value)), Max: max}
		}
		if len(data) > 0 {
			data = append(data, '\n')
		}
		data = append(data, value...)
	}
}

// eventLines reads lines that end with CR, LF, or both.
type eventLines struct {
	r       *bufio.Reader
	line    []byte
	max     int64 // bytes of a line
	afterCR bool  // an LF that comes next belongs to the line before
}

var eventReaders = sync.Pool{New: func() any { return &eventLines{r: bufio.NewReaderSize(nil, 16<<10)} }}

// free puts the reader back into the pool.
func (l *eventLines) free() {
	l.r.Reset(nil)
	l.afterCR = false
	if cap(l.line) <= maxAnnounced {
		eventReaders.Put(l)
	}
}

// next returns a line without its end, until the next. It waits for nothing that comes
// after that.
func (l *eventLines) next() ([]byte, error) {
	line := l.line[:0]
	defer func() { l.line = line }()
	for {
		if _, err := l.r.Peek(1); err != nil {
			return nil, err
		}
		part, _ := l.r.Peek(l.r.Buffered())
		if l.afterCR {
			l.afterCR = false
			if part[0] == '\n' {
				_, _ = l.r.Discard(1)
				continue
			}
		}
		end, ended := lineEnd(part)
		if int64(len(line)+end) > l.max {
			return nil, l.skip(int64(len(line)))
		}
		line = append(line, part[:end]...)
		if !ended {
			_, _ = l.r.Discard(end)
			continue
		}
		l.afterCR = part[end] == '\r'
		_, _ = l.r.Discard(end + 1)
		return line, nil
	}
}

// skip reads a line that is too long to its end; size bytes of it were read already.
func (l *eventLines) skip(size int64) error {
	for ended := false; !ended && size <= mcp.MaxSkipped; {
		if _, err := l.r.Peek(1); err != nil {
			break // it ends here, or with the connection
		}
		part, _ := l.r.Peek(l.r.Buffered())
		var end int
		end, ended = lineEnd(part)
		size += int64(end)
		_, _ = l.r.Discard(end)
	}
	return &mcp.TooLarge{Size: size, Max: l.max}
}

// lineEnd returns where the first line of b ends, and whether it does.
func lineEnd(b []byte) (end int, ended bool) {
	end = len(b)
	if lf := bytes.IndexByte(b, '\n'); lf >= 0 {
		end, ended = lf, true
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		end, ended = cr, true
	}
	return end, ended
}
