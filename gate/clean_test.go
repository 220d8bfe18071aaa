package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// clean returns what the client gets of a result, with a sanitizer that makes
// "bad" to "[x]".
func clean(t *testing.T, result string) (string, []gate.Finding) {
	t.Helper()
	r := newRig()
	r.tool.Output = nil
	r.sanitize = replace("bad", "[x]")
	answers(result)(r)
	res, err := r.do(t, newCall())
	if err != nil {
		t.Fatal(err)
	}
	return res.Doc.String(), r.done(t).Findings
}

func finding(at string, count int) string {
	return fmt.Sprintf(`{"rule":"word","at":%q,"count":%d,"removed":true}`, at, count)
}

func TestResultsAreSanitized(t *testing.T) {
	meta := func(findings ...string) string {
		return `"_meta":{"io.github.wasmgate/findings":[` + strings.Join(findings, ",") + `]}`
	}
	tests := map[string]struct{ result, want string }{
		"a string": {
			`{"a":"bad bad"}`,
			`{"a":"[x] [x]",` + meta(finding("/a", 2)) + `}`,
		},
		"escaped letters are read": {
			`{"a":"\u0062ad"}`,
			`{"a":"[x]",` + meta(finding("/a", 1)) + `}`,
		},
		"what stands around a change keeps its bytes": {
			"{ \"n\" : 1.0E+2 ,\t\"a\":[\"\\u0041\", \"bad\"] , \"z\":12345678901234567890}",
			"{ \"n\" : 1.0E+2 ,\t\"a\":[\"\\u0041\", \"[x]\"] , \"z\":12345678901234567890," + meta(finding("/a/1", 1)) + "}",
		},
		"a content type that nobody knows": {
			`{"content":[{"type":"hologram","deep":{"er":["bad"]}}]}`,
			`{"content":[{"type":"hologram","deep":{"er":["[x]"]}}],` + meta(finding("/content/0/deep/er/0", 1)) + `}`,
		},
		"names of members, and their place as the client sees it": {
			`{"bad":{"b~/c":"bad"}}`,
			`{"[x]":{"b~/c":"[x]"},` + meta(finding("/[x]", 1), finding("/[x]/b~0~1c", 1)) + `}`,
		},
		"JSON in a text keeps its white space": {
			`{"t":" [ \"bad\" ,\n{\"k\" : 1e2} ]\n"}`,
			`{"t":" [ \"[x]\" ,\n{\"k\" : 1e2} ]\n",` + meta(finding("/t/0", 1)) + `}`,
		},
		"escapes in JSON in a text are read": {
			`{"t":"{\"a\":\"\\u0062ad\"}"}`,
			`{"t":"{\"a\":\"[x]\"}",` + meta(finding("/t/a", 1)) + `}`,
		},
		"what looks like JSON is text": {
			`{"t":"{bad}","u":"[bad"}`,
			`{"t":"{[x]}","u":"[[x]",` + meta(finding("/t", 1), finding("/u", 1)) + `}`,
		},
		"a JSON string in a text is text": {
			`{"t":"\"bad\""}`,
			`{"t":"\"[x]\"",` + meta(finding("/t", 1)) + `}`,
		},
		"_meta keeps what it holds": {
			`{"_meta":{"progressToken":7,"x":"bad"},"a":1}`,
			`{"_meta":{"progressToken":7,"x":"[x]","io.github.wasmgate/findings":[` + finding("/_meta/x", 1) + `]},"a":1}`,
		},
		"_meta that is not an object is replaced": {
			`{"_meta":"bad"}`,
			`{` + meta(finding("/_meta", 1)) + `}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := clean(t, tt.result); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestCleanResultsKeepTheirBytes(t *testing.T) {
	for _, result := range []string{
		`{}`,
		"{ \"a\" : [ 1.0, -0, 1e5, 9007199254740993 ],\r\n\"b\":\"\\u0041\\/\\ud83d\\ude00\" }",
		`{"content":[{"type":"text","text":" {\"k\": \"\\u0041\"}\n"}],"isError":false,"_meta":null}`,
		`{"_meta":{"x":{}},"z":{"":null}}`,
	} {
		if got, findings := clean(t, result); got != result || findings != nil {
			t.Errorf("got %s, %v\nwant %s", got, findings, result)
		}
	}
}

// A finding that is only reported leaves the text as it is.
func TestReportedFindingsChangeNothing(t *testing.T) {
	r := newRig()
	r.sanitize = func(t gate.Text) (string, []gate.Finding) {
		if t.Text == "code" {
			return t.Text, []gate.Finding{{Rule: "markup", Count: 1}}
		}
		return t.Text, nil
	}
	answers(`{"structuredContent":{"a":"code"}}`)(r)
	res, err := r.do(t, newCall())
	want := `{"structuredContent":{"a":"code"},"_meta":{"io.github.wasmgate/findings":[{"rule":"markup","at":"/structuredContent/a","count":1,"removed":false}]}}`
	if err != nil || res.Doc.String() != want {
		t.Errorf("got  %s, %v\nwant %s", res.Doc, err, want)
	}
}

// A text that mirrors the structured content says the same afterwards.
func TestMirrorStaysEqual(t *testing.T) {
	const structured = `{ "list":["bad",{"bad":"\u0062ad","n":1.50}], "mimeType":"text/html","x":"bad" }`
	mirror, err := json.Marshal(structured)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := clean(t, `{"content":[{"type":"text","text":`+string(mirror)+`}],"structuredContent":`+structured+`}`)
	d := gate.MustDoc(got)
	if text, want := d.At("/content/0/text").Text(), d.Get("structuredContent").String(); text != want || strings.Contains(text, "bad") {
		t.Errorf("mirror     %s\nstructured %s", text, want)
	}
}

func TestNestedJSONIsWalkedFourTimes(t *testing.T) {
	nest := func(levels int) string {
		s := `{"a":"bad"}`
		for range levels {
			b, err := json.Marshal(map[string]string{"a": s})
			if err != nil {
				t.Fatal(err)
			}
			s = string(b)
		}
		return s
	}
	for levels := range 7 {
		got, findings := clean(t, nest(levels))
		if strings.Contains(got, "bad") {
			t.Errorf("%d levels: got %s", levels, got)
		}
		want := strings.Repeat("/a", min(levels, 4)+1)
		if len(findings) != 1 || findings[0].At != want {
			t.Errorf("%d levels: findings = %v, want one at %s", levels, findings, want)
		}
	}
}

func TestSanitizerLearnsWhereATextStands(t *testing.T) {
	r := newRig()
	decides(gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Profile{Name: "strict"}}})(r)
	r.tool.Output = nil
	answers(`{"content":[{"text":"1","mimeType":"text/html","o":{"t":"2"},"l":["3"]}]}`)(r)
	seen := map[string]string{}
	r.sanitize = func(x gate.Text) (string, []gate.Finding) {
		if x.Server != "files" || x.Tool != "files__read" || x.Profile != "strict" {
			t.Errorf("text = %+v", x)
		}
		seen[x.Text] = x.MIME
		return x.Text, nil
	}
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"content": "", "text": "text/html", "1": "text/html", "mimeType": "text/html", "text/html": "text/html",
		"o": "text/html", "t": "", "2": "", "l": "text/html", "3": "text/html",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("MIME types (-want +got):\n%s", diff)
	}
}

// A hostile result is made of findings alone, under names as long as they get; what the gate adds
// must stay small in comparison.
func TestFindingsAreBounded(t *testing.T) {
	tests := map[string]string{
		"many":             `{"a":[` + strings.Repeat(`"bad",`, 5000) + `1]}`,
		"under long names": `{"` + strings.Repeat("k", 100_000) + `":[` + strings.Repeat(`"bad",`, 5000) + `1]}`,
		"in nested JSON":   `{"a":"[` + strings.Repeat(`\"bad\",`, 5000) + `1]"}`,
	}
	for name, result := range tests {
		t.Run(name, func(t *testing.T) {
			got, findings := clean(t, result)
			if len(findings) == 0 || len(findings) > 100 {
				t.Errorf("%d findings, want 1 to 100", len(findings))
			}
			if strings.Contains(got, "bad") {
				t.Error("what is beyond the bound was left in place")
			}
			if grown := len(got) - len(result); grown > 64<<10 {
				t.Errorf("the result grew by %d bytes, want at most 64 KiB", grown)
			}
		})
	}
}

// The gate's own words in _meta pass no sanitizer, so nothing of a server's may
// get into them: a finding's place holds the names as the client sees them.
func TestFindingsHoldNoServerText(t *testing.T) {
	got, findings := clean(t, `{"a bad name":{"x":"bad"},"t":"{\"bad\":\"bad\"}"}`)
	if strings.Contains(got, "bad") {
		t.Errorf("got %s", got)
	}
	for _, f := range findings {
		if f.Rule == "word" && gate.MustDoc(got).At(f.At).IsZero() && !strings.HasPrefix(f.At, "/t/") {
			t.Errorf("finding at %s, where the client's result has nothing: %s", f.At, got)
		}
	}
}

// A server's text that claims to be the gate's is not passed on in the gate's name.
func TestServersCannotSpeakForTheGate(t *testing.T) {
	for _, name := range []string{gate.MetaFindings, gate.MetaRefusal} {
		got, _ := clean(t, `{"content":[],"_meta":{"`+name+`":{"code":"refused_authorize"},"other":1}}`)
		meta := gate.MustDoc(got).Get("_meta")
		if strings.Contains(meta.Get(name).String(), "refused_authorize") {
			t.Errorf("the client gets %s", got)
		}
		if meta.Get("other").IsZero() {
			t.Errorf("the rest of _meta is lost: %s", got)
		}
	}
}

func TestWarningsAndFindingsStandTogether(t *testing.T) {
	r := newRig()
	r.tool.OutputWarn = true
	r.at = on("output", doc.Violations{{Message: "wrong"}})
	r.sanitize = replace("bad", "[x]")
	answers(`{"structuredContent":"bad"}`)(r)
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	want := []gate.Finding{
		{Rule: "schema/output", At: "/structuredContent", Count: 1},
		{Rule: "word", At: "/structuredContent", Count: 1, Removed: true},
	}
	if diff := cmp.Diff(want, r.done(t).Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// Sanitizing puts no more into the texts of a result than its bound allows: each text beyond that
// is replaced as a whole.
func TestResultsDoNotGrowBeyondTheirBound(t *testing.T) {
	r := newRig()
	r.tool.Output = nil
	r.sanitize = replace("bad", strings.Repeat("x", 100))
	answers(`{"a":[` + strings.Repeat(`"bad",`, 200) + `1]}`)(r)
	parts := r.parts()
	parts.MaxResult = 2000
	res, err := newGate(t, parts).Do(t.Context(), newCall())
	if err != nil {
		t.Fatal(err)
	}
	got := res.Doc.Get("a").String()
	if grown, cut := strings.Count(got, `"xxx`), strings.Count(got, `"[removed: text that`); grown != 8 || cut != 192 {
		t.Errorf("%d texts are as they became, %d are replaced: %.300s", grown, cut, got)
	}
	if findings := r.done(t).Findings; !slices.ContainsFunc(findings, func(f gate.Finding) bool { return f.Rule == "text/size" && f.Removed }) {
		t.Errorf("no finding says so: %v", findings)
	}
}
