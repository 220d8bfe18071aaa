package schema

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// split returns the schemas that together say what a pattern with look-around at its ends says:
//
//	^(?=A)(?!B)rest(?<=C)(?<!D)$   as   ^rest$, ^(?:A), not ^(?:B), (?:C)$, not (?:D)$
//
// It is nil for any other pattern, such as one that looks around in its middle, or at one of
// several alternatives. RE2 has no look-around, since it never goes back in the text.
func split(pattern gate.Doc) (checks []string) {
	rest, ok := strings.CutPrefix(pattern.Text(), "^")
	if !ok {
		return nil
	}
	add := func(pattern string, negated bool) {
		check := `{"pattern":` + string(doc.AppendString(nil, pattern)) + `}`
		if negated {
			check = `{"not":` + check + `}`
		}
		checks = append(checks, check)
	}
	for {
		group, after := groupAt(rest)
		ahead, negated, ok := look(group, "(?=", "(?!")
		if !ok || quantified(after) {
			break
		}
		add("^(?:"+ahead+")", negated)
		rest = after
	}
	if middle, ok := strings.CutSuffix(rest, "$"); ok {
		for {
			start := lastGroup(middle)
			behind, negated, ok := look(middle[start:], "(?<=", "(?<!")
			if !ok {
				break
			}
			add("(?:"+behind+")$", negated)
			middle = middle[:start]
		}
		rest = middle + "$"
	}
	if checks == nil || hasAlternatives(rest) {
		return nil
	}
	add("^"+rest, false)
	return checks
}

// look returns what a group that begins in one of two ways holds, and whether in the second.
func look(group, positive, negative string) (inner string, negated, ok bool) {
	if inner, ok = strings.CutPrefix(group, positive); ok {
		return inner[:len(inner)-1], false, true
	}
	if inner, ok = strings.CutPrefix(group, negative); ok {
		return inner[:len(inner)-1], true, true
	}
	return "", false, false
}

// topLevel calls f with the index of each byte of an expression that is in no class and is not
// escaped, and with how many groups it is in. A parenthesis is in its own group.
func topLevel(s string, f func(i, depth int)) {
	depth, class := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case class:
			class = s[i] != ']'
		case s[i] == '[':
			class = true
		case s[i] == '(':
			depth++
			f(i, depth)
		case s[i] == ')':
			f(i, depth)
			depth--
		default:
			f(i, depth)
		}
	}
}

// groupAt returns the group that an expression begins with, and what comes after it; an empty
// group if it begins with none.
func groupAt(s string) (group, after string) {
	end := 0
	topLevel(s, func(i, depth int) {
		if end == 0 && s[0] == '(' && s[i] == ')' && depth == 1 {
			end = i + 1
		}
	})
	return s[:end], s[end:]
}

// lastGroup returns where the group begins that an expression ends with; its length if it ends
// with none.
func lastGroup(s string) (start int) {
	start = len(s)
	begun := 0
	topLevel(s, func(i, depth int) {
		if s[i] == '(' && depth == 1 {
			begun = i
		}
		if s[i] == ')' && depth == 1 && i == len(s)-1 {
			start = begun
		}
	})
	return start
}

func quantified(after string) bool { return after != "" && strings.Contains("*+?{", after[:1]) }

// hasAlternatives reports whether an expression has several of them, outside of its groups.
func hasAlternatives(s string) (found bool) {
	topLevel(s, func(i, depth int) { found = found || s[i] == '|' && depth == 0 })
	return found
}
