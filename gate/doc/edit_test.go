package doc_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
)

func TestEdit(t *testing.T) {
	const text = `{"a":[1,{"b\u0041":2,"c":3}],"d":null}`
	to := func(raw string) func(doc.Doc) []byte {
		return func(doc.Doc) []byte {
			if raw == "" {
				return nil
			}
			return []byte(raw)
		}
	}
	for name, tt := range map[string]struct {
		path []string
		to   string
		want string
	}{
		"a member":          {[]string{"d"}, "7", `{"a":[1,{"bA":2,"c":3}],"d":7}`},
		"within an element": {[]string{"a", "1", "bA"}, "", `{"a":[1,{"c":3}],"d":null}`},
		"an element":        {[]string{"a", "0"}, "", `{"a":[{"bA":2,"c":3}],"d":null}`},
		"the whole":         {nil, "1", "1"},
		"nowhere":           {[]string{"a", "2", "x"}, "1", text},
		"below a number":    {[]string{"a", "0", "x"}, "1", text},
	} {
		t.Run(name, func(t *testing.T) {
			if got := doc.Edit(doc.Must(text), tt.path, to(tt.to)); got.Digest() != doc.Must(tt.want).Digest() {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	if got := doc.Edit(doc.Must(text), nil, to("")); !got.IsZero() {
		t.Errorf("the whole is removed: %s", got)
	}
}
