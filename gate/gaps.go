package gate

import "strings"

// minGap is how long white space between the tokens of JSON has to be, in bytes, before
// it is looked at.
const minGap = 30

// shortenGaps shortens the white space between the tokens of a JSON text where the sanitizer would
// change it between words.
func shortenGaps(by Sanitizer, t Text) (clean string, found []Finding) {
	text, last := t.Text, 0
	var out strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i += stringEnd(text[i:])
		case strings.IndexByte(" \t\r\n", c) < 0:
			i++
		default:
			run := text[i : i+len(text[i:])-len(strings.TrimLeft(text[i:], " \t\r\n"))]
			if len(run) > minGap || strings.Contains(run, "\r") {
				t.Text = "x" + run + "x"
				if clean, here := by.Sanitize(t); clean != t.Text {
					out.WriteString(text[last:i])
					out.WriteString(shortGap(run))
					last, found = i+len(run), append(found, here...)
				}
			}
			i += len(run)
		}
	}
	if last == 0 {
		return text, nil
	}
	return out.String() + text[last:], merged(found)
}

// stringEnd returns where the string of JSON ends that s begins with.
func stringEnd(s string) int {
	for i := 1; i < len(s); {
		next := strings.IndexByte(s[i:], '"')
		if next < 0 {
			break
		}
		slashes := len(s[i:i+next]) - len(strings.TrimRight(s[i:i+next], `\`))
		if i += next + 1; slashes%2 == 0 {
			return i
		}
	}
	return len(s)
}

func shortGap(run string) string {
	if strings.ContainsAny(run, "\r\n") {
		return "\n"
	}
	return " "
}
