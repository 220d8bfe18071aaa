package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An invocation is how a WASI program that knows nothing of tools is called as one.
type invocation struct {
	args  []string
	stdin string
	text  bool // it writes text
}

// filled reports whether arguments of the call are to be filled in.
func (p invocation) filled() bool { return p.stdin != "" || slices.ContainsFunc(p.args, isPlaceholder) }

// fill returns the arguments of the program for a call, and what it reads; nil for the request.
func (p invocation) fill(tool string, args []byte) (words []string, stdin []byte, err error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, nil, errors.New("the arguments are not a JSON object")
	}
	words = []string{tool}
	for _, word := range p.args {
		if !isPlaceholder(word) {
			words = append(words, word)
		} else if text, ok := value(values, word); ok && strings.ContainsRune(text, 0) {
			return nil, nil, fmt.Errorf("the argument %s has a NUL character, which no argument of a program can have", word[2:len(word)-2])
		} else if ok {
			words = append(words, text)
		}
	}
	if p.stdin != "" {
		text, _ := value(values, p.stdin)
		stdin = append([]byte{}, text...)
	}
	return words, stdin, nil
}

// value is what a placeholder stands for: a text as it is, all else as JSON.
func value(values map[string]json.RawMessage, placeholder string) (string, bool) {
	raw, ok := values[placeholder[2:len(placeholder)-2]]
	if !ok || string(raw) == "null" {
		return "", false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	return string(raw), true
}
