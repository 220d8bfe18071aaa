package secrets

import (
	"strings"
	"sync"
)

// A matcher finds all keywords of all rules in one pass (Aho and Corasick,
// "Efficient string matching", 1975), as a table without failure links. Letters
// are compared without case, in ASCII.
type matcher struct {
	class [256]uint8 // column of a byte; 0: in no keyword
	next  []uint32   // row + column to row; found marks a row with keywords
	width int        // columns of a row
	words [][]word   // by row / width: the keywords that end there
	most  int        // bytes of the longest keyword
}

type word struct {
	length int
	rules  []*rule
}

// found marks the rows at which a keyword ends.
const found = 1 << 31

func newMatcher(rules []*rule) *matcher {
	byWord := map[string][]*rule{}
	var order []string
	for _, r := range rules {
		for _, k := range r.Keywords {
			k = strings.ToLower(k)
			if byWord[k] == nil {
				order = append(order, k)
			}
			byWord[k] = append(byWord[k], r)
		}
	}
	m := &matcher{width: 1}
	for _, k := range order {
		for i := range len(k) {
			m.column(k[i])
		}
	}
	m.addRow()
	for _, k := range order {
		m.insert(k, byWord[k])
	}
	m.link()
	return m
}

// column gives a byte its column, which a letter shares with its capital.
func (m *matcher) column(c byte) {
	if m.class[c] != 0 {
		return
	}
	m.class[c] = uint8(m.width)
	if c >= 'a' && c <= 'z' {
		m.class[c-'a'+'A'] = uint8(m.width)
	}
	m.width++
}

func (m *matcher) addRow() uint32 {
	row := len(m.next)
	m.next = append(m.next, make([]uint32, m.width)...)
	m.words = append(m.words, nil)
	return uint32(row)
}

func (m *matcher) insert(keyword string, rules []*rule) {
	at := uint32(0)
	m.most = max(m.most, len(keyword))
	for i := range len(keyword) {
		edge := at + uint32(m.class[keyword[i]])
		if m.next[edge] == 0 {
			row := m.addRow()
			m.next[edge] = row
		}
		at = m.next[edge]
	}
	m.words[int(at)/m.width] = append(m.words[int(at)/m.width], word{len(keyword), rules})
}

// link turns the tree of keywords into an automaton: in breadth-first order,
// each missing edge becomes that of the longest suffix which is in the tree too.
func (m *matcher) link() {
	suffix := make([]uint32, len(m.words))
	var queue []uint32
	for c := range m.width {
		if row := m.next[c]; row != 0 {
			queue = append(queue, row)
		}
	}
	for i := 0; i < len(queue); i++ {
		row := queue[i]
		s := suffix[int(row)/m.width]
		m.words[int(row)/m.width] = append(m.words[int(row)/m.width], m.words[int(s)/m.width]...)
		for c := range uint32(m.width) {
			if to := m.next[row+c]; to != 0 {
				suffix[int(to)/m.width] = m.next[s+c]
				queue = append(queue, to)
			} else {
				m.next[row+c] = m.next[s+c]
			}
		}
	}
	for i, to := range m.next {
		if len(m.words[int(to)/m.width]) > 0 {
			m.next[i] |= found
		}
	}
}

// each calls f for every occurrence of a keyword, with where it begins, in the order of
// where they end.
func (m *matcher) each(text string, f func(w *word, start int)) {
	from, at := 0, uint32(0)
	if len(text) >= minLane*len(lanes{}) {
		from, at = m.inLanes(text, f)
	}
	m.walk(text, from, at, f)
}

// walk is each from a place on, where at is the row.
func (m *matcher) walk(text string, from int, at uint32, f func(w *word, start int)) {
	for i := from; i < len(text); i++ {
		at = m.next[at+uint32(m.class[text[i]])]
		if at >= found {
			at &^= found
			m.ending(at, i, f)
		}
	}
}

// ending calls f for the keywords that end at text[i], of a row.
func (m *matcher) ending(row uint32, i int, f func(w *word, start int)) {
	words := m.words[int(row)/m.width]
	for j := range words {
		f(&words[j], i+1-words[j].length)
	}
}

const (
	minLane = 1 << 10 // bytes of a lane
	maxHits = 1 << 12 // that are kept of one; a lane with more is walked again
)

// lanes are parts of a text of equal size that are gone through at the same time, with the
// ends of keywords in each: one step has to wait for the one before, but not for those in
// other lanes.
type lanes [4][]hit

type hit struct{ row, at uint32 }

var lanesPool = sync.Pool{New: func() any { return new(lanes) }}

// inLanes is each for the beginning of a text. It returns where the rest begins, and its row.
func (m *matcher) inLanes(text string, f func(w *word, start int)) (from int, at uint32) {
	hits := lanesPool.Get().(*lanes)
	defer lanesPool.Put(hits)
	size := len(text) / len(hits)
	var begin rows
	for k := range begin {
		hits[k] = hits[k][:0]
		begin[k] = m.rowAt(text, k*size)
	}
	t0, t1, t2, t3 := text[:size], text[size:2*size], text[2*size:3*size], text[3*size:4*size]
	a, b, c, d := begin[0], begin[1], begin[2], begin[3]
	for i := range size {
		a = m.next[a+uint32(m.class[t0[i]])]
		b = m.next[b+uint32(m.class[t1[i]])]
		c = m.next[c+uint32(m.class[t2[i]])]
		d = m.next[d+uint32(m.class[t3[i]])]
		if a|b|c|d < found {
			continue
		}
		now := rows{a, b, c, d}
		for k := range now {
			if now[k] < found {
				continue
			}
			if now[k] &^= found; len(hits[k]) <= maxHits {
				hits[k] = append(hits[k], hit{now[k], uint32(i)})
			}
		}
		a, b, c, d = now[0], now[1], now[2], now[3]
	}
	for k := range hits {
		if len(hits[k]) > maxHits {
			m.walk(text[:(k+1)*size], k*size, begin[k], f)
			continue
		}
		for _, h := range hits[k] {
			m.ending(h.row, k*size+int(h.at), f)
		}
	}
	return len(hits) * size, d
}

// rows are the rows of lanes.
type rows [len(lanes{})]uint32

// rowAt returns the row at a place of a text. The text that is further away than the longest
// keyword does not matter.
func (m *matcher) rowAt(text string, at int) (row uint32) {
	for i := max(0, at-m.most); i < at; i++ {
		row = m.next[row+uint32(m.class[text[i]])] &^ found
	}
	return row
}
