package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// A ToolLabel is one entry of a labels file: what the tools are that a pattern
// matches. The pattern is the name of a tool, or its beginning and *; of several
// that match, the longest holds.
type ToolLabel struct {
	Pattern string
	Result  string // trusted | untrusted | echo; untrusted unless the file says otherwise
	Private bool
	Kind    string // code | prose; empty: by the names of the files that a call reads
	Effect  []string
	Control []string // JSON Pointers; nil if the file does not say
	Content []string
}

// The words of a labels file.
var (
	resultKinds = []string{"trusted", "untrusted", "echo"}
	toolEffects = []string{"read", "local", "internal", "external", "destructive", "egress", "credential"}
)

// ReadLabels reads a labels file, in its order; "" stands for none. The error is
// a [Problems] with everything that is wrong with it.
func ReadLabels(path string) ([]ToolLabel, error) {
	if path == "" {
		return nil, nil
	}
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return parseLabels(path, data)
}

func parseLabels(path string, data []byte) ([]ToolLabel, error) {
	d := &decoder{file: path, lookup: os.LookupEnv, keep: true}
	root := d.parse(data, false)
	if root == nil {
		return nil, d.problems.err()
	}
	var labels []ToolLabel
	d.each(root, "", func(f field, path string) {
		l := ToolLabel{Pattern: f.key, Result: "untrusted"}
		if f.key == "" || checkTools(f.key) != nil {
			d.fail(&node{line: f.line}, path, "%q is not %s", f.key, toolWords)
		}
		d.table(f.value, path, map[string]reader{
			"result": d.one(&l.Result, resultKinds...), "private": d.flag(&l.Private), "effect": d.texts(&l.Effect, among(toolEffects)), "kind": d.one(&l.Kind, "code", "prose"),
			"control": d.texts(&l.Control, pointer), "content": d.texts(&l.Content, pointer),
		})
		if e := f.value.get("effect"); f.value.kind == table && (e == nil || e.kind == list && len(e.items) == 0) {
			d.fail(&node{line: f.line}, join(path, "effect"), "is missing: say what the tool does, such as [read]")
		}
		labels = append(labels, l)
	})
	return labels, d.problems.err()
}

func pointer(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("is no JSON Pointer to an argument, such as /to")
	}
	return nil
}
