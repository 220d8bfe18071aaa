package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of regular expressions. RE2 takes time in proportion to the length of
// the text and to the size of the expression, where a{1000} has the size 1,000.
const (
	maxPattern  = 8 << 10 // bytes
	maxSteps    = 10000   // size of one expression
	maxAllSteps = 100000  // of all expressions in a schema
)

// pattern is a regular expression of known size.
type pattern struct {
	*regexp.Regexp
	source string
	steps  int
}

// String returns the expression as the schema has it.
func (p *pattern) String() string { return p.source }

// patterns are the expressions of one schema, each compiled once although the
// compiler of schemas asks for it several times.
type patterns map[string]compiledPattern

type compiledPattern struct {
	pattern *pattern
	err     error
}

// compile is a [jsonschema.RegexpEngine].
func (p patterns) compile(s string) (jsonschema.Regexp, error) {
	c, ok := p[s]
	if !ok {
		c.pattern, c.err = p.parse(s)
		p[s] = c
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.pattern, nil
}

func (p patterns) parse(s string) (*pattern, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("a pattern has %d bytes; at most %d are allowed", len(s), maxPattern)
	}
	tree, err := syntax.Parse(ecma(s), syntax.Perl)
	if err != nil {
		return nil, err
	}
	tree = dots(tree)
	steps, all := size(tree), 0
	for _, c := range p {
		if c.pattern != nil {
			all += c.pattern.steps
		}
	}
	if steps > maxSteps || all+steps > maxAllSteps {
		return nil, fmt.Errorf("matching would take %d steps per character, more than is allowed: simplify the pattern", steps)
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, err
	}
	return &pattern{re, s, steps}, nil
}

// JSON Schema uses the expressions of ECMA 262 (2020-12 core, section 6.4), and RE2 differs for some
// characters: ECMA's white space is more than that of ASCII, and its dot matches none of its four ends
// of a line.
const (
	ecmaSpace   = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNoSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

var ecmaDot = []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, 0x2027, 0x202a, unicode.MaxRune}

// ecma writes the classes of an expression that RE2 takes for others as what they are in
// ECMA 262, and the escapes that it does not know.
func ecma(s string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(s); i++ {
		switch {
		case !class && s[i] == '[':
			class = true
			n := len(classStart.FindString(s[i:]))
			b.WriteString(s[i : i+n-1])
			i += n - 1
		case class && strings.HasPrefix(s[i:], "[:") && strings.Contains(s[i:], ":]"):
			n := strings.Index(s[i:], ":]") + len(":]")
			b.WriteString(s[i : i+n-1])
			i += n - 1
		case s[i] == ']':
			class = false
		case s[i] == '\\' && i+1 < len(s):
			if text, n := ecmaEscape(s[i:], class); n > 0 {
				b.WriteString(text)
				i += n - 1
				continue
			}
			b.WriteByte(s[i])
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// classStart begins a class, a bracket first in it included, which ends none.
var classStart = regexp.MustCompile(`^\[\^?\]?`)

// ecmaEscape returns what is written for the escape that s begins with, and how long that
// is; 0 if it stays.
func ecmaEscape(s string, class bool) (text string, n int) {
	set := map[byte]string{'s': ecmaSpace, 'S': ecmaNoSpace}[s[1]]
	switch {
	case set != "" && class:
		return set, 2
	case set != "":
		return "[" + set + "]", 2
	case s[1] == 'u':
		m := unicodeEscape.FindStringSubmatch(s)
		if m == nil {
			return "", 0
		}
		r, _ := strconv.ParseUint(m[1]+m[3]+m[4], 16, 32) // the expression has seen to the digits
		if m[2] != "" {
			low, _ := strconv.ParseUint(m[2], 16, 32)
			r = uint64(utf16.DecodeRune(rune(r), rune(low)))
		}
		return fmt.Sprintf(`\x{%x}`, r), len(m[0])
	}
	return "", 0
}

// unicodeEscape is a character by its number, of two halves, in four digits, or in braces.
var unicodeEscape = regexp.MustCompile(`^\\u(?:([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})`)

// dots has the dots of an expression mean what they do in ECMA 262.
func dots(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpAnyCharNotNL {
		return &syntax.Regexp{Op: syntax.OpCharClass, Rune: ecmaDot, Flags: re.Flags}
	}
	for i, sub := range re.Sub {
		re.Sub[i] = dots(sub)
	}
	return re
}

// size returns about the number of instructions that an expression compiles to.
func size(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpRepeat:
		n *= max(re.Min+1, re.Max)
	}
	return n
}
