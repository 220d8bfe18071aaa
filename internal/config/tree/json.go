package tree

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// json parses JSON with comments and trailing commas.
func (t *tree) json(data []byte) (*Node, error) {
	if at := tooDeep(data); at >= 0 {
		return nil, &syntaxError{lineAt(data, at), fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, jsonError(err)
	}
	var breaks []int
	for i, c := range data {
		if c == '\n' {
			breaks = append(breaks, i)
		}
	}
	t.lineOf = func(offset int) int {
		i, _ := slices.BinarySearch(breaks, offset)
		return i + 1
	}
	return t.fromJSON(v, "", 0)
}

var jsonPosition = regexp.MustCompile(`^hujson: line (\d+), column \d+: `)

// jsonError keeps the line of a parser's error and leaves out what it quotes,
// which may be half of a token.
func jsonError(err error) error {
	m := jsonPosition.FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New("not JSON")
	}
	at, _ := strconv.Atoi(m[1])
	reason := strings.TrimPrefix(err.Error(), m[0])
	if strings.HasPrefix(reason, "invalid literal") {
		reason = "neither a string in quotes, a number, true, false nor null"
	}
	return &syntaxError{at, "not JSON: " + reason}
}

// tooDeep returns the offset at which data nests too deeply, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return i
			}
		case c == ']' || c == '}':
			depth--
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(data):
			end := map[byte]string{'/': "\n", '*': "*/"}[data[i+1]]
			if end == "" {
				continue
			}
			n := bytes.Index(data[i+2:], []byte(end))
			if n < 0 {
				return -1
			}
			i += 1 + n + len(end)
		}
	}
	return -1
}

func (t *tree) fromJSON(v hujson.Value, path string, depth int) (*Node, error) {
	out := &Node{Line: t.lineOf(v.StartOffset), size: 1}
	if err := t.count(out.Line, depth, 1); err != nil {
		return nil, err
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		out.Kind = Table
		for _, m := range v.Members {
			key := m.Name.Value.(hujson.Literal).String()
			value, err := t.fromJSON(m.Value, Join(path, key), depth+1)
			if err != nil {
				return nil, err
			}
			t.add(out, Field{Key: key, Line: t.lineOf(m.Name.StartOffset), Value: value}, path)
		}
	case *hujson.Array:
		out.Kind = List
		for i, e := range v.Elements {
			item, err := t.fromJSON(e, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, item)
			out.size += item.size
		}
	case hujson.Literal:
		switch v.Kind() {
		case 't', 'f':
			out.Kind, out.Text = Boolean, string(v)
		case '0':
			out.Kind, out.Text = Number, string(v)
		case '"':
			out.Kind, out.Text = Text, v.String()
		}
	}
	return out, nil
}
