package scan

import (
	"encoding/json"
	"slices"
	"strings"
)

// Identifiers returns the words of a definition's texts that can be a tool's name
// and hardly anything else: of several parts, as read_file, readFile and
// files__read are. Each is returned once, in the order of their letters, and no more
// than maxIdentifiers of them. What is no JSON has none.
func Identifiers(definition []byte) []string {
	var def any
	if json.Unmarshal(definition, &def) != nil {
		return nil
	}
	var all []string
	collect(def, func(text string) { all = append(all, identifiers(text)...) })
	slices.Sort(all)
	all = slices.Compact(all)
	all = slices.Clone(all[:min(len(all), maxIdentifiers)])
	for i := range all {
		all[i] = strings.Clone(all[i]) // callers keep them, and not the definition
	}
	return all
}

// maxIdentifiers is far above what a description speaks of.
const maxIdentifiers = 1000

// collect calls f with all strings that are no names of members.
func collect(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			collect(e, f)
		}
	case map[string]any:
		for name, e := range v {
			if _, isText := e.(string); !isText || readable(name) && name != "name" {
				collect(e, f)
			}
		}
	}
}

// identifiers returns those of one text.
func identifiers(text string) []string {
	var all []string
	for i := 0; i < len(text); {
		if !inName(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && inName(text[j]) {
			j++
		}
		if word := strings.Trim(text[i:j], "-_"); parts(word) {
			all = append(all, word)
		}
		i = j
	}
	return all
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// parts reports whether a word has several parts.
func parts(word string) bool {
	for i := 1; i < len(word); i++ {
		c, before := word[i], word[i-1]
		if c == '_' || c == '-' || c >= 'A' && c <= 'Z' && before >= 'a' && before <= 'z' {
			return true
		}
	}
	return false
}
