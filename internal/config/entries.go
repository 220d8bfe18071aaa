package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Bounds of a file that is one list of entries, such as grants: people write dozens,
// programs tens of thousands.
const (
	maxEntries = 32 << 20 // bytes of the file
	maxChunk   = 16 << 10 // bytes that are parsed at once: the parser takes quadratic time
)

// readEntries returns the content of a file that is one list.
func readEntries(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEntries+1))
	if err == nil && len(data) > maxEntries {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxEntries>>20)
	}
	return data, err
}

// parseEntries is parse for a file that is one list. A long one is parsed some entries at
// a time, so that an anchor of a long list is known to its neighbours alone.
func (d *decoder) parseEntries(data []byte) *node {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	chunks := entryChunks(data)
	if len(chunks) == 1 {
		return d.parse(data, false)
	}
	whole := &node{kind: list, line: 1, size: 1}
	line := 0
	for i, chunk := range chunks {
		root, ps := parseAt(chunk, false, len(whole.items))
		for _, p := range ps {
			p.File, p.Line = d.file, p.Line+line
			d.problems = append(d.problems, p)
		}
		switch {
		case root == nil:
			return nil
		case i > 0 && manyDocuments(chunk):
			d.fail(&node{line: line + 1}, "", "holds more than one document")
			return nil
		case !d.is(root, "", list):
			return nil
		}
		for _, item := range root.items {
			item.shift(line)
		}
		whole.items = append(whole.items, root.items...)
		line += bytes.Count(chunk, []byte("\n"))
	}
	return whole
}

// shift moves a node down by some lines.
func (n *node) shift(lines int) {
	n.line += lines
	for _, item := range n.items {
		item.shift(lines)
	}
	for i := range n.fields {
		n.fields[i].line += lines
		n.fields[i].value.shift(lines)
	}
}

// entryChunks cuts a list before entries, into pieces that are parsed one by one. What is
// not written as a list of lines that begin with a dash is one piece.
func entryChunks(data []byte) [][]byte {
	if len(data) <= maxChunk {
		return [][]byte{data}
	}
	var chunks [][]byte
	var indent []byte
	start, at := 0, 0
	for line := range bytes.Lines(data) {
		text := bytes.TrimLeft(line, " ")
		entry := bytes.HasPrefix(text, []byte("- ")) || string(bytes.TrimRight(text, "\r\n")) == "-"
		if entry && indent == nil {
			indent = append([]byte{}, line[:len(line)-len(text)]...)
		}
		if entry && len(line)-len(text) == len(indent) && at-start >= maxChunk {
			chunks, start = append(chunks, data[start:at]), at
		}
		at += len(line)
	}
	return append(chunks, data[start:])
}

// manyDocuments reports whether a piece of a list begins another document.
func manyDocuments(chunk []byte) bool {
	for line := range bytes.Lines(chunk) {
		if bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("...")) {
			return true
		}
	}
	return false
}
