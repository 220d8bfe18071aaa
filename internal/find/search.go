package find

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate"
)

// A Search finds tools by what their definitions say of them, in any case. What it looks
// for is found if each of its words is part of the name, the title or the description;
// the empty search finds all.
type Search struct {
	whole string
	words []string
}

// NewSearch returns a search for a text.
func NewSearch(text string) Search {
	whole := strings.ToLower(strings.TrimSpace(text))
	return Search{whole, strings.FieldsFunc(whole, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })}
}

// The ranks of what a search finds, the best first.
const (
	rankName   = iota // the search is the name
	rankBegins        // the name begins with it
	rankNamed         // all words are in the name or the title
	rankSaid          // some are in the description
	notFound
)

// Finds reports whether the search finds a tool of these names (as offered, and at its
// server), this title and this description.
func (s Search) Finds(offered, local, title, description string) bool {
	return s.rank(offered, local, title, description) < notFound
}

func (s Search) rank(offered, local, title, description string) int {
	offered, local, title = strings.ToLower(offered), strings.ToLower(local), strings.ToLower(title)
	has := func(text string) bool {
		return !slices.ContainsFunc(s.words, func(w string) bool { return !strings.Contains(text, w) })
	}
	switch {
	case s.whole == "":
		return rankSaid
	case s.whole == offered, s.whole == local:
		return rankName
	case strings.HasPrefix(offered, s.whole), strings.HasPrefix(local, s.whole):
		return rankBegins
	case len(s.words) == 0:
		return notFound
	case has(offered + "\n" + title):
		return rankNamed
	case has(offered + "\n" + title + "\n" + strings.ToLower(description)):
		return rankSaid
	default:
		return notFound
	}
}

// In returns what the search finds among the tools, by rank, and otherwise in their
// order.
func (s Search) In(tools []*gate.Tool) []*gate.Tool {
	var found [notFound][]*gate.Tool
	for _, t := range tools {
		if rank := s.rank(t.Offered, t.Local, Title(t), t.Definition.Get("description").Text()); rank < notFound {
			found[rank] = append(found[rank], t)
		}
	}
	return slices.Concat(found[:]...)
}

// Title returns what a tool is called before people; "" if its definition does not say.
func Title(t *gate.Tool) string {
	if title := t.Definition.Get("title").Text(); title != "" {
		return title
	}
	return t.Definition.Get("annotations").Get("title").Text()
}
