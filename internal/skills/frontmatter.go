package skills

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// Frontmatter splits a SKILL.md into its frontmatter and the text below.
func Frontmatter(file string) (front, text string, err error) {
	file = strings.TrimPrefix(file, "\ufeff")
	begin, at := 0, 0
	for line := range strings.Lines(file) {
		fence := strings.TrimRight(line, " \t\r\n") == "---"
		next := at + len(line)
		switch {
		case fence && at > 0:
			return quoted(file[begin:at]), file[next:], nil
		case fence:
			begin = next
		case at == 0:
			return "", "", errors.New("SKILL.md does not begin with frontmatter")
		}
		at = next
	}
	return "", "", errors.New("the frontmatter of SKILL.md has no end")
}

// unquoted matches a member whose value has a colon that YAML wants quoted.
var unquoted = regexp.MustCompile(`(?m)^([A-Za-z][\w-]*):[ \t]+([^\s"'|>&*!%@{}\[\],#?\x60-][^\r\n]*:[^\r\n]*?)[ \t\r]*$`)

// quoted returns frontmatter as it is or, if it is no YAML, with its values quoted that hold a colon:
// many authors forget that, and their hosts read it so.
func quoted(front string) string {
	if _, err := mapping(front); err == nil || len(front) > maxFrontmatter {
		return front
	}
	return unquoted.ReplaceAllStringFunc(front, func(line string) string {
		m := unquoted.FindStringSubmatch(line)
		return m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
	})
}

// maxBrackets bounds the lists and mappings in brackets of a frontmatter: the parser takes memory for each
// that is in another.
const maxBrackets = 1000

// mapping parses YAML that is a mapping.
func mapping(text string) (ast.Node, error) {
	if len(text) > maxFrontmatter {
		return nil, fmt.Errorf("the frontmatter of SKILL.md has more than %d KiB", maxFrontmatter>>10)
	}
	if strings.Count(text, "[")+strings.Count(text, "{") > maxBrackets {
		return nil, fmt.Errorf("the frontmatter of SKILL.md has more than %d brackets", maxBrackets)
	}
	f, err := parser.ParseBytes([]byte(text), 0)
	switch {
	case err != nil:
		return nil, errors.New("the frontmatter of SKILL.md is not YAML")
	case len(f.Docs) != 1 || f.Docs[0].Body == nil:
		return nil, errors.New("the frontmatter of SKILL.md is not a mapping")
	}
	return f.Docs[0].Body, nil
}

// checkFront returns how the frontmatter of SKILL.md differs from that of the entry.
func checkFront(text string, entry doc.Doc) error {
	node, err := mapping(text)
	if err != nil {
		return err
	}
	return differs(node, entry, "")
}

// differs compares a node of YAML with a document. Parsers of YAML disagree on what is a number, a
// date or a truth value, and on white space in long texts. So scalars are compared by their text.
func differs(n ast.Node, d doc.Doc, at string) error {
	var wrong error
	if at == "" {
		wrong = errors.New("the frontmatter of SKILL.md is not that of the entry")
	} else {
		wrong = fmt.Errorf("the frontmatter of SKILL.md and of the entry differ in %s", at)
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		return differs(n.Value, d, at)
	case *ast.TagNode:
		return differs(n.Value, d, at)
	case *ast.MappingValueNode:
		return mapsDiffer([]*ast.MappingValueNode{n}, d, at, wrong)
	case *ast.MappingNode:
		return mapsDiffer(n.Values, d, at, wrong)
	case *ast.SequenceNode:
		if d.Kind() != doc.Array || doc.Len(d) != len(n.Values) {
			return wrong
		}
		for i, v := range n.Values {
			if err := differs(v, d.At("/"+strconv.Itoa(i)), at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	case *ast.LiteralNode:
		if d.Kind() == doc.String && sameWords(n.Value.Value, d.Text()) {
			return nil
		}
		return wrong
	case *ast.NullNode:
		if d.Kind() == doc.Null || d.Kind() == doc.String && d.Text() == "" {
			return nil
		}
		return wrong
	case *ast.StringNode:
		if sameScalar(n.Value, d) {
			return nil
		}
		return wrong
	case ast.ScalarNode:
		if sameScalar(n.GetToken().Value, d) {
			return nil
		}
	}
	return wrong
}

func mapsDiffer(values []*ast.MappingValueNode, d doc.Doc, at string, wrong error) error {
	if d.Kind() != doc.Object || doc.Len(d) != len(values) {
		if d.Kind() == doc.Object && at == "" {
			return fmt.Errorf("SKILL.md has %d members in its frontmatter, and the entry has %d", len(values), doc.Len(d))
		}
		return wrong
	}
	seen := make(map[string]bool)
	for _, v := range values {
		name := v.Key.GetToken().Value
		if seen[name] || d.Get(name).IsZero() {
			return wrong
		}
		seen[name] = true
		if err := differs(v.Value, d.Get(name), at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

var (
	date  = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	truth = map[string]string{"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
)

// sameScalar reports whether what is written in YAML can be the value in JSON.
func sameScalar(text string, d doc.Doc) bool {
	switch d.Kind() {
	case doc.String:
		return sameWords(text, d.Text()) || date.MatchString(text) && d.Text() == text+"T00:00:00.000Z"
	case doc.Number:
		a, err1 := strconv.ParseFloat(text, 64)
		b, err2 := strconv.ParseFloat(d.String(), 64)
		return err1 == nil && err2 == nil && a == b
	case doc.Bool:
		return truth[strings.ToLower(text)] == d.String()
	case doc.Null:
		return text == "" || text == "~" || strings.EqualFold(text, "null")
	default:
		return false
	}
}

func sameWords(a, b string) bool {
	return a == b || strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// ReadFrontmatter returns the frontmatter of a SKILL.md as its entry has it.
func ReadFrontmatter(file string) (map[string]any, error) {
	text, _, err := Frontmatter(file)
	if err != nil {
		return nil, err
	}
	if _, err := mapping(text); err != nil {
		return nil, err
	}
	front := make(map[string]any)
	return front, yaml.Unmarshal([]byte(text), &front)
}
