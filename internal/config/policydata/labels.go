package policydata

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
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
// a [tree.Problems] with everything that is wrong with it.
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
	file := &decode.File{Name: path, Keep: true, Words: words}
	root, ok := file.Parse(data, false)
	if !ok {
		return nil, file.Problems.Err()
	}
	var labels []ToolLabel
	for f := range root.Entries() {
		l := ToolLabel{Pattern: f.Key}
		file.Fill(&l)
		if f.Key == "" || check.Tools(f.Key) != nil {
			f.At.Fail("%q is not %s", f.Key, check.ToolWords)
		}
		f.Value.Object(&l)
		if l.Control != nil && l.To != nil {
			f.At.Under("control").Fail("means the same as to and commits together: write one or the other")
		}
		if e := f.Value.Get("effect"); f.Value.Kind == tree.Table && (!f.Value.Has("effect") || e.Kind == tree.List && len(e.Items) == 0) {
			f.At.Under("effect").Fail("is missing: list what the tool does, such as [read]")
		}
		labels = append(labels, l)
	}
	return labels, file.Problems.Err()
}

// words are those of the tags here.
var words = &decode.Words{Checks: map[string]decode.Check{"pointer": check.Pointer}}

// Readers implements [decode.Reading].
func (l *ToolLabel) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{
		"to": pointers(&l.To, &l.Takes), "commits": pointers(&l.Commits, &l.Takes), "ids": kinds(&l.IDs, false), "destroys": decode.One(&l.Destroys, "own"),
	}
}

// pointers reads pointers to arguments: a list, or a mapping that also says of what kind
// the ids are that each takes.
func pointers(to *[]string, takes *map[string]string) decode.Reader {
	return func(v decode.Value) {
		if v.Kind != tree.Table {
			decode.Texts(to, check.Pointer)(v)
			return
		}
		*to = []string{}
		kinds(takes, true)(v)
		for _, f := range v.Fields {
			*to = append(*to, strings.TrimSuffix(strings.SplitN(f.Key, "/*", 2)[0], "/"))
		}
	}
}

// kinds reads kinds of ids by pointers; empty says that a pointer can be without one.
func kinds(to *map[string]string, empty bool) decode.Reader {
	return func(v decode.Value) {
		if *to == nil {
			*to = make(map[string]string)
		}
		for f := range v.Entries() {
			if err := check.Pointer(f.Key); err != nil {
				f.At.Fail("%q %v", f.Key, err)
			}
			var kind string
			if f.Value.Kind == tree.Null && empty {
				(*to)[f.Key] = ""
				continue
			}
			decode.Text(&kind, check.Matches(kindPattern, "the name of a kind of ids: letters, digits and . _ -"))(f.Value)
			(*to)[f.Key] = kind
		}
	}
}

var kindPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
