package gate_test

import (
	"context"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// kinds writes down of what kind the texts of results are said to be.
type kinds struct{ seen *provenance.TextKind }

func (k kinds) Sanitize(t gate.Text) (string, []gate.Finding) {
	if t.Text == "the text" {
		*k.seen = t.Kind
	}
	return t.Text, nil
}

type labelFunc func(*gate.Tool) (provenance.ToolLabels, bool)

func (f labelFunc) Labels(t *gate.Tool) (provenance.ToolLabels, bool) { return f(t) }

// TestTextKind: a text is source where the operator says so, or where a reading tool of a
// server on this machine reads a file that is source by its name. No page, mail or ticket
// is, whatever its arguments look like.
func TestTextKind(t *testing.T) {
	const reads = `{"readOnlyHint":true,"openWorldHint":false}`
	read := &provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectRead}}
	for name, tt := range map[string]struct {
		server string // "child", or elsewhere
		hints  string
		labels *provenance.ToolLabels
		args   string
		want   provenance.TextKind
	}{
		"a file of source":           {"child", reads, nil, `{"path":"/src/a.tsx"}`, provenance.KindCode},
		"a page on the disk":         {"child", reads, nil, `{"path":"/src/index.HTML"}`, provenance.KindCode},
		"a file: URI":                {"child", reads, nil, `{"uri":"file:///src/a.go"}`, provenance.KindCode},
		"a path of Windows":          {"child", reads, nil, `{"filePath":"C:\\src\\a.go"}`, provenance.KindCode},
		"several files of source":    {"child", reads, nil, `{"paths":["a.go","Makefile"],"head":5}`, provenance.KindCode},
		"documents in Markdown":      {"child", reads, nil, `{"path":"/src/README.md"}`, provenance.KindCode},
		"one of them is prose":       {"child", reads, nil, `{"paths":["a.go","README.md","notes.txt"]}`, provenance.KindProse},
		"a folder":                   {"child", reads, nil, `{"path":"/src","pattern":"*.go"}`, provenance.KindProse},
		"a web address":              {"child", reads, nil, `{"uri":"https://evil.example/a.js"}`, provenance.KindProse},
		"another scheme":             {"child", reads, nil, `{"path":"imap://inbox/a.js"}`, provenance.KindProse},
		"a query that names a file":  {"child", reads, nil, `{"query":"a.js"}`, provenance.KindProse},
		"an id of a mail":            {"child", reads, nil, `{"id":"a.js"}`, provenance.KindProse},
		"a server elsewhere":         {"", reads, nil, `{"path":"/src/a.js"}`, provenance.KindProse},
		"a tool that writes":         {"child", `{"openWorldHint":false}`, nil, `{"path":"a.js"}`, provenance.KindProse},
		"a tool that may reach out":  {"child", `{"readOnlyHint":true}`, nil, `{"path":"a.js"}`, provenance.KindProse},
		"a tool that says nothing":   {"child", `{}`, nil, `{"path":"a.js"}`, provenance.KindProse},
		"labelled as reading":        {"child", `{}`, read, `{"path":"a.js"}`, provenance.KindCode},
		"labelled, reaches out":      {"child", reads, &provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectRead, provenance.EffectEgress}}, `{"path":"a.js"}`, provenance.KindProse},
		"labelled as code":           {"", `{}`, &provenance.ToolLabels{Kind: provenance.KindCode, Effects: []provenance.ToolEffect{provenance.EffectRead}}, `{"diff":"x"}`, provenance.KindCode},
		"labelled as prose":          {"child", reads, &provenance.ToolLabels{Kind: provenance.KindProse, Effects: []provenance.ToolEffect{provenance.EffectRead}}, `{"path":"a.js"}`, provenance.KindProse},
		"a list with something else": {"child", reads, nil, `{"paths":["a.js",5]}`, provenance.KindProse},
		"no arguments":               {"child", reads, nil, `{}`, provenance.KindProse},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Input, r.tool.Output = schemaFunc(func(gate.Doc) error { return nil }), nil
			r.tool.OnMachine, r.tool.Annotations = tt.server == "child", gate.MustDoc(tt.hints)
			r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
				return answer(`{"content":[{"type":"text","text":"the text"}]}`), nil
			}
			var got provenance.TextKind
			parts := r.parts()
			parts.Sanitizer = kinds{&got}
			parts.Labeler = labelFunc(func(*gate.Tool) (provenance.ToolLabels, bool) {
				if tt.labels == nil {
					return provenance.ToolLabels{}, false
				}
				return *tt.labels, true
			})
			c := newCall()
			c.Args = gate.MustDoc(tt.args)
			if _, err := newGate(t, parts).Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if got == "" {
				got = "none"
			}
			if got != tt.want {
				t.Errorf("%s is %s, want %s", tt.args, got, tt.want)
			}
		})
	}
}
