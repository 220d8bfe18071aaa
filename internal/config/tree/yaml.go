package tree

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yaml parses one YAML document. Tags, complex keys and merge keys are
// refused: nothing here needs them, and each is a way to read a file otherwise
// than it looks.
func (t *tree) yaml(data []byte) (*Node, error) {
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	// With duplicate keys allowed, since add reports all of them and this
	// parser only the first.
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if se, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			return nil, &syntaxError{se.Token.Position.Line, se.Message}
		}
		return nil, err
	}
	if len(f.Docs) > 1 {
		return nil, &syntaxError{line(f.Docs[1]), "holds more than one document"}
	}
	if len(f.Docs) == 0 {
		return &Node{Line: 1, size: 1}, nil
	}
	return t.fromYAML(f.Docs[0].Body, "", 0)
}

const (
	maxTokens  = 60_000 // the parser takes quadratic time: 1 s for 20,000 keys
	maxRun     = 64     // tokens that open a level without a line break or comma between them (- - - a)
	maxAnchors = 64
)

// checkTokens refuses what would make the parser recurse until the stack ends
// or take very long. It does that before any limit of its own.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return &syntaxError{0, fmt.Sprintf("holds more than %d tokens", maxTokens)}
	}
	depth, run, last := 0, 0, 0
	count := map[token.Type]int{}
	for _, tk := range tokens {
		at := tk.Position.Line
		if depth == 0 && at != last {
			run = 0
		}
		last = at
		count[tk.Type]++
		switch tk.Type {
		case token.TagType:
			return &syntaxError{at, "tags such as !x are not used here"}
		case token.MappingKeyType:
			return &syntaxError{at, "keys that begin with ? are not used here"}
		case token.SequenceStartType, token.MappingStartType:
			depth, run = depth+1, 0
		case token.SequenceEndType, token.MappingEndType:
			depth, run = max(0, depth-1), 0
		case token.CollectEntryType:
			run = 0
		case token.SequenceEntryType, token.MappingValueType:
			run++
		}
		switch {
		case depth > maxDepth || run > maxRun:
			return &syntaxError{at, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
		case count[token.AnchorType] > maxAnchors:
			return &syntaxError{at, fmt.Sprintf("holds more than %d anchors", maxAnchors)}
		case count[token.DocumentHeaderType] > 1:
			return &syntaxError{at, "holds more than one document"}
		}
	}
	return nil
}

func line(n ast.Node) int {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

func (t *tree) fromYAML(n ast.Node, path string, depth int) (*Node, error) {
	if n == nil {
		return &Node{size: 1}, nil
	}
	out := &Node{Line: line(n), size: 1}
	if err := t.count(out.Line, depth, 1); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *ast.NullNode, *ast.CommentGroupNode:
	case *ast.BoolNode:
		out.Kind, out.Text = Boolean, n.GetToken().Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Number, n.GetToken().Value
	case *ast.StringNode:
		out.Kind, out.Text = Text, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = Text, n.Value.Value
	case *ast.SequenceNode:
		return out, t.items(out, n, path, depth)
	case *ast.MappingNode:
		return out, t.mapping(out, n.Values, path, depth)
	case *ast.MappingValueNode:
		return out, t.mapping(out, []*ast.MappingValueNode{n}, path, depth)
	case *ast.AnchorNode:
		v, err := t.fromYAML(n.Value, path, depth+1)
		if err == nil && n.Name != nil {
			t.anchors[n.Name.GetToken().Value] = v
		}
		return v, err
	case *ast.AliasNode:
		return t.alias(n, depth)
	default:
		return nil, &syntaxError{out.Line, fmt.Sprintf("a YAML %s is not used here", n.Type())}
	}
	return out, nil
}

func (t *tree) items(out *Node, n *ast.SequenceNode, path string, depth int) error {
	out.Kind = List
	for i, v := range n.Values {
		if depth == 0 {
			i += t.first
		}
		item, err := t.fromYAML(v, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
		out.size += item.size
	}
	return nil
}

func (t *tree) mapping(out *Node, values []*ast.MappingValueNode, path string, depth int) error {
	out.Kind = Table
	for _, mv := range values {
		switch mv.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		default:
			return &syntaxError{line(mv.Key), fmt.Sprintf("a YAML %s as a key is not used here", mv.Key.Type())}
		}
		key := mv.Key.GetToken()
		v, err := t.fromYAML(mv.Value, Join(path, key.Value), depth+1)
		if err != nil {
			return err
		}
		t.add(out, Field{Key: key.Value, Line: key.Position.Line, Value: v}, path)
	}
	return nil
}

// alias returns a copy of the value named before. Only names that are complete
// are known, so no value holds itself.
func (t *tree) alias(n *ast.AliasNode, depth int) (*Node, error) {
	at, name := line(n), n.Value.GetToken().Value
	v, ok := t.anchors[name]
	if !ok {
		return nil, &syntaxError{at, fmt.Sprintf("*%s is used before &%s has been given", name, name)}
	}
	if err := t.count(at, depth, v.size); err != nil {
		return nil, err
	}
	copied := *v
	return &copied, nil
}
