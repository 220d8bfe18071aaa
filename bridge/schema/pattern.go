package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of regular expressions. RE2 takes time in proportion to the length of
// the text and to the size of the expression, where a{1000} has the size 1,000.
const (
	maxPattern  = 8 << 10 // bytes
	maxSteps    = 10000   // size of one expression
	maxAllSteps = 100000  // of all expressions in a schema
)

// pattern is a regular expression of which it is known how large it is.
type pattern struct {
	*regexp.Regexp
	steps int
}

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
		return nil, fmt.Errorf("a pattern of %d bytes, of at most %d", len(s), maxPattern)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	steps, all := size(tree), 0
	for _, c := range p {
		if c.pattern != nil {
			all += c.pattern.steps
		}
	}
	if steps > maxSteps || all+steps > maxAllSteps {
		return nil, fmt.Errorf("matching would take %d steps a character", steps)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return &pattern{re, steps}, nil
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
