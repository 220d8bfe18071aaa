package transport

import (
	"bufio"
	"io"
)

// ReadMessages reads lines as a stdio client's input is read, and reports which are too long.
func ReadMessages(r io.Reader, max int64) (lines [][]byte, bad []bool, err error) {
	br := bufio.NewReaderSize(r, 16)
	for {
		l, err := readMessage(br, max)
		if err != nil {
			return lines, bad, err
		}
		lines, bad = append(lines, l.text), append(bad, l.bad != nil)
	}
}
