package doc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// accepted are documents that are kept as they are.
func accepted() map[string]string {
	return map[string]string{
		"words":                          `[true,false,null]`,
		"a string alone":                 `"a"`,
		"white space all around":         " \t\r\n{ \"a\" :\t[ ] ,\r\"b\" : { } } \n",
		"numbers":                        `[0,-0,1,-1,0.0,1.50,1e5,1E+5,1e-5,-0.0e-0]`,
		"an integer beyond 2^53":         `9007199254740993`,
		"a number beyond float64":        `[1e400,-1e-400,123456789012345678901234567890]`,
		"a number of 1,024 bytes":        strings.Repeat("1", 1024),
		"exponents of 1,000":             `[1e1000,1e-1000,1e+0001000]`,
		"escapes":                        `"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC"`,
		"a surrogate pair":               `"\ud83d\ude00"`,
		"a pair after a backslash":       `"\\\ud83d\ude00"`,
		"an escaped backslash and a u":   `"\\ud800"`,
		"escaped NUL":                    `"\u0000"`,
		"DEL and C1, which JSON allows":  "\"\x7f\u0080\"",
		"text of all planes":             "\"é€\U0001F600\uFFFD\u2028\uFFFF\"",
		"names that differ in case":      `{"a":1,"A":2}`,
		"names that differ in form":      "{\"\u00e9\":1,\"e\u0301\":2}",
		"one name in two objects":        `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`,
		"an empty name":                  `{"":1}`,
		"many names":                     manyNames(300, ""),
		"256 arrays":                     nested("[", 256, "", "]"),
		"256 arrays around a number":     nested("[", 256, "1", "]"),
		"256 objects":                    nested(`{"a":`, 255, "{}", "}"),
		"a byte order mark in a string":  "\"\ufeff\"",
		"white space within a name":      `{" ":1,"  ":2}`,
		"arrays side by side, no deeper": "[" + strings.Repeat("[],", 1000) + "[]]",
	}
}

// rejected are bytes that are no acceptable document, with a word of the
// reason.
func rejected() map[string][2]string {
	all := noJSON()
	maps.Copy(all, noText())
	maps.Copy(all, tooLoose())
	return all
}

// noJSON breaks the grammar of RFC 8259.
func noJSON() map[string][2]string {
	return map[string][2]string{
		"nothing":                        {"", "ends too early"},
		"white space alone":              {" \n", "ends too early"},
		"a byte order mark":              {"\ufeff{}", "cannot begin"},
		"a second document":              {"{} {}", "more text after"},
		"a trailing byte":                {"{}\x00", "more text after"},
		"a leading NUL":                  {"\x00{}", "cannot begin"},
		"a vertical tab as white space":  {"[\v1]", "cannot begin"},
		"a no-break space":               {"[\u00a01]", "cannot begin"},
		"a form feed behind":             {"[]\f", "more text after"},
		"a comment":                      {"[1]//", "more text after"},
		"a comma too many in an array":   {"[1,]", "cannot begin"},
		"a comma alone":                  {"[,]", "cannot begin"},
		"no comma in an array":           {"[1 2]", "expected"},
		"a comma too many in an object":  {`{"a":1,}`, "name"},
		"a comma alone in an object":     {`{,}`, "name"},
		"a name without quotes":          {`{a:1}`, "name"},
		"a name in single quotes":        {`{'a':1}`, "name"},
		"a number as a name":             {`{1:1}`, "name"},
		"no colon":                       {`{"a" 1}`, "expected"},
		"no value":                       {`{"a":}`, "cannot begin"},
		"no comma in an object":          {`{"a":1 "b":2}`, "expected"},
		"a bracket of the wrong kind":    {`[1}`, "expected"},
		"a brace of the wrong kind":      {`{"a":1]`, "expected"},
		"an array without its end":       {`[1`, "ends too early"},
		"an object without its end":      {`{"a":1`, "ends too early"},
		"a string without its end":       {`"a`, "ends too early"},
		"an escape without its end":      {`"\`, "ends too early"},
		"a brace alone":                  {`{`, ""},
		"True":                           {`True`, "cannot begin"},
		"a word cut short":               {`tru`, "unknown word"},
		"a word with more":               {`nullx`, "more text after"},
		"NaN":                            {`NaN`, "cannot begin"},
		"Infinity":                       {`Infinity`, "cannot begin"},
		"minus Infinity":                 {`-Infinity`, "digits"},
		"undefined":                      {`undefined`, "cannot begin"},
		"a leading zero":                 {`01`, "leading zero"},
		"a leading zero after a minus":   {`-01`, "leading zero"},
		"two zeros":                      {`00`, "leading zero"},
		"a leading plus":                 {`+1`, "cannot begin"},
		"a minus alone":                  {`-`, "digits"},
		"a leading point":                {`.5`, "cannot begin"},
		"a trailing point":               {`5.`, "digits"},
		"a point before an exponent":     {`5.e1`, "digits"},
		"an exponent without digits":     {`1e`, "digits"},
		"an exponent with a sign alone":  {`1e+`, "digits"},
		"a hexadecimal number":           {`0x10`, "more text after"},
		"digits of another script":       {"\u0661", "cannot begin"},
		"a number of 1,025 bytes":        {strings.Repeat("1", 1025), "1024 bytes"},
		"an exponent of 1,001":           {`1e1001`, "exponent"},
		"an exponent of -1,001":          {`1e-1001`, "exponent"},
		"an exponent beyond any integer": {`1e99999999999999999999999`, "exponent"},
	}
}

// noText has strings that are no text of Unicode, or not written as JSON wants.
func noText() map[string][2]string {
	return map[string][2]string{
		"a newline in a string":            {"\"a\nb\"", "control character"},
		"an escape character in a string":  {"\"\x1b[31m\"", "control character"},
		"a NUL in a string":                {"\"\x00\"", "control character"},
		"a control character in a name":    {"{\"\t\":1}", "control character"},
		"an unknown escape":                {`"\x41"`, "unknown escape"},
		"an escaped single quote":          {`"\'"`, "unknown escape"},
		"a capital U":                      {`"\U0041"`, "unknown escape"},
		"too few hexadecimal digits":       {`"\u12"`, "hexadecimal"},
		"no hexadecimal digits":            {`"\u00g0"`, "hexadecimal"},
		"a u at the end":                   {`"\u`, "hexadecimal"},
		"a high surrogate alone":           {`"\ud83d"`, "surrogate"},
		"a low surrogate alone":            {`"\ude00"`, "surrogate"},
		"surrogates in the wrong order":    {`"\ude00\ud83d"`, "surrogate"},
		"two high surrogates":              {`"\ud83d\ud83d\ude00"`, "surrogate"},
		"a high surrogate before a letter": {`"\ud83d\u0041"`, "surrogate"},
		"a surrogate in a name":            {`{"\ud83d":1}`, "surrogate"},
		"a byte that is not UTF-8":         {"\"\xff\"", "UTF-8"},
		"UTF-8 cut short":                  {"\"\xe2\x82\"", "UTF-8"},
		"an overlong form":                 {"\"\xc0\xaf\"", "UTF-8"},
		"a surrogate in UTF-8":             {"\"\xed\xa0\x80\"", "UTF-8"},
		"beyond U+10FFFF":                  {"\"\xf4\x90\x80\x80\"", "UTF-8"},
		"no UTF-8 in a name":               {"{\"\xff\":1}", "UTF-8"},
		"UTF-16":                           {"\xff\xfe{\x00}\x00", "cannot begin"},
	}
}

// tooLoose is valid JSON, or begins so, but for the rules that make all readers
// agree.
func tooLoose() map[string][2]string {
	return map[string][2]string{
		"a name twice":                     {`{"a":1,"a":1}`, "same name"},
		"a name twice, once escaped":       {`{"a":1,"\u0061":2}`, "same name"},
		"a name twice, both escaped":       {`{"\u0061b":1,"a\u0062":2}`, "same name"},
		"a pair and its character":         {"{\"\\ud83d\\ude00\":1,\"\U0001F600\":2}", "same name"},
		"a slash twice":                    {`{"/":1,"\/":2}`, "same name"},
		"an empty name twice":              {`{"":1,"":2}`, "same name"},
		"a name twice, deep":               {`[{"x":{"a":1,"b":{},"a":1}}]`, "same name"},
		"the eighth name again":            {manyNames(8, `,"k7":1`), "same name"},
		"the first of nine names again":    {manyNames(9, `,"k0":1`), "same name"},
		"the ninth of many again, escaped": {manyNames(300, `,"\u006b8":1`), "same name"},
		"the last of many again":           {manyNames(300, `,"k299":1`), "same name"},
		"257 arrays":                       {nested("[", 257, "", "]"), "levels deep"},
		"257 arrays around a number":       {nested("[", 257, "1", "]"), "levels deep"},
		"257 objects":                      {nested(`{"a":`, 256, "{}", "}"), "levels deep"},
		"257 of both":                      {nested(`[{"a":`, 128, "[1]", "}]"), "levels deep"},
		"a million arrays":                 {strings.Repeat("[", 1_000_000), "levels deep"},
		"a million objects":                {strings.Repeat(`{"":`, 1_000_000), "levels deep"},
		"20,000 names, the last one twice": {manyNames(20_000, `,"k19999":1`), "same name"},
	}
}

func nested(open string, n int, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// manyNames returns an object of n members k0, k1, ..., with more at its end.
func manyNames(n int, more string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	return "{" + b.String()[1:] + more + "}"
}

func TestParseAccepts(t *testing.T) {
	for name, s := range accepted() {
		t.Run(name, func(t *testing.T) {
			d, err := doc.Parse([]byte(s))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := d.String(), strings.Trim(s, " \t\r\n"); got != want {
				t.Errorf("text = %.200q, want %.200q", got, want)
			}
			checkAgreement(t, []byte(s), d)
		})
	}
}

func TestParseRejects(t *testing.T) {
	for name, tt := range rejected() {
		t.Run(name, func(t *testing.T) {
			d, err := doc.Parse([]byte(tt[0]))
			if err == nil || !d.IsZero() {
				t.Fatalf("Parse = %.200s, %v; want an error", d, err)
			}
			if !strings.Contains(err.Error(), tt[1]) {
				t.Errorf("err = %v, want %q in it", err, tt[1])
			}
			if e, ok := errors.AsType[*doc.SyntaxError](err); !ok || e.Offset < 0 || e.Offset > len(tt[0]) {
				t.Errorf("err = %#v, want a SyntaxError within the document", err)
			}
			if got, want := errors.Is(err, doc.ErrSurrogate), tt[1] == "surrogate"; got != want {
				t.Errorf("ErrSurrogate: %t, want %t", got, want)
			}
		})
	}
}

// An error is shown in terminals and logs, and holds no byte that acts there.
func TestSyntaxErrorsAreOneVisibleLine(t *testing.T) {
	for c := range 256 {
		for _, s := range []string{"\"\\%c\"", "%c", "\"%c\"", "[1%c]", `{"a"%c`, "1%c"} {
			in := bytes.ReplaceAll([]byte(s), []byte("%c"), []byte{byte(c)})
			_, err := doc.Parse(in)
			if err == nil {
				continue
			}
			for _, r := range err.Error() {
				if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
					t.Fatalf("%q: error %q holds %q", in, err, r)
				}
			}
		}
	}
}

func TestSyntaxErrorOffsets(t *testing.T) {
	for in, want := range map[string]int{
		`{"a":1,"a":2}`: 7, `[1,2,x]`: 5, `{} x`: 3, `"ab` + "\x01" + `"`: 3, `"ab\ud800"`: 3, `[`: 1,
	} {
		_, err := doc.Parse([]byte(in))
		if e, ok := errors.AsType[*doc.SyntaxError](err); !ok || e.Offset != want {
			t.Errorf("%q: err = %v, want offset %d", in, err, want)
		}
	}
}

func TestMustDocPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Must took what Parse does not")
		}
	}()
	doc.Must("{")
}

// checkAgreement holds an accepted document against encoding/json.
func checkAgreement(t *testing.T, b []byte, d doc.Doc) {
	t.Helper()
	if !json.Valid(b) || !utf8.Valid(b) {
		t.Fatalf("accepted %.200q, which encoding/json does not", b)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("accepted %.200q: %v", b, err)
	}
	if got := d.Value(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%.200q: value differs (-want +got):\n%s", b, cmp.Diff(want, got))
	}
}

func seedDocs(f *testing.F) {
	for _, s := range accepted() {
		if len(s) < 4096 {
			f.Add([]byte(s))
		}
	}
	for _, s := range rejected() {
		if len(s[0]) < 4096 {
			f.Add([]byte(s[0]))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read","arguments":{"path":"/srv/\u00e9.txt","n":[1.0,2e3]}}}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"{\"a\": [1, \"\\u0041\"]}","mimeType":"application/json"}],"structuredContent":{"a":[1,"A"]},"isError":false}`))
}

// FuzzParse compares the parser with encoding/json in both directions: what
// it accepts means the same there, and what it rejects breaks one of its
// documented rules.
func FuzzParse(f *testing.F) {
	seedDocs(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.Clone(b)
		d, err := doc.Parse(in)
		if !bytes.Equal(in, b) {
			t.Fatal("Parse changed its input")
		}
		if err == nil {
			checkAgreement(t, b, d)
			return
		}
		if json.Valid(b) && !stricter(b) {
			t.Fatalf("rejected %q: %v", b, err)
		}
	})
}

// stricter reports whether valid JSON breaks one of the rules that Parse
// adds. It is written as differently from it as can be: over the tokens of
// encoding/json.
func stricter(b []byte) bool {
	if !utf8.Valid(b) || loneSurrogate(b) {
		return true
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	type level struct {
		names map[string]bool
		key   bool
	}
	var stack []*level
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return false
		}
		if err != nil {
			return true // encoding/json's own limit of depth
		}
		top := &level{}
		if len(stack) > 0 {
			top = stack[len(stack)-1]
		}
		if name, ok := tok.(string); ok && top.key {
			if top.names[name] {
				return true
			}
			top.names[name], top.key = true, false
			continue
		}
		top.key = top.names != nil
		switch tok := tok.(type) {
		case json.Delim:
			switch tok {
			case '{':
				stack = append(stack, &level{names: map[string]bool{}, key: true})
			case '[':
				stack = append(stack, &level{})
			default:
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 256 {
				return true
			}
		case json.Number:
			if len(tok) > 1024 || exponent(string(tok)) > 1000 {
				return true
			}
		}
	}
}

func exponent(number string) int {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	digits := strings.TrimLeft(number[i+1:], "+-0")
	if len(digits) > 4 {
		return 1 << 20
	}
	var n int
	fmt.Sscan(digits, &n)
	return n
}

// loneSurrogate reports whether valid JSON has an escape that is half of a
// pair: encoding/json then decodes more replacement characters than are written.
func loneSurrogate(b []byte) bool {
	written := bytes.Count(b, []byte("\uFFFD"))
	s := strings.ToLower(strings.ReplaceAll(string(b), `\\`, ""))
	written += strings.Count(s, `\ufffd`)
	decoded := 0
	dec := json.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := dec.Token()
		if err != nil {
			return decoded > written
		}
		if s, ok := tok.(string); ok {
			decoded += strings.Count(s, "\uFFFD")
		}
	}
}

func TestReplaceSurrogates(t *testing.T) {
	tests := map[string]struct {
		in, want string
		n        int
	}{
		"nothing to do":               {`"a\n\u0041\ud83d\ude00"`, `"a\n\u0041\ud83d\ude00"`, 0},
		"a high half":                 {`"\ud83d"`, `"\ufffd"`, 1},
		"a low half":                  {`"\uDE00x"`, `"\ufffdx"`, 1},
		"both in the wrong order":     {`"\ude00\ud83d"`, `"\ufffd\ufffd"`, 2},
		"a half before a pair":        {`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`, 1},
		"a half behind a pair":        {`"\ud83d\ude00\ude00"`, `"\ud83d\ude00\ufffd"`, 1},
		"a half before a letter":      {`"\ud83d\u0041"`, `"\ufffd\u0041"`, 1},
		"a half before an escape":     {`"\ud83d\n"`, `"\ufffd\n"`, 1},
		"a half before a backslash":   {`"\ud83d\\ude00"`, `"\ufffd\\ude00"`, 1},
		"an escaped backslash":        {`"\\ud83d"`, `"\\ud83d"`, 0},
		"two escaped backslashes":     {`"\\\\\ud83d"`, `"\\\\\ufffd"`, 1},
		"in a name":                   {`{"\ud83d":1}`, `{"\ufffd":1}`, 1},
		"cut off":                     {`"\ud83`, `"\ud83`, 0},
		"cut off in the second half":  {`"\ud83d\ud`, `"\ufffd\ud`, 1},
		"no hexadecimal digits":       {`"\uZZZZ\ud83d"`, `"\uZZZZ\ufffd"`, 1},
		"a backslash at the very end": {`\`, `\`, 0},
		"nothing":                     {``, ``, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := []byte(tt.in)
			if n := doc.ReplaceSurrogates(b); n != tt.n || string(b) != tt.want {
				t.Errorf("got %s, %d; want %s, %d", b, n, tt.want, tt.n)
			}
		})
	}
}

func FuzzReplaceSurrogates(f *testing.F) {
	seedDocs(f)
	f.Add([]byte(`{"a\ud83d":"\\\ud83d\ude00\ude00\n\ud83d\ud83d"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, before := doc.Parse(bytes.Clone(b))
		out := bytes.Clone(b)
		n := doc.ReplaceSurrogates(out)
		if len(out) != len(b) || (n == 0) != bytes.Equal(out, b) {
			t.Fatalf("%q became %q with %d replaced", b, out, n)
		}
		if again := doc.ReplaceSurrogates(bytes.Clone(out)); again != 0 {
			t.Fatalf("%q: %d left in %q", b, again, out)
		}
		d, after := doc.Parse(out)
		if errors.Is(after, doc.ErrSurrogate) {
			t.Fatalf("%q became %q: %v", b, out, after)
		}
		if before == nil && n > 0 {
			t.Fatalf("changed %q, which was fine", b)
		}
		if !errors.Is(before, doc.ErrSurrogate) || after != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(b)) // which reads halves as U+FFFD
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(d.Value(), want) {
			t.Fatalf("%q became %q: value %v, want %v (%v)", b, out, d.Value(), want, err)
		}
	})
}
