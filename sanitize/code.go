package sanitize

import (
	"sort"
	"strings"
)

const (
	// nearLines is how far around a place source code is looked for.
	nearLines = 20
	// enoughCode is how many of those lines must be code at least, and codeShare
	// how many in ten.
	enoughCode = 3
	codeShare  = 4
)

// code tells which places of a text stand in source code. The zero pointer says
// that none does.
type code struct {
	s     string
	lines []int // where each line begins
	fence []bool
	// codes and texts count the lines of code, and those that are not blank, up to
	// each line.
	codes, texts []int
	ticks        []int // where the backticks are
}

func newCode(s string) *code {
	c := &code{s: s, lines: []int{0}, codes: []int{0}, texts: []int{0}}
	for i := strings.IndexByte(s, '`'); i >= 0; {
		c.ticks = append(c.ticks, i)
		next := strings.IndexByte(s[i+1:], '`')
		if next < 0 {
			break
		}
		i += next + 1
	}
	fence := ""
	for start := 0; start <= len(s); {
		end := lineEnd(s, start)
		line := strings.TrimSpace(s[start:end])
		mark := fenceMark(line)
		inside := fence != ""
		switch {
		case fence == "" && mark != "":
			fence = mark
		case inside && strings.HasPrefix(mark, fence) && strings.Trim(line, mark[:1]) == "":
			fence = ""
		}
		c.fence = append(c.fence, inside)
		c.codes = append(c.codes, c.codes[len(c.codes)-1]+one(looksLikeCode(line)))
		c.texts = append(c.texts, c.texts[len(c.texts)-1]+one(line != ""))
		c.lines = append(c.lines, end+1)
		start = end + 1
	}
	return c
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fenceMark returns the run of backticks or tildes that opens or closes a fenced
// block (CommonMark 0.31, 4.5).
func fenceMark(line string) string {
	for _, c := range "`~" {
		n := len(line) - len(strings.TrimLeft(line, string(c)))
		if n >= 3 && !(c == '`' && strings.ContainsRune(line[n:], '`')) {
			return line[:n]
		}
	}
	return ""
}

// covers reports whether s[i:j] stands in source code: within a fence or a span
// of backticks, or among lines of code. What it holds itself does not count, for
// a script is always code.
func (c *code) covers(i, j int) bool {
	if c == nil {
		return false
	}
	first, last := c.line(i), c.line(j-1)
	if c.fence[first] && c.fence[last] || c.inSpan(first, i, j) {
		return true
	}
	from, to := max(0, first-nearLines), min(len(c.fence), last+1+nearLines)
	around := func(sums []int) int { return sums[first] - sums[from] + sums[to] - sums[last+1] }
	codes, texts := around(c.codes), around(c.texts)
	return codes >= enoughCode && codes*10 >= texts*codeShare
}

// quotes reports whether s[i] stands within a fence or a span of backticks.
func (c *code) quotes(i int) bool {
	line := c.line(i)
	return c.fence[line] || c.inSpan(line, i, i+1)
}

func (c *code) line(i int) int {
	return sort.Search(len(c.fence), func(n int) bool { return c.lines[n+1] > i })
}

// inSpan reports whether s[i:j] stands between two backticks of one line.
func (c *code) inSpan(line, i, j int) bool {
	end := min(len(c.s), c.lines[line+1])
	if j > end {
		return false
	}
	before, here, after := sort.SearchInts(c.ticks, c.lines[line]), sort.SearchInts(c.ticks, i), sort.SearchInts(c.ticks, j)
	return (here-before)%2 == 1 && after < len(c.ticks) && c.ticks[after] < end
}

var codeStarts = []string{
	"import ", "export ", "const ", "let ", "var ", "function ", "class ", "def ", "return", "if (", "if(", "for (", "for(", "while ", "while(",
	"#include", "#define", "package ", "public ", "private ", "protected ", "static ", "func ", "fn ", "use ", "type ", "interface ", "struct ",
	"//", "/*", "*/", "#!", "@@ ", "+++ ", "--- ", "diff --git", "elif ", "else", "try", "catch", "switch ", "case ", "async ", "await ", "impl ",
	"pub ", "match ", "select ", "insert into ", "update ", "create table ", "from ", "with ", "assert", "expect(", "describe(", "it(", "test(",
	"print(", "echo ", "$", "namespace ", "using ", "enum ", "self.", "this.", "console.", "document.", "raise ", "throw ", "new ",
}

// looksLikeCode judges one line, trimmed.
func looksLikeCode(line string) bool {
	if line == "" || line[0] == '<' {
		return false
	}
	switch line[len(line)-1] {
	case ';', '{', '}', '(', '[', '\\':
		return true
	case ')', ',', ':', ']':
		return strings.ContainsAny(line, "=({[") && !strings.ContainsAny(line[:1], "([-*")
	}
	line = strings.TrimLeft(line, "+-> \t")
	for _, start := range codeStarts {
		if len(line) >= len(start) && strings.EqualFold(line[:len(start)], start) && strings.ContainsAny(line, "=(){}[];\"'<>/:.#$@") {
			return true
		}
	}
	return strings.Contains(line, " = ") || strings.Contains(line, ":=") || strings.Contains(line, "=>") || strings.Contains(line, "->") || strings.Contains(line, "();")
}
