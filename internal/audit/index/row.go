package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// The names by which records are looked for. Each is a column of its own.
const (
	event = iota
	action
	code
	server
	tool
	tenant
	principal
	roles // as the array of JSON that the record has
	session
	columns
)

var columnNames = [columns]string{"event", "action", "code", "server", "tool", "tenant", "principal", "roles", "session"}

// What else is known of a record.
const (
	hasFindings = 1 << iota
	hasFuel
)

// A row is what the index has of a record.
type row struct {
	seq        uint64
	time       int64 // microseconds since 1970
	id, parent uint64
	flags      byte
	names      [columns][]byte // valid until the next line is read
}

var errNoRecord = errors.New("the line is not a record")

// parse takes of a line what the index needs. The line may be cut where its documents begin:
// they are its last fields.
func (r *row) parse(line []byte) error {
	*r = row{}
	if len(line) == 0 || line[0] != '{' {
		return errNoRecord
	}
	for b := line[1:]; ; {
		key, rest, ok := text(b)
		if !ok || len(rest) == 0 || rest[0] != ':' {
			break
		}
		value := rest[1:]
		n := length(value)
		if n < 0 {
			break
		}
		if err := r.field(string(key), value[:n]); err != nil {
			return err
		}
		if b = value[n:]; len(b) == 0 || b[0] != ',' {
			break
		}
		b = b[1:]
	}
	if r.seq == 0 || r.time == 0 {
		return errNoRecord
	}
	return nil
}

func (r *row) field(key string, value []byte) (err error) {
	switch key {
	case "seq":
		r.seq, err = strconv.ParseUint(string(value), 10, 64)
	case "time":
		var t time.Time
		err = t.UnmarshalJSON(value)
		r.time = t.UnixMicro()
	case "id":
		r.id, err = digest(value)
	case "parent":
		r.parent, err = digest(value)
	case "findings":
		r.flags |= hasFindings
	case "fuel":
		r.flags |= hasFuel
	case columnNames[roles]:
		r.names[roles] = value
	default:
		for i, name := range columnNames {
			if name == key {
				r.names[i], err = plain(value)
			}
		}
	}
	return err
}

// plain returns what a JSON string says.
func plain(value []byte) ([]byte, error) {
	if s, rest, ok := text(value); ok && len(rest) == 0 && bytes.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return []byte(s), err
}

func digest(value []byte) (uint64, error) {
	s, err := plain(value)
	return sum(s), err
}

// sum is FNV-1a of 64 bits, the same in every process. Two ids that meet make a candidate too
// many, which is looked at and left out.
func sum(s []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range s {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// text returns what is between the quotes with which b begins, as it stands there, and what
// follows.
func text(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return nil, nil, false
		}
		if i += n; !escaped(b[1:i]) {
			return b[1:i], b[i+1:], true
		}
	}
}

// escaped reports whether what follows b in a string is escaped: an odd number of backslashes
// stands before it.
func escaped(b []byte) bool {
	return (len(b)-len(bytes.TrimRight(b, "\\")))%2 == 1
}

// length returns how long the JSON value is with which b begins; -1 if it has no end.
func length(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			_, rest, ok := text(b[i:])
			if !ok {
				return -1
			}
			i = len(b) - len(rest) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		if depth == 0 && (b[i] == '"' || b[i] == '}' || b[i] == ']') {
			return i + 1
		}
	}
	return -1
}
