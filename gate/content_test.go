package gate_test

import (
	"context"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

type checkerFunc func(gate.Content) string

func (f checkerFunc) Check(c gate.Content) gate.ContentVerdict {
	return gate.ContentVerdict{Refused: f(c)}
}

func TestContentThatIsRefusedBecomesText(t *testing.T) {
	check := checkerFunc(func(c gate.Content) string {
		if c.Data == "BAD=" || c.URI == "bad:x" {
			return "a bad thing"
		}
		return ""
	})
	const removed = `{"text":"[removed: a bad thing]","type":"text"}`
	const listed = `{"text":"[removed: list of pages from elsewhere]","type":"text"}`
	tests := map[string]struct {
		checker   gate.ContentChecker
		in, want  string
		removedAt string
	}{
		"a picture":            {check, `[{"type":"image","data":"BAD=","mimeType":"image/png"}]`, `[` + removed + `]`, "/content/0"},
		"an embedded file":     {check, `[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"x:y","blob":"BAD="}}]`, `[{"type":"text","text":"a"},` + removed + `]`, "/content/1"},
		"a link":               {check, `[{"type":"resource_link","uri":"bad:x","name":"n"}]`, `[` + removed + `]`, "/content/0"},
		"a list of addresses":  {check, `[{"type":"resource","resource":{"uri":"ui://x","mimeType":"Text/URI-list; charset=utf-8","text":"# a\r\ngood:x\r\nbad:x"}}]`, `[` + listed + `]`, "/content/0"},
		"a good list":          {check, `[{"type":"resource","resource":{"uri":"ui://x","mimeType":"text/uri-list","text":"#bad:x\ngood:x"}}]`, `[{"type":"resource","resource":{"uri":"ui://x","mimeType":"text/uri-list","text":"#bad:x\ngood:x"}}]`, ""},
		"what is good":         {check, `[{"type":"image", "data":"GOOD","mimeType":"image/png"}]`, `[{"type":"image", "data":"GOOD","mimeType":"image/png"}]`, ""},
		"text is not asked":    {check, `[{"type":"text","text":"BAD="}]`, `[{"type":"text","text":"BAD="}]`, ""},
		"no checker":           {nil, `[{"type":"image","data":"BAD="}]`, `[{"type":"image","data":"BAD="}]`, ""},
		"content that is none": {check, `"BAD="`, `"BAD="`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.invoke = func(context.Context, *gate.Call) (gate.Result, error) {
				return answer(`{"content":` + tt.in + `,"structuredContent":{"a":1}}`), nil
			}
			parts := r.parts()
			parts.ContentChecker = tt.checker
			g := newGate(t, parts)
			res, err := g.Do(t.Context(), newCall())
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Doc.Get("content").String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := res.Doc.At("/_meta/" + "io.github.wasmgate~1findings" + "/0/at").Text(); got != tt.removedAt {
				t.Errorf("found at %q, want %q", got, tt.removedAt)
			}
		})
	}
}
