package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// What the standard output of a WASI program holds.
const (
	stdoutJSON = "json"
	stdoutText = "text"
)

// An invocation is how a WASI program that knows nothing of tools is called as one.
type invocation struct {
	args  []string
	stdin string
	text  bool // it writes text
}

// isPlaceholder reports whether a word of a manifest stands for an argument of the call: as
// a whole, so that code in which there are braces is left alone.
func isPlaceholder(word string) bool {
	name, ok := strings.CutPrefix(word, "{{")
	name, end := strings.CutSuffix(name, "}}")
	return ok && end && name != "" && !strings.ContainsAny(name, "{}")
}

// filled reports whether arguments of the call are to be filled in.
func (p invocation) filled() bool { return p.stdin != "" || slices.ContainsFunc(p.args, isPlaceholder) }

// fill gives a call's program its arguments, and what it reads.
func (p invocation) fill(c *call) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(c.args, &values); err != nil {
		return errors.New("the arguments are not a JSON object")
	}
	words := []string{c.tool}
	for _, word := range p.args {
		if !isPlaceholder(word) {
			words = append(words, word)
		} else if text, ok := value(values, word); ok && strings.ContainsRune(text, 0) {
			return fmt.Errorf("the argument %s has a NUL character, which no argument of a program can have", word[2:len(word)-2])
		} else if ok {
			words = append(words, text)
		}
	}
	if c.process != nil {
		c.process.Args = words
	}
	if p.stdin != "" {
		text, _ := value(values, p.stdin)
		c.input = append([]byte{}, text...)
	}
	return nil
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

// answered makes a result of what a command wrote.
func (c *call) answered(out []byte) (Result, error) {
	if !c.module.invocation.text {
		return c.structured(out)
	}
	return c.text(out)
}

// text makes a result of a text.
func (c *call) text(out []byte) (Result, error) {
	if !utf8.Valid(out) {
		return Result{}, c.unreadable("its output is not text in UTF-8", out)
	}
	content, err := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": string(out)}}})
	return Result{Output: content, Whole: true}, err
}

// stubs reports whether a module does without a function that it imports.
func (m Manifest) stubs(i rewrite.Import) bool {
	name := i.Module + "." + i.Name
	return i.Function && slices.ContainsFunc(m.Imports.Stub, func(pattern string) bool {
		beginning, any := strings.CutSuffix(pattern, "*")
		return pattern == name || any && strings.HasPrefix(name, beginning)
	})
}
