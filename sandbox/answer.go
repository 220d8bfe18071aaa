package sandbox

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Result is what a tool answered. Its figures are also set when Call
// returns an error.
type Result struct {
	// Output is one JSON value in UTF-8, or, if IsError, the text of the tool
	// error. It is the caller's.
	Output  []byte
	IsError bool // the tool reported an error of its own
	// Whole says that Output is a whole result of an MCP tools/call, as Extism guests answer, with
	// IsError as it is there.
	Whole bool

	Fuel       uint64        // instructions; the same for the same call, unless the guest looks at clocks or random numbers; up to a slice too few if it trapped
	MemoryPeak int64         // bytes of linear memory
	HostCalls  int           // what the guest asked its host for
	Took       time.Duration // of it, waiting included
}

// structured checks that a tool answered with one JSON value, as the gateway reads it: halves of
// surrogate pairs become U+FFFD, and no object has a member twice.
func structured(tool string, out []byte) (Result, error) {
	out = bytes.TrimSpace(out)
	doc.ReplaceSurrogates(out)
	if _, err := doc.Parse(out); err != nil {
		why := "its output is not one JSON value in UTF-8"
		if utf8.Valid(out) && json.Valid(out) {
			why = "its output is JSON that parsers read in different ways: " + err.Error()
		}
		return Result{}, unreadable(tool, why, out)
	}
	return Result{Output: out}, nil
}

// text makes a result of a text.
func text(tool string, out []byte) (Result, error) {
	if !utf8.Valid(out) {
		return Result{}, unreadable(tool, "its output is not text in UTF-8", out)
	}
	content, err := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": string(out)}}})
	return Result{Output: content, Whole: true}, err
}

// unreadable is the trap of a guest whose output is not what it has to be.
func unreadable(tool, reason string, out []byte) *Trap {
	return &Trap{Kind: TrapGuest, Tool: tool, Reason: reason, Wrote: string(out[:min(len(out), maxSaid)])}
}
