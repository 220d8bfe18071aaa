package mcp

import (
	"bufio"
	"io"
)

// ReadLines reads lines of at most max bytes until an error, as a stdio server's
// output is read.
func ReadLines(r io.Reader, max int64) (lines [][]byte, err error) {
	br := bufio.NewReaderSize(r, 16)
	for {
		line, err := ReadLine(br, max)
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
	}
}
