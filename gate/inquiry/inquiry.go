package inquiry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// An Inquiry is what a person is asked before a call passes, in parts. Every channel shows the same
// parts: [Inquiry.Text] for terminals, [Inquiry.Markup] for clients that may render Markdown or
// HTML. It holds texts of strangers as they are; only the two methods escape them.
type Inquiry struct {
	Caller  string   // the principal, with its tenant
	Calls   []Call   // what the answer is about, in the order of execution
	Set     bool     // the client has announced them, by a proposal
	Reasons []string // why the policy asks
	// Unnamed are values that say to whom or where, and that no trusted source has named. Each is
	// in the text with the places where the session met it.
	Unnamed []Unnamed
	// Near are other values of the same list, which an answer can cover too. NearAt says where the
	// list is.
	Near   []string
	NearAt string
	// Read are the labels of what the session has read; ReadAll says that it counts as everything.
	Read    []string
	ReadAll bool
	// Digest identifies what an answer approves: the same digest is the same approval.
	Digest string
}

// A Call is one call of an [Inquiry].
type Call struct {
	Server, Tool string
	Arguments    []Line // the leaves of the arguments in their order, as they will be sent
}

// A Line is one value of the arguments.
type Line struct {
	At    string // JSON Pointer
	Value string // as JSON
}

// Unnamed is a value that no trusted source has named.
type Unnamed struct {
	Value string
	Met   []string // where the session met it; empty if no result of the session had it
}

// Bounds of the text of an inquiry. What exceeds them is named with its size and digest, so that a
// person sees that it is there.
const (
	maxLines = 40  // arguments shown of one call
	maxNames = 100 // arguments named of those that are not shown
	maxValue = 400 // bytes shown of one value
	maxName  = 80  // bytes shown of the name of an argument that is not shown
)

// Lines returns the leaves of arguments, in their order.
func Lines(arguments doc.Doc) []Line { return lines(nil, "", arguments) }

func lines(all []Line, at string, d doc.Doc) []Line {
	leaf := true
	switch d.Kind() {
	case doc.Object:
		for name, member := range d.Members() {
			all, leaf = lines(all, at+"/"+pointer.Escape(name), member), false
		}
	case doc.Array:
		n := 0
		for element := range d.Elements() {
			all, leaf = lines(all, fmt.Sprintf("%s/%d", at, n), element), false
			n++
		}
	}
	if !leaf || at == "" && d.Kind() == doc.Object {
		return all
	}
	return append(all, Line{at, d.String()})
}

// Text is the inquiry for terminals and logs: what a screen would not simply show is escaped.
func (i Inquiry) Text() string { return i.render(escaped.Text) }

// Markup is the inquiry for a reader of unknown kind: a client may show it as it is, or render it as
// Markdown or HTML. No part can end a line, form a link or a tag, or hide another part.
func (i Inquiry) Markup() string { return i.render(escaped.Markup) }

func (i Inquiry) render(escape func(string) string) string {
	var lines []string
	line := func(format string, parts ...string) {
		escapedParts := make([]any, len(parts))
		for n, part := range parts {
			escapedParts[n] = escape(shortened(part))
		}
		lines = append(lines, fmt.Sprintf(format, escapedParts...))
	}
	many := i.Set || len(i.Calls) > 1
	if many {
		line("May %s make these %s calls, each once?", i.Caller, strconv.Itoa(len(i.Calls)))
	}
	for n, c := range i.Calls {
		if !many {
			line("May %s call %s of server %s?", i.Caller, c.Tool, c.Server)
		} else {
			line("%s. Call %s of server %s", strconv.Itoa(n+1), c.Tool, c.Server)
		}
		for _, a := range c.Arguments[:min(len(c.Arguments), maxLines)] {
			line("- %s: %s", cmp.Or(a.At, "/"), a.Value)
		}
		if len(c.Arguments) == 0 {
			line("- no arguments")
		}
		if rest := c.Arguments[min(len(c.Arguments), maxLines):]; len(rest) > 0 {
			lines = append(lines, "- NOT SHOWN: "+escape(notShown(rest)))
		}
		lines = append(lines, "") // the list ends here, for a reader that renders it
	}
	for _, why := range i.Reasons {
		line("Why you are asked: %s", why)
	}
	for _, u := range i.Unnamed {
		if len(u.Met) == 0 {
			line("No trusted source has named %s; no result of this session had it", u.Value)
		} else {
			line("No trusted source has named %s; the session met it at %s", u.Value, strings.Join(u.Met, ", "))
		}
	}
	if len(i.Near) > 0 {
		line("An answer can also cover the other values at %s: %s", i.NearAt, strings.Join(i.Near, ", "))
	}
	switch {
	case i.ReadAll:
		line("The session has read: more than could be kept, so everything")
	case len(i.Read) == 0:
		line("The session has read: nothing that is labelled")
	default:
		line("The session has read: %s", strings.Join(i.Read, ", "))
	}
	return strings.Join(lines, "\n")
}

// shortened is a part with the middle left out if it is too long to be read. Size and digest tell two
// of them apart.
func shortened(part string) string {
	if len(part) <= maxValue {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	head := strings.ToValidUTF8(part[:maxValue*3/4], "")
	tail := strings.ToValidUTF8(part[len(part)-maxValue/4:], "")
	return fmt.Sprintf("%s ... %s (SHORTENED: %d bytes, sha256 %s)", head, tail, len(part), hex.EncodeToString(sum[:8]))
}

// notShown names arguments that are too many to be shown.
func notShown(rest []Line) string {
	var names []string
	bytes := 0
	for _, l := range rest {
		if bytes += len(l.Value); len(names) < maxNames {
			names = append(names, cut(l.At, maxName))
		}
	}
	text := fmt.Sprintf("%d more arguments, %d bytes: %s", len(rest), bytes, strings.Join(names, ", "))
	if len(names) < len(rest) {
		text += fmt.Sprintf(" and %d others", len(rest)-len(names))
	}
	return text
}

// cut returns the beginning of s, of at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
