package bridge

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// readEvents reads a stream of server-sent events (HTML Living Standard, 9.2)
// and gives the data of each to f until f wants no more or the stream ends. An
// event of more than max bytes is an error. Comments and the fields event, id
// and retry are passed over.
func readEvents(r io.Reader, max int64, f func(data []byte) (more bool, err error)) error {
	br := bufio.NewReaderSize(r, 16<<10)
	var data []byte
	for {
		line, err := readLine(br, max+int64(len("data: ")))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // an event without its empty line is not one
		}
		if err != nil {
			return err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			if len(data) == 0 {
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
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if int64(len(data)+len(value)) > max {
			return &nonsense{fmt.Errorf("an event of more than %d bytes", max)}
		}
		if len(data) > 0 {
			data = append(data, '\n')
		}
		data = append(data, value...)
	}
}
