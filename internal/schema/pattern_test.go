package schema_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestPatternsAreThoseOfECMA262(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{`^[^\s]+$`, "a\u00a0b", false}, {`^[^\s]+$`, "a\u2028b", false}, {`^\S+$`, "a\ufeffb", false}, {`^[\S]+$`, "a\u3000b", false},
		{`^\s$`, "\v", true}, {`^[\s\S]$`, "\r", true}, {`^[a\s]+$`, "a\u2003", true}, {`^\S+$`, "ab\u200b", true},
		{`^a.b$`, "a\rb", false}, {`^a.b$`, "a\u2028b", false}, {`^a.b$`, "a\nb", false}, {`^a.b$`, "a\u00a0b", true}, {`^.*$`, "a\u2029", false},
		{`^(?s:a.b)$`, "a\rb", true}, {`^a[.]b$`, "axb", false}, {`^a\.b$`, "a.b", true}, {`^\\s$`, `\s`, true},
		{`^\d+$`, "\u0663", false}, {`^\w+$`, "\u00e9", false}, {`^[\d\s]+$`, "1\u00a02", true}, {`^[^\S]$`, "\u00a0", true},
		{`^\u0041$`, "A", true}, {`^\u{1F600}$`, "\U0001f600", true}, {`^\ud83d\ude00$`, "\U0001f600", true}, {`^[\u0600-\u06ff]+$`, "\u0633", true},
		{`^[]\s]$`, "]", true}, {`^[[:alpha:]\s]+$`, "a\u00a0", true}, {`a$`, "a\n", false},
	}
	for _, tt := range tests {
		s := compiled(t, `{"pattern":`+quoted(tt.pattern)+`}`)
		if err := s.Validate(gate.MustDoc(quoted(tt.text))); (err == nil) != tt.want {
			t.Errorf("%s of %+q: %v", tt.pattern, tt.text, err)
		} else if err != nil && !strings.Contains(err.Error(), strings.Trim(quoted(tt.pattern), `"`)) {
			t.Errorf("%s is called another: %v", tt.pattern, err)
		}
	}
}

// JavaScript says what ECMA 262 means, for patterns and texts made of what differs.
func TestPatternsMatchAsInJavaScript(t *testing.T) {
	toolchain.Need(t, "node")
	r := seed.Rand(t)
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	type one struct{ Pattern, Text string }
	var all []one
	for range unraced.Fewer(3000) {
		var p, x strings.Builder
		for range 1 + r.IntN(4) {
			p.WriteString(pick(`\s`, `\S`, `.`, `[\s]`, `[^\s]`, `[^\S]`, `[a\s]`, `[^\w\s]`, `\d`, `\w`, `\W`, `\D`, `a`, `\u2028`, `\ud83d\ude00`, `[\s\d-]`, `\.`, `[.]`, `\b`) + pick("", "", "*", "+", "?", "{1,2}"))
			x.WriteString(pick("a", "1", " ", "\n", "\r", "\v", "\u0085", "\u00a0", "\u180e", "\u2028", "\u2029", "\u200b", "\ufeff", "\u3000", "\U0001f600", ".", "_", "-", "\u0663"))
		}
		all = append(all, one{pick("", "^") + strings.ReplaceAll(strings.ReplaceAll(p.String(), `\b*`, `\b`), `\b+`, `\b`) + pick("", "$"), x.String()})
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", "-e", `const all = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(all.map(({Pattern, Text}) => { try { return new RegExp(Pattern, "u").test(Text) ? 1 : 0 } catch { return -1 } })))`)
	c.Stdin = strings.NewReader(string(in))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(all) {
		t.Fatal(err, len(want))
	}
	compared := 0
	for i, x := range all {
		if want[i] < 0 { // no expression of ECMA 262
			continue
		}
		compared++
		s := compiled(t, `{"pattern":`+quoted(x.Pattern)+`}`)
		if err := s.Validate(gate.MustDoc(quoted(x.Text))); (err == nil) != (want[i] == 1) {
			t.Errorf("%s of %+q: %v, want %d", x.Pattern, x.Text, err, want[i])
		}
	}
	if compared < unraced.Fewer(2000) {
		t.Error(fmt.Sprint("only ", compared, " compared"))
	}
}
