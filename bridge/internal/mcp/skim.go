package mcp

import (
	"fmt"
)

// MaxSkipped bounds the messages that are read to their end though they are too large, in
// bytes. A server that goes on beyond it is ended.
const MaxSkipped = 1 << 30

// A TooLarge is a message that has more bytes than it may have.
type TooLarge struct{ Size, Max int64 }

func (t *TooLarge) Error() string {
	return fmt.Sprintf("the message has %s; limits.result is %s", Bytes(t.Size), Bytes(t.Max))
}

// Bytes writes a number of bytes for people, in the units of configurations.
func Bytes(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size {
			if n%unit.size == 0 {
				return fmt.Sprintf("%d %s", n/unit.size, unit.name)
			}
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// A Skim reads a message that is not kept, and finds what it answers: the member id of the
// object that it is. It holds a few bytes, however large the message. What is no JSON it
// reads without complaint; it says nothing of it either.
type Skim struct {
	Size int64

	depth    int
	inString bool
	escaped  bool
	name     []byte // of the member of the outermost object that was read last, quoted
	value    bool   // what comes is a value of the outermost object
	id       []byte
	method   bool
}

// Write reads on. It never fails.
func (s *Skim) Write(p []byte) (int, error) {
	s.Size += int64(len(p))
	for _, c := range p {
		s.read(c)
	}
	return len(p), nil
}

// ID returns the id of a message that is an answer, as it was written.
func (s *Skim) ID() (id string, ok bool) {
	return string(s.id), len(s.id) > 0 && len(s.id) <= MaxID && !s.method
}

// Told reports whether a message has a method, so that no answer is lost with it.
func (s *Skim) Told() bool { return s.method }

func (s *Skim) read(c byte) {
	outermost := s.depth == 1
	switch {
	case s.inString:
		s.keep(outermost, c)
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = false
		}
	case c == '"':
		if outermost && !s.value {
			s.name = s.name[:0]
		}
		s.inString = true
		s.keep(outermost, c)
	case c == '{' || c == '[':
		s.depth++
	case c == '}' || c == ']':
		s.depth--
	case outermost && c == ':':
		if s.value = true; string(s.name) == `"method"` {
			s.method = true
		}
	case outermost && c == ',':
		s.value = false
	case c > ' ':
		s.keep(outermost, c)
	}
}

// keep takes a byte of a name of the outermost object, or of the value of its id.
func (s *Skim) keep(outermost bool, c byte) {
	switch {
	case !outermost:
	case !s.value && len(s.name) < len(`"method"`)+1:
		s.name = append(s.name, c)
	case s.value && string(s.name) == `"id"` && len(s.id) <= MaxID:
		s.id = append(s.id, c)
	}
}
