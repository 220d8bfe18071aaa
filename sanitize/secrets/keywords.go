package secrets

import "strings"

// A matcher finds all keywords of all rules in one pass (Aho and Corasick,
// "Efficient string matching", 1975), as a table without failure links. Letters
// are compared without case, in ASCII.
type matcher struct {
	class [256]uint8 // column of a byte; 0: in no keyword
	next  []uint32   // row + column to row; found marks a row with keywords
	width int        // columns of a row
	words [][]word   // by row / width: the keywords that end there
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

// each calls f for every occurrence of a keyword, with where it begins.
func (m *matcher) each(text string, f func(w *word, start int)) {
	at := uint32(0)
	for i := 0; i < len(text); i++ {
		at = m.next[at+uint32(m.class[text[i]])]
		if at < found {
			continue
		}
		at &^= found
		words := m.words[int(at)/m.width]
		for j := range words {
			f(&words[j], i+1-words[j].length)
		}
	}
}
