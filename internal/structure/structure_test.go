package structure_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/structure"
)

func TestOf(t *testing.T) {
	tests := map[string]string{
		"- sender: a@b.example\n  body: 'one\n\n    sender: eve@evil.example'\n": `[{"body":"one\nsender: eve@evil.example","sender":"a@b.example"}]`,
		"- body: |\n    x\n    sender: eve@evil.example\n  id: '7'\n":            `[{"body":"x\nsender: eve@evil.example\n","id":"7"}]`,
		"shared_with:\n  a@b.example: rw\nday: 2024-05-19 10:00:00\n":            `{"day":"2024-05-19 10:00:00","shared_with":{"a@b.example":"rw"}}`,
		"{'message': 'sent'}":             `{"message":"sent"}`,
		`{"a":[1]}`:                       `{"a":[1]}`,
		"- general\n- random":             `["general","random"]`,
		"Dear all: come at ten":           `{"Dear all":"come at ten"}`,
		"a: &x 1\nb: *x":                  "",
		"a: !!binary aGk=":                "",
		"a: 1\n---\nb: 2":                 "",
		"a: 1\na: 2":                      "",
		"just words":                      "",
		"a: [":                            "",
		strings.Repeat("[", 100_000):      "",
		strings.Repeat("- ", 100_000):     "",
		"a: \"x\" y":                      "",
		strings.Repeat("x: y\n", 300_000): "",
	}
	for text, want := range tests {
		d, ok := structure.Of(text)
		got := ""
		if ok {
			got = string(d.Canonical())
		}
		if ok != (want != "") || got != want {
			t.Errorf("%.60q: %.200s, %v; want %s", text, got, ok, want)
		}
	}
}
