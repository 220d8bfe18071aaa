package secrets

import (
	"cmp"
	"slices"
	"strings"
)

// Find returns the secrets in a text, in order and without overlaps.
func (s *Scanner) Find(text string) []Finding { return s.FindIn("", text) }

// FindIn is Find for a text whose path is known: the name of a file, the URI of a resource. Some
// rules hold only for files of certain names.
func (s *Scanner) FindIn(path, text string) []Finding {
	return s.merge(s.scan(path, text, 0))
}

// Redact returns the text with a marker, such as "[redacted: github-pat]", for
// each secret, and what it found, with places in the text that it was given. It
// is idempotent; if there is nothing to redact it returns text itself.
func (s *Scanner) Redact(text string) (clean string, found []Finding) { return s.RedactIn("", text) }

// maxPasses bounds how often a text is gone through. A secret can hide another
// that its expression took along; two passes find all but what was made to last.
const maxPasses = 8

// unstable replaces a text in which there are still secrets after maxPasses.
const unstable = "[redacted: text in which secrets could not be told apart]"

// RedactIn is [Scanner.Redact] for a text whose path is known, as in
// [Scanner.FindIn].
func (s *Scanner) RedactIn(path, text string) (clean string, found []Finding) {
	return redact(text, func(text string) []Finding { return s.FindIn(path, text) })
}

func redact(text string, find func(string) []Finding) (clean string, found []Finding) {
	clean = text
	var redacted []Finding
	for range maxPasses {
		all := find(clean)
		if len(all) == 0 && len(redacted) == 0 {
			return clean, nil // nearly always
		}
		fresh, reported := split(all)
		move(fresh, redacted)
		move(reported, redacted)
		if len(fresh) == 0 {
			return clean, join(redacted, reported)
		}
		redacted = join(redacted, fresh)
		clean = replace(text, redacted)
	}
	for i := range redacted {
		redacted[i].Start, redacted[i].End = 0, len(text)
	}
	return unstable, redacted[:1]
}

// split parts what is to be redacted from what is only reported.
func split(all []Finding) (redact, report []Finding) {
	for _, f := range all {
		if f.Redacted {
			redact = append(redact, f)
		} else {
			report = append(report, f)
		}
	}
	return redact, report
}

func marker(rule string) string { return "[redacted: " + rule + "]" }

// replace replaces findings by markers.
func replace(text string, found []Finding) string {
	var b strings.Builder
	last := 0
	for _, f := range found {
		b.WriteString(text[last:f.Start])
		b.WriteString(marker(f.Rule))
		last = f.End
	}
	b.WriteString(text[last:])
	return b.String()
}

// move puts findings in a redacted text where they were before. A marker that one
// of them touches belongs to it. Both lists are in order.
func move(found, redacted []Finding) {
	next, longer := 0, 0 // the marker behind, and how much longer the text is before it
	for i := range found {
		f := &found[i]
		start, end := f.Start, f.End
		f.Start = -1
		for ; next < len(redacted); next++ {
			r := redacted[next]
			from := r.Start + longer
			to := from + len(marker(r.Rule))
			if end <= from {
				break
			}
			if start < to && f.Start < 0 {
				f.Start = min(start-longer, r.Start)
			}
			if end < to {
				end = to
			}
			longer += to - from - (r.End - r.Start)
		}
		if f.Start < 0 {
			f.Start = start - longer
		}
		f.End = end - longer
	}
}

// merge turns matches into findings.
func (s *Scanner) merge(matches []match) []Finding {
	if len(matches) == 0 {
		return nil
	}
	all := make([]Finding, len(matches))
	for i, m := range matches {
		all[i] = Finding{m.rule.ID, m.rule.Description, m.start, m.end, s.fingerprint(m.secret), !s.report[m.rule.order]}
	}
	redact, report := split(all)
	return join(redact, report)
}

// join puts findings into one list, in order. Where they overlap or touch they
// become one, which has the name of the longest that is of a certain kind; what is
// only reported makes none longer.
func join(a, b []Finding) []Finding {
	all := slices.Concat(a, b)
	byPlace := func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) }
	slices.SortFunc(all, byPlace)
	redact, report := split(all)
	redact, report = coalesce(redact), coalesce(report)
	report = slices.DeleteFunc(report, func(f Finding) bool {
		i, _ := slices.BinarySearchFunc(redact, f.Start, func(r Finding, start int) int { return cmp.Compare(r.End, start+1) })
		return i < len(redact) && redact[i].Start < f.End
	})
	all = slices.Concat(redact, report)
	slices.SortFunc(all, byPlace)
	return all
}

func coalesce(sorted []Finding) []Finding {
	var out []Finding
	for _, f := range sorted {
		if n := len(out); n == 0 || f.Start > out[n-1].End {
			out = append(out, f)
			continue
		}
		last := &out[len(out)-1]
		end := max(last.End, f.End)
		if last.Rule == RuleGeneric || f.Rule != RuleGeneric && f.End-f.Start > last.End-last.Start {
			f.Start, *last = last.Start, f
		}
		last.End = end
	}
	return out
}
