package study

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxTraceLine bounds a recorded session, in bytes: some hundred calls with the
// largest results that a gateway lets pass by default would be more, and those of
// real sessions are a thousand times smaller.
const maxTraceLine = 256 << 20

// ReadTrace reads recorded sessions, one JSON object a line:
//
//	{"id", "principal": {"id"}, "prompt": "optional",
//	 "calls": [{"tool": "server__tool", "arguments": {}, "result": {"content": [{"type": "text", "text": "..."}]}}]}
//
// A principal may also have roles, identities and a tenant; one that is missing is local. A call
// may have a time (RFC 3339), and a prompt that the user has given before it.
// After an error, which names its line, reading ends.
func ReadTrace(r io.Reader) iter.Seq2[RecordedSession, error] {
	return func(yield func(RecordedSession, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxTraceLine)
		for n := 1; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			s, err := parseTrace(bytes.Clone(line))
			if err != nil {
				yield(RecordedSession{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			s.ID = cmp.Or(s.ID, strconv.Itoa(n))
			if !yield(s, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(RecordedSession{}, err)
		}
	}
}

func parseTrace(line []byte) (RecordedSession, error) {
	d, err := gate.ParseDoc(line)
	if err != nil {
		return RecordedSession{}, err
	}
	if d.Get("calls").Kind() != doc.Array {
		return RecordedSession{}, errors.New("no recorded session: it has no list of calls")
	}
	who := gate.Local()
	who.ID = cmp.Or(d.At("/principal/id").Text(), who.ID)
	who.Tenant = d.At("/principal/tenant").Text()
	for id := range d.At("/principal/identities").Elements() {
		who.Identities = append(who.Identities, id.Text())
	}
	for role := range d.At("/principal/roles").Elements() {
		who.Roles = append(who.Roles, role.Text())
	}
	s := RecordedSession{ID: d.Get("id").Text(), Who: who, Prompt: d.Get("prompt").Text()}
	for c := range d.Get("calls").Elements() {
		if c.Get("tool").Text() == "" {
			return RecordedSession{}, fmt.Errorf("call %d names no tool", len(s.Calls))
		}
		one := RecordedCall{Tool: c.Get("tool").Text(), Args: c.Get("arguments"), Result: c.Get("result"), Prompt: c.Get("prompt").Text(), Approved: c.Get("approved").True()}
		if at := c.Get("time"); !at.IsZero() {
			if one.Time, err = time.Parse(time.RFC3339, at.Text()); err != nil {
				return RecordedSession{}, fmt.Errorf("call %d: time: %w", len(s.Calls), err)
			}
		}
		s.Calls = append(s.Calls, one)
	}
	return s, nil
}

// ReadTools reads {"tools": [...]}, MCP tool definitions with qualified names.
func ReadTools(data []byte) (map[string]gate.Doc, error) {
	d, err := gate.ParseDoc(data)
	if err != nil {
		return nil, err
	}
	if d.Get("tools").Kind() != doc.Array {
		return nil, errors.New(`expected {"tools": [...]}`)
	}
	tools := make(map[string]gate.Doc)
	for t := range d.Get("tools").Elements() {
		name := t.Get("name").Text()
		if _, err := gate.ParseToolName(name); err != nil {
			return nil, err
		}
		tools[name] = t
	}
	return tools, nil
}
