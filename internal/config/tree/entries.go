package tree

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

// ReadEntries returns the content of a file that is one list.
func ReadEntries(path string) ([]byte, error) {
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

// ParseEntries is parse for a file that is one list. A long one is parsed some entries at
// a time, so that an anchor of a long list is known to its neighbours alone.
func ParseEntries(data []byte) (*Node, []Problem) {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	chunks := entryChunks(data)
	if len(chunks) == 1 {
		return Parse(data, false)
	}
	whole := &Node{Kind: List, Line: 1, size: 1}
	var problems []Problem
	line := 0
	for i, chunk := range chunks {
		root, ps := parseAt(chunk, false, len(whole.Items))
		for _, p := range ps {
			p.Line += line
			problems = append(problems, p)
		}
		if root == nil {
			return nil, problems
		}
		if i > 0 && manyDocuments(chunk) {
			return nil, append(problems, Problem{Line: line + 1, Message: "holds more than one document"})
		}
		if wrong := root.Mismatch(List); wrong != "" {
			return nil, append(problems, Problem{Line: root.Line, Message: wrong})
		}
		for _, item := range root.Items {
			item.shift(line)
		}
		whole.Items = append(whole.Items, root.Items...)
		line += bytes.Count(chunk, []byte("\n"))
	}
	return whole, problems
}

// shift moves a node down by some lines.
func (n *Node) shift(lines int) {
	n.Line += lines
	for _, item := range n.Items {
		item.shift(lines)
	}
	for i := range n.Fields {
		n.Fields[i].Line += lines
		n.Fields[i].Value.shift(lines)
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
