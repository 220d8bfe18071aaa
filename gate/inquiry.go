package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// An Inquiry is what a person is asked before a call passes, in parts. Every channel shows the same
// parts: [Inquiry.Text] for terminals, [Inquiry.Markup] for clients that may render Markdown or
// HTML. It holds texts of strangers as they are; only the two methods escape them.
type Inquiry struct {
	Caller  string        // the principal, with its tenant
	Calls   []InquiryCall // what the answer is about, in the order of execution
	Set     bool          // the client has announced them, see [Permit.Propose]
	Reasons []string      // why the policy asks
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

// An InquiryCall is one call of an [Inquiry].
type InquiryCall struct {
	Server, Tool string
	Arguments    []InquiryLine // the leaves of the arguments in their order, as they will be sent
}

// An InquiryLine is one value of the arguments.
type InquiryLine struct {
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
	maxInquiryLines = 40  // arguments shown of one call
	maxInquiryNames = 100 // arguments named of those that are not shown
	maxInquiryValue = 400 // bytes shown of one value
	maxInquiryName  = 80  // bytes shown of the name of an argument that is not shown
)

// Inquiry returns what a person is asked.
func (q Question) Inquiry() Inquiry {
	who := q.Call.Who.ID
	if q.Call.Who.Tenant != "" {
		who = q.Call.Who.Tenant + "/" + who
	}
	i := Inquiry{
		Caller:  who,
		Set:     len(q.Set) > 0,
		Reasons: q.Reasons,
		Near:    q.Beside, NearAt: fmt.Sprintf("%s of %s (call %s)", cmp.Or(q.BesideOf.Place, "/"), q.BesideOf.Tool, q.BesideOf.Call),
		Read: q.Session.Labels, ReadAll: q.Session.Top,
		Digest: q.Binding(),
	}
	all := q.Set
	if !i.Set {
		all = []Question{q}
	}
	for _, one := range all {
		i.Calls = append(i.Calls, InquiryCall{Server: one.Tool.Name.Server, Tool: one.Tool.Local, Arguments: inquiryLines(nil, "", one.Call.Args)})
		for _, to := range one.Destinations {
			i.Unnamed = append(i.Unnamed, Unnamed{to, one.metAt(to)})
		}
	}
	return i
}

// metAt says where a value of the arguments was met.
func (q Question) metAt(to string) (met []string) {
	for at, origins := range q.Origins {
		if provenance.TextOf(q.Call.Args.At(at)) != to {
			continue
		}
		for _, o := range origins {
			if o.Tool != "" {
				met = append(met, fmt.Sprintf("%s of %s (call %s)", cmp.Or(o.Pointer, "/"), o.Tool, o.Call))
			}
		}
	}
	slices.Sort(met)
	return slices.Compact(met)
}

func inquiryLines(lines []InquiryLine, at string, d Doc) []InquiryLine {
	leaf := true
	switch d.Kind() {
	case doc.Object:
		for name, member := range d.Members() {
			lines, leaf = inquiryLines(lines, at+"/"+pointer.Escape(name), member), false
		}
	case doc.Array:
		n := 0
		for element := range d.Elements() {
			lines, leaf = inquiryLines(lines, fmt.Sprintf("%s/%d", at, n), element), false
			n++
		}
	}
	if !leaf || at == "" && d.Kind() == doc.Object {
		return lines
	}
	return append(lines, InquiryLine{at, d.String()})
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
		for _, a := range c.Arguments[:min(len(c.Arguments), maxInquiryLines)] {
			line("- %s: %s", cmp.Or(a.At, "/"), a.Value)
		}
		if len(c.Arguments) == 0 {
			line("- no arguments")
		}
		if rest := c.Arguments[min(len(c.Arguments), maxInquiryLines):]; len(rest) > 0 {
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
	if len(part) <= maxInquiryValue {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	head := strings.ToValidUTF8(part[:maxInquiryValue*3/4], "")
	tail := strings.ToValidUTF8(part[len(part)-maxInquiryValue/4:], "")
	return fmt.Sprintf("%s ... %s (SHORTENED: %d bytes, sha256 %s)", head, tail, len(part), hex.EncodeToString(sum[:8]))
}

// notShown names arguments that are too many to be shown.
func notShown(rest []InquiryLine) string {
	var names []string
	bytes := 0
	for _, l := range rest {
		if bytes += len(l.Value); len(names) < maxInquiryNames {
			names = append(names, cut(l.At, maxInquiryName))
		}
	}
	text := fmt.Sprintf("%d more arguments, %d bytes: %s", len(rest), bytes, strings.Join(names, ", "))
	if len(names) < len(rest) {
		text += fmt.Sprintf(" and %d others", len(rest)-len(names))
	}
	return text
}
