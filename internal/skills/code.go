package skills

import (
	"regexp"
	"strings"
)

var (
	// fence matches a line that begins or ends a block of code, perhaps in a quotation.
	fence = regexp.MustCompile("^((?:> ?)* *)(`{3,}|~{3,})([^`]*)$")
	// enclosed matches a fence that is the first thing in an item of a list.
	enclosed = regexp.MustCompile(`^[\s>*+0-9.)-]*~~~`)
	// markup matches a line with which a block of HTML may begin, which hides fences in it.
	markup = regexp.MustCompile(`^[\s>*+0-9.)-]*<([A-Za-z/?]|![^-])`)
	// verbatim matches a tag whose block goes on after a blank line.
	verbatim = regexp.MustCompile(`(?i)^[\s>*+0-9.)-]*<(pre|script|style|textarea|[?]|![^-])`)
	ticks    = regexp.MustCompile("`+")
	opened   = regexp.MustCompile(`<[A-Za-z/]`)
)

// withoutCode returns a text in Markdown without its code, which readers see as it is written. If
// renderers of Markdown could disagree on what is code in it, it is returned whole.
func withoutCode(text string) string {
	var out strings.Builder
	open, indent := "", ""           // the fence of the block that a line is in
	inMarkup, inComment := "", false // what else a line is in
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, " \t\r\n")
		m := fence.FindStringSubmatch(bare)
		if open != "" {
			switch {
			case m != nil && strings.HasPrefix(m[2], open) && strings.TrimSpace(m[3]) == "":
				if m[1] != indent || m[2] != open {
					return text
				}
				open = ""
			case bare == "" && strings.TrimSpace(indent) == "":
			case !strings.HasPrefix(bare, strings.TrimRight(indent, " ")) || strings.TrimLeft(bare, ">") != "" && !strings.HasPrefix(bare, indent):
				return text // the block may be over
			}
			continue
		}
		if m != nil {
			if inMarkup != "" || inComment {
				return text
			}
			indent, open = m[1], m[2]
			out.WriteByte('\n')
			continue
		}
		if strings.Contains(bare, "```") || enclosed.MatchString(bare) {
			return text
		}
		switch {
		case verbatim.MatchString(bare):
			inMarkup = "to the end"
		case strings.Trim(bare, "> \t") == "" && inMarkup == "to a blank line":
			inMarkup = ""
		case inMarkup == "" && markup.MatchString(bare):
			inMarkup = "to a blank line"
		}
		if !inComment && inMarkup == "" {
			rest, ok := withoutSpans(line)
			if !ok {
				return text
			}
			line = rest
		}
		if i := strings.LastIndex(line, "<!--"); i >= 0 || inComment {
			inComment = strings.LastIndex(line, "-->") < i+len("<!--")
		}
		out.WriteString(line)
	}
	if open != "" {
		return text
	}
	return out.String()
}

// withoutSpans removes the code in a line. It is false if a span goes on in the next line.
func withoutSpans(line string) (string, bool) {
	var out strings.Builder
	rest := line
	for {
		begin := ticks.FindStringIndex(rest)
		if begin == nil {
			break
		}
		run, after, end := rest[begin[0]:begin[1]], rest[begin[1]:], -1
		for at := range matches(ticks, after) {
			if after[at[0]:at[1]] == run {
				end = at[1]
				break
			}
		}
		if end < 0 || strings.HasSuffix(rest[:begin[0]], `\`) {
			return line, false
		}
		out.WriteString(rest[:begin[0]])
		rest = after[end:]
	}
	out.WriteString(rest)
	if strings.Contains(line, "`") && opened.MatchString(out.String()) { // a tag may hold the backticks
		return line, true
	}
	return out.String(), true
}
