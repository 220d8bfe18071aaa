package policy

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// beginnings warns of rules that compare an argument which is a path or a URL by its
// text: /srv/docs/../x begins with /srv/docs/, and /srv/docs-old with /srv/docs.
func beginnings(m *ast.Module) []Problem {
	var problems []Problem
	compare := func(terms []*ast.Term, loc *ast.Location) {
		if len(terms) < 3 || !slices.Contains(textual, terms[0].String()) {
			return
		}
		text, literal := terms[2].Value.(ast.String)
		name, isArgument := argumentName(terms[1])
		_, isVar := terms[1].Value.(ast.Var)
		if !isArgument && !(isVar && literal && looksLikePlace(string(text))) || isArgument && !(literal && looksLikePlace(string(text))) && kindOf(name) != "path" && kindOf(name) != "url" {
			return
		}
		if terms[0].String() == ast.EndsWith.Name && literal && extension.MatchString(string(text)) {
			return // the kind of a file is in the end of its name, wherever the file is
		}
		problems = append(problems, insteadOf(terms[0].String(), name, string(text), loc))
	}
	eachCall(m, compare)
	return problems
}

// eachCall gives f the terms of each call of a function in a module, the function first:
// where it stands for itself, and where it is a value.
func eachCall(m *ast.Module, f func(terms []*ast.Term, at *ast.Location)) {
	ast.WalkNodes(m, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if terms, ok := n.Terms.([]*ast.Term); ok {
				f(terms, n.Location)
			}
		case *ast.Term:
			if call, ok := n.Value.(ast.Call); ok {
				f(call, n.Location)
			}
		}
		return false
	})
}

// textual are the functions that look at a text as such.
var textual = []string{ast.StartsWith.Name, ast.Contains.Name, ast.EndsWith.Name}

// insteadOf says what a comparison of texts does not see, and what does.
func insteadOf(function, name, text string, loc *ast.Location) Problem {
	if kindOf(name) == "url" || addressLike.MatchString(text) {
		return warn(loc, "%s on a URL takes https://good.example@evil.example and https://good.example.evil.example for what they begin with; write urls.within or urls.domain_is (import data.wasmgate.urls, policy: {packs: [..., urls]})", function)
	}
	return warn(loc, "%s on a path takes /srv/docs/../x for what lies below /srv/docs/; write paths.within(p, \"/srv/docs\") (import data.wasmgate.paths, policy: {packs: [..., paths]})", function)
}

var (
	addressLike = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*://`)
	extension   = regexp.MustCompile(`^(\.[A-Za-z0-9]+)+$`)
	placeLike   = regexp.MustCompile(`(?i)^([a-z][a-z0-9+.-]*://|[a-z]:[\\/]|[~.]{0,2}[\\/])|^\.\.$`)
)

// looksLikePlace reports whether a text is the beginning of a path or a URL.
func looksLikePlace(s string) bool { return placeLike.MatchString(s) }

// argumentName returns the name of the argument, or of the last named member of one, that
// a term stands for.
func argumentName(t *ast.Term) (name string, ok bool) {
	ref, isRef := t.Value.(ast.Ref)
	if !isRef || len(ref) < 3 || !ref.HasPrefix(input.ArgumentsRef) {
		return "", false
	}
	for _, part := range ref[2:] {
		if s, ok := part.Value.(ast.String); ok {
			name = string(s)
		}
	}
	return name, true
}

// argumentKinds are kinds of arguments, by the words that end their names. A rule that looks at
// one argument of a kind should look at all.
var argumentKinds = map[string][]string{
	"path":      {"path", "file", "filename", "filepath", "dir", "directory", "folder", "root", "source", "src", "destination", "dest", "dst", "cwd"},
	"url":       {"url", "uri", "href", "link", "endpoint", "webhook"},
	"recipient": {"to", "cc", "bcc", "recipient", "email", "attendee"},
}

// kindOf returns the kind of an argument, "" if it has none of its own.
func kindOf(name string) string {
	words := wordsOf(name)
	if len(words) == 0 {
		return ""
	}
	last := words[len(words)-1]
	for kind, names := range argumentKinds {
		if slices.Contains(names, last) || slices.Contains(names, strings.TrimSuffix(last, "s")) || slices.Contains(names, strings.TrimSuffix(last, "ies")+"y") {
			return kind
		}
	}
	return ""
}

// wordsOf returns the words of a name such as old_path, oldPath or old-path.
func wordsOf(name string) []string {
	var spaced strings.Builder
	before := rune('A')
	for _, r := range name {
		if unicode.IsUpper(r) && !unicode.IsUpper(before) {
			spaced.WriteRune(' ')
		}
		spaced.WriteRune(r)
		before = r
	}
	return strings.FieldsFunc(strings.ToLower(spaced.String()), func(r rune) bool { return !unicode.IsLetter(r) })
}
