package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A ToolLabel is one entry of a labels file: what the tools are that a pattern
// matches. The pattern is the name of a tool, or its beginning and *; of several
// that match, the longest holds.
type ToolLabel struct {
	Pattern string
	Result  string   `key:"result trusted|untrusted|echo" default:"untrusted"`
	Private bool     `key:"private"`
	Kind    string   `key:"kind code|prose"` // empty: by the names of the files that a call reads
	Effect  []string `key:"effect read|local|internal|external|destructive|egress|credential"`
	Control []string `key:"control pointer"` // arguments; nil if the file does not say
	Content []string `key:"content pointer"`
	To      []string // nil if the file does not say
	Commits []string
	// Takes is the kind of the ids that an argument takes, by its JSON Pointer; IDs that of
	// those at a place of a result.
	Takes, IDs map[string]string
	Identity   []string `key:"identity pointer"` // places of a result
	Names      []string `key:"names pointer"`    // likewise
	Makes      []string `key:"makes pointer"`    // arguments
	Own        []string `key:"own pointer"`      // places of a result
	Destroys   string   // own, or empty
}

// ReadLabels reads a labels file, in its order; "" stands for none. The error is
// a [Problems] with everything that is wrong with it.
func ReadLabels(path string) ([]ToolLabel, error) {
	if path == "" {
		return nil, nil
	}
	data, err := tree.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return ParseLabels(path, data)
}

// ParseLabels is [ReadLabels] of bytes that the caller has.
func ParseLabels(path string, data []byte) ([]ToolLabel, error) {
	d := &decoder{file: path, lookup: os.LookupEnv, keep: true}
	root := d.parse(data, false)
	if root == nil {
		return nil, d.problems.Err()
	}
	var labels []ToolLabel
	d.each(root, "", func(f tree.Field, path string) {
		l := ToolLabel{Pattern: f.Key}
		d.fill(&l)
		if f.Key == "" || checkTools(f.Key) != nil {
			d.fail(&tree.Node{Line: f.Line}, path, "%q is not %s", f.Key, toolWords)
		}
		d.object(&l, f.Value, path)
		if l.Control != nil && l.To != nil {
			d.fail(&tree.Node{Line: f.Line}, tree.Join(path, "control"), "means the same as to and commits together: write one or the other")
		}
		if e := f.Value.Get("effect"); f.Value.Kind == tree.Table && (e == nil || e.Kind == tree.List && len(e.Items) == 0) {
			d.fail(&tree.Node{Line: f.Line}, tree.Join(path, "effect"), "is missing: list what the tool does, such as [read]")
		}
		labels = append(labels, l)
	})
	return labels, d.problems.Err()
}

func (l *ToolLabel) readers(d *decoder) map[string]reader {
	return map[string]reader{
		"to": d.pointers(&l.To, &l.Takes), "commits": d.pointers(&l.Commits, &l.Takes), "ids": d.kinds(&l.IDs, false), "destroys": d.one(&l.Destroys, "own"),
	}
}

func checkPointer(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("is not a JSON Pointer to an argument, such as /to")
	}
	return nil
}

// pointers reads pointers to arguments: a list, or a mapping that also says of what kind
// the ids are that each takes.
func (d *decoder) pointers(to *[]string, takes *map[string]string) reader {
	return func(n *tree.Node, path string) {
		if n.Kind != tree.Table {
			d.texts(to, checkPointer)(n, path)
			return
		}
		*to = []string{}
		d.kinds(takes, true)(n, path)
		for _, f := range n.Fields {
			*to = append(*to, strings.TrimSuffix(strings.SplitN(f.Key, "/*", 2)[0], "/"))
		}
	}
}

// kinds reads kinds of ids by pointers; empty says that a pointer can be without one.
func (d *decoder) kinds(to *map[string]string, empty bool) reader {
	return func(n *tree.Node, path string) {
		if *to == nil {
			*to = make(map[string]string)
		}
		d.each(n, path, func(f tree.Field, path string) {
			if err := checkPointer(f.Key); err != nil {
				d.fail(&tree.Node{Line: f.Line}, path, "%q %v", f.Key, err)
			}
			var kind string
			if f.Value.Kind == tree.Null && empty {
				(*to)[f.Key] = ""
				return
			}
			d.text(&kind, matches(kindPattern, "the name of a kind of ids: letters, digits and . _ -"))(f.Value, path)
			(*to)[f.Key] = kind
		})
	}
}

var kindPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
