package sanitize

import (
	"unicode/utf8"
)

// The C1 controls that begin a sequence with a parameter string (ECMA-48, 5.6).
const (
	escape = 0x1b
	bell   = 0x07
	c1CSI  = 0x9b
	c1ST   = 0x9c
)

// controls removes control characters and terminal sequences, but for tabs, line
// ends and form feeds. Colours go without a marker.
func (f *findings) controls(s string) string {
	o := output{from: s, max: f.max}
	seq := sequences{s: s}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isControl(r) {
			i += n
			continue
		}
		size, colour := seq.at(i)
		switch {
		case size == 0:
			f.remove(ruleControl)
			size = n
			o.replace(i, i+n, "control")
		case colour:
			f.remove(ruleTerminal)
			o.drop(i, i+size)
		default:
			f.remove(ruleTerminal)
			o.replace(i, i+size, "control")
		}
		i += size
	}
	return o.String()
}

// sequences finds terminal sequences (ECMA-48, section 5; xterm's OSC). It keeps
// where the next string terminator is, so that a text made of openings takes no
// longer than another.
type sequences struct {
	s    string
	term int // the next terminator at or after where it was last looked for; -1: not looked yet
	size int // of that terminator
}

// at returns the length of the sequence at s[i:], 0 if there is none, and
// whether it does nothing but set colours.
func (q *sequences) at(i int) (n int, colour bool) {
	r, size := utf8.DecodeRuneInString(q.s[i:])
	body := i + size
	if r == escape {
		if body == len(q.s) {
			return 0, false
		}
		r = rune(q.s[body]) + 0x40 // ESC [ is CSI, ESC ] is OSC, and so on
		body++
	}
	switch r {
	case c1CSI:
		return q.csi(i, body)
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // DCS, SOS, OSC, PM, APC
		return q.text(i, body), false
	}
	if q.s[i] != escape {
		return 0, false
	}
	end := body - 1 // other escapes: intermediates and a final byte
	for end < len(q.s) && q.s[end] >= ' ' && q.s[end] <= '/' {
		end++
	}
	if end < len(q.s) && q.s[end] >= '0' && q.s[end] <= '~' {
		return end + 1 - i, false
	}
	return 0, false
}

func (q *sequences) csi(start, i int) (int, bool) {
	for i < len(q.s) && q.s[i] >= '0' && q.s[i] <= '?' {
		i++
	}
	for i < len(q.s) && q.s[i] >= ' ' && q.s[i] <= '/' {
		i++
	}
	if i < len(q.s) && q.s[i] >= '@' && q.s[i] <= '~' {
		return i + 1 - start, q.s[i] == 'm'
	}
	return i - start, false // cut off
}

// text returns the length of a sequence with a string in it. One that never ends
// is its opening alone: the rest is text.
func (q *sequences) text(start, i int) int {
	if q.size == 0 || q.term < i {
		q.term, q.size = terminator(q.s, i)
	}
	if q.term == len(q.s) {
		return i - start
	}
	return q.term + q.size - start
}

// terminator returns where the next string terminator is, and its length; the
// end of s if there is none.
func terminator(s string, i int) (at, size int) {
	for ; i < len(s); i++ {
		switch {
		case s[i] == bell:
			return i, 1
		case s[i] == escape && i+1 < len(s) && s[i+1] == '\\':
			return i, 2
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == c1ST:
			return i, 2
		}
	}
	return len(s), 1
}
