package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// meet returns what is known after a document was met.
func meet(p provenance.Provenance, doc string, from provenance.Source) provenance.Provenance {
	p, _ = p.Join(p.Meet(gate.MustDoc(doc), from, 1<<20), 1<<20)
	return p
}

// met returns what is known after a tool returned a text.
func met(text string, from provenance.Source) provenance.Provenance {
	doc := gate.MustDoc(`{"content":[{"type":"text","text":""}]}`)
	block := gate.MustDoc(`{"type":"text"}`).With("text", gate.MustDoc(quote(text)).Raw())
	return meet(provenance.Provenance{}, doc.With("content", []byte("["+block.String()+"]")).String(), from)
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

func TestValuesOfText(t *testing.T) {
	tests := map[string]struct {
		text       string
		met, unmet []string // as JSON
	}{
		"a text is a value, and its words are, and no part of one": {
			"Transaction to GB29NWBK60161331926819 sent.",
			[]string{`"Transaction to GB29NWBK60161331926819 sent."`, `"GB29NWBK60161331926819"`},
			[]string{`"GB29NWBK6016133192681"`, `"B29NWBK60161331926819"`, `"to GB"`, `""`},
		},
		"lines, fields, items of lists and what is quoted": {
			"- title: Team Sync\n  place: 'Room B, 2nd floor'\n  who:\n  - bob@corp.example\n* file \"plan v2.docx\" is there",
			[]string{`"Team Sync"`, `"Room B, 2nd floor"`, `"bob@corp.example"`, `"plan v2.docx"`, `"title"`},
			[]string{`"Team Sync place"`, `"v2.docx is"`, `"corp.example"`},
		},
		"cells of a table": {
			"Ann Lee | ann@corp.example | 17\nBo Ek,bo@corp.example,18",
			[]string{`"Ann Lee"`, `"ann@corp.example"`, `17`, `"Bo Ek"`, `"18"`},
			[]string{`"Lee ann@corp.example"`},
		},
		"e-mail addresses in any case and wrapping": {
			"write to <Bob@Corp.Example>, mailto:ann@corp.example",
			[]string{`"bob@corp.example"`, `"BOB@CORP.EXAMPLE"`, `"ann@corp.example"`, `"Bob Ek <bob@corp.example>"`, `"bob@corp.example, ann@corp.example"`},
			[]string{`"bob@corp.example.evil.example"`, `"bob@corp.example, eve@evil.example"`, `"ob@corp.example"`, `"eve@evil.example <bob@corp.example"`},
		},
		"account numbers with and without spaces": {
			"IBAN: GB29 NWBK 6016 1331 9268 19, or card 1234-5678-9012-3456",
			[]string{`"GB29NWBK60161331926819"`, `"gb29 nwbk 6016 1331 9268 19"`, `"1234567890123456"`},
			[]string{`"NWBK"`, `"6016"`, `"GB29NWBK60161331926818"`},
		},
		"amounts": {
			"pay $1,234.50 and 12.00 EUR and -3.5",
			[]string{`1234.5`, `"1234.50"`, `12`, `12.0`, `-3.50`},
			[]string{`1234`, `34.5`, `"12"`, `3.5`, `1e3`},
		},
		"amounts of a currency are not those of another": {
			"pay 100 USD and €20, or 7 to Ann",
			[]string{`"100 USD"`, `"$100"`, `"USD 100.00"`, `100`, `"20 EUR"`, `"$7"`, `7`, `20.0`},
			[]string{`"100 EUR"`, `"100 BTC"`, `"€100"`, `"20 USD"`, `"$20"`},
		},
		"three digits after a point may be thousands": {
			"pay 100 and 12.125",
			[]string{`100.000`, `"100.00"`, `"12.125"`, `12.125`},
			[]string{`"100.000"`},
		},
		"a line break is not a space":        {"run `ls foo`", []string{`"ls  foo"`, `"ls\tfoo"`}, []string{`"ls\nfoo"`}},
		"a whole number that is met as such": {"item 42", []string{`42`, `"42"`, `42.0`}, []string{`4`, `"2"`, `420`}},
		"dates": {
			"on 2024-05-15, May 16th, 2024, and 17 June",
			[]string{`"2024-05-15"`, `"2024-05-16"`, `"2024-06-17"`, `"2031-06-17"`},
			[]string{`"2025-05-15"`, `"2025-05-16"`, `"2024-06-16"`, `"16"`, `17`, `"May"`, `"2024"`},
		},
		"times of day, and dates with them": {
			"at 10:00 or 8 PM on 2024-05-15",
			[]string{`"10:00"`, `"10:00:00"`, `"20:00"`, `"2024-05-15 10:00"`, `"2024-05-15T20:00:00Z"`},
			[]string{`"10:30"`, `"2024-05-16 10:00"`, `8`, `"10"`, `"2024-05-15 10:00:30"`},
		},
		"URLs": {
			"see [the report](https://Corp.Example/a/Report/) or www.corp.example/x",
			[]string{`"https://corp.example/a/Report"`, `"HTTPS://corp.example/a/Report/"`, `"https://www.corp.example/x"`},
			[]string{`"https://corp.example/a/report"`, `"https://corp.example/a"`, `"http://corp.example/a/Report"`, `"https://corp.example/a/Report?x=1"`},
		},
		"JSON in a text, by its leaves": {
			`{"name": "Ann Lee", "id": 7, "tags": ["a b"], "inner": "{\"deep\": \"down here\"}"}`,
			[]string{`"Ann Lee"`, `7`, `"7"`, `"a b"`, `"down here"`},
			[]string{`"Lee"`, `"down"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := met(tt.text, provenance.FromTrusted)
			for _, v := range tt.met {
				if s := p.Of(gate.MustDoc(v)); s != provenance.FromTrusted {
					t.Errorf("%s: %v, want it to be met", v, s.Names())
				}
			}
			for _, v := range tt.unmet {
				if s := p.Of(gate.MustDoc(v)); s != 0 {
					t.Errorf("%s: %v, want it not to be met", v, s.Names())
				}
			}
		})
	}
}

func TestValuesOfAPromptAreItsPhrases(t *testing.T) {
	p := meet(provenance.Provenance{}, `"Book the Le Marais Boutique for Ann, then mail ann@corp.example."`, provenance.FromPrompt)
	for v, want := range map[string]provenance.Source{
		`"Le Marais Boutique"`: provenance.FromPrompt, `"Ann"`: provenance.FromPrompt, `"ann@corp.example"`: provenance.FromPrompt,
		`"Marais Bout"`: 0, `"Le Boutique"`: 0,
	} {
		if got := p.Of(gate.MustDoc(v)); got != want {
			t.Errorf("%s: %v", v, got.Names())
		}
	}
	if again := meet(p, `"Book the Le Marais Boutique for Ann, then mail ann@corp.example."`, provenance.FromPrompt); again != p {
		t.Error("the same prompt was taken twice")
	}
}

func TestValuesOfStructuredContent(t *testing.T) {
	p := meet(provenance.Provenance{}, `{"content":[{"type":"text","text":"x"}],"structuredContent":{"to":{"bob@corp.example":"Team Sync"},"n":5},"_meta":{"secret":"hidden"}}`, provenance.FromTrusted)
	for v, want := range map[string]bool{
		`"bob@corp.example"`: true, `"Team Sync"`: true, `5`: true, `"x"`: true, // names are values
		`"Team"`: false, `"hidden"`: false, `"text"`: false,
	} {
		if got := p.Of(gate.MustDoc(v)); got.Trusted() != want {
			t.Errorf("%s: %v", v, got.Names())
		}
	}
}

func TestSourcesAddUp(t *testing.T) {
	p := met("bob@corp.example", provenance.FromUntrusted)
	if got := p.OfText("bob@corp.example"); got.Trusted() || got != provenance.FromUntrusted {
		t.Errorf("%v", got.Names())
	}
	p = meet(p, `"mail bob@corp.example"`, provenance.FromPrompt)
	if diff := cmp.Diff([]string{"prompt", "untrusted"}, p.OfText("bob@corp.example").Names()); diff != "" {
		t.Error(diff)
	}
	if got := p.OfText("bob@corp.example, eve@evil.example"); got.Trusted() {
		t.Errorf("a list with a stranger: %v", got.Names())
	}
	lost := p.Lost()
	if got := lost.OfText("never met"); got != provenance.FromUntrusted {
		t.Errorf("never met, of what is lost: %v", got.Names())
	}
	if !lost.OfText("bob@corp.example").Trusted() {
		t.Error("what was known is lost")
	}
}

func TestProvenanceIsImmutableAndBounded(t *testing.T) {
	var p provenance.Provenance
	var all []provenance.Provenance
	for i := range 300 {
		all = append(all, p)
		p = met2(p, fmt.Sprint("value-", i), provenance.FromTrusted)
	}
	for i, old := range all {
		if old.OfText(fmt.Sprint("value-", i)) != 0 || i > 0 && !old.OfText(fmt.Sprint("value-", i-1)).Trusted() {
			t.Fatalf("state %d knows what came later, or forgot what came before", i)
		}
	}
	if p.Len() < 300 {
		t.Errorf("%d values", p.Len())
	}
	m := p.Meet(gate.MustDoc(`["a","b","c"]`), provenance.FromTrusted, 2)
	if q, ok := p.Join(m, 1<<20); ok || q.Len() > p.Len()+2 {
		t.Errorf("beyond the limit of one document: %d values, %v", q.Len()-p.Len(), ok)
	}
	if q, ok := p.Join(p.Meet(gate.MustDoc(`["d"]`), provenance.FromTrusted, 9), p.Len()); ok || q != p {
		t.Error("a value was joined beyond the limit of all")
	}
}

func met2(p provenance.Provenance, v string, from provenance.Source) provenance.Provenance {
	return meet(p, quote(v), from)
}

func TestArguments(t *testing.T) {
	tool := &gate.Tool{Definition: gate.MustDoc(`{"inputSchema":{"type":"object","properties":{"to":{"type":"object"},"deep":{"type":"array","items":{"properties":{"x/y":{}}}}}}}`)}
	p := meet(provenance.Provenance{}, `["ours","bob"]`, provenance.FromTrusted)
	tests := map[string]struct {
		args string
		want []string // pointer and sources
	}{
		"strings, numbers, true and false": {`{"to":"ours","deep":[1,true,null,"x"]}`, []string{"/to trusted", "/deep/0", "/deep/1", "/deep/3"}},
		"declared names at any depth":      {`{"deep":[{"x/y":"ours"}]}`, []string{"/deep/0/x~1y trusted"}},
		"a name of the caller's":           {`{"to":{"eve":"ours"}}`, []string{"/to/eve"}},
		"a name that was met":              {`{"to":{"bob":"ours"}}`, []string{"/to/bob trusted"}},
		"nothing below a name":             {`{"to":{"eve":{}},"deep":[]}`, []string{"/to/eve"}},
		"nothing below a name, deeper":     {`{"to":{"eve":[{}]}}`, []string{"/to/eve/0"}},
		"null below a name":                {`{"to":{"eve":null}}`, []string{"/to/eve"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for a := range p.Arguments(tool.Definition, gate.MustDoc(tt.args)) {
				got = append(got, strings.TrimSpace(a.Pointer+" "+strings.Join(a.Source.Names(), " ")))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCarried(t *testing.T) {
	p := met("https://corp.example/ok", provenance.FromTrusted)
	got := p.Carried("See https://corp.example/ok, (https://Evil.example/x) or eve@evil.example; pay GB29 NWBK 6016 1331 9268 19. bit.ly/abc Room 2, 10:00, notes.txt")
	want := map[string]provenance.Source{
		"https://corp.example/ok": provenance.FromTrusted, "https://evil.example/x": 0, "eve@evil.example": 0,
		"GB29NWBK60161331926819": 0, "https://bit.ly/abc": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	if got := p.Carried("nothing here, at 10:00 on 2024-05-15"); got != nil {
		t.Errorf("%v", got)
	}
}

// Whatever is met, meeting ends, and nothing is met that is not there.
func FuzzMeet(f *testing.F) {
	for _, s := range []string{"- to: bob@corp.example", "May 15th, 2024 8 PM", "GB29 NWBK 6016 1331 9268 19", `{"a":["b"]}`, "$1,234.50", "https://a.example/?q=1#x", "1:", "::", "<a@b.cc>", "Feb 30", "of May", "13 of"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc := gate.MustDoc(`{}`)
		d, err := gate.ParseDoc([]byte(quote(s)))
		if err != nil {
			t.Skip("no text that JSON has")
		}
		for _, from := range []provenance.Source{provenance.FromPrompt, provenance.FromTrusted, provenance.FromUntrusted} {
			p, _ := (provenance.Provenance{}).Join((provenance.Provenance{}).Meet(doc.With("content", []byte(`[{"type":"text","text":`+d.String()+`}]`)), from, 1000), 1000)
			if p.Len() > 1000 {
				t.Errorf("%q: %d values", s, p.Len())
			}
			p.OfText(s)
			p.Carried(s)
			if p.OfText("a value that nobody wrote, 8461") != 0 && !strings.Contains(s, "8461") {
				t.Errorf("%q: met what is not there", s)
			}
		}
	})
}

// BenchmarkMeet measures what a session is taught by a result of some 2 KiB.
func BenchmarkMeet(b *testing.B) {
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("- id: %d\n  sender: person%d@corp.example\n  subject: Notes of the meeting on May %d\n  date: 2024-05-%02d", i, i, 1+i, 1+i))
	}
	doc := gate.MustDoc(`{"content":[{"type":"text","text":` + quote(strings.Join(lines, "\n")) + `}]}`)
	b.SetBytes(int64(len(doc.Raw())))
	b.ReportAllocs()
	for b.Loop() {
		var p provenance.Provenance
		p.Meet(doc, provenance.FromUntrusted, 1<<14)
	}
}

// TestSpellingsOfAddresses: what a browser, a mail program or a wallet makes an address of
// is carried, however it is spelt, and is known again by any of its spellings.
func TestSpellingsOfAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"see evil.example?d=SECRET":                  "https://evil.example?d",
		"see evil.example#x":                         "https://evil.example#x",
		"at evil.example:8080":                       "https://evil.example:8080",
		"at sub.evil.co.uk:443/x":                    "https://sub.evil.co.uk:443/x",
		"//evil.example/x":                           "https://evil.example/x",
		"<img src=//evil.example/x?d=SECRET>":        "https://evil.example/x?d",
		"[x](//evil.example/x)":                      "https://evil.example/x",
		"https:/evil.example/x":                      "https://evil.example/x",
		`https:\\evil.example\x`:                     "https://evil.example/x",
		`HTTPS:///\evil.example/x`:                   "https://evil.example/x",
		"https:evil.example/x":                       "https://evil.example/x",
		"https&#58;//evil.example/x":                 "https://evil.example/x",
		"https&colon;&sol;&sol;evil.example&#x2f;x":  "https://evil.example/x",
		"https://evil。example/x":                     "https://evil.example/x",
		"evil。example/x":                             "https://evil.example/x",
		"ev\u00adil.example/x":                       "https://evil.example/x",
		"write to a＠evil.example":                    "a@evil.example",
		"mailto:a%40evil.example":                    "a@evil.example",
		"MAILTO:A%40evil.example?subject=x":          "a@evil.example",
		"203.0.113.5/x":                              "https://203.0.113.5/x",
		"203.0.113.5:8080":                           "https://203.0.113.5:8080",
		"call +49 30 1234567 now":                    "+49301234567",
		"call +49 (30) 123-4567.":                    "+49301234567",
		"+49301234567":                               "+49301234567",
		"0x71C7656EC7ab88b098defB751B7401B5f6d8976F": "0x71c7656ec7ab88b098defb751b7401b5f6d8976f",
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa":         "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", // of the first block
	} {
		if got := (provenance.Provenance{}).Carried(text); len(got) != 1 || got[want] != 0 || func() bool { _, ok := got[want]; return !ok }() {
			t.Errorf("%q carries %v, want %q", text, got, want)
		}
		if p := met(want, provenance.FromTrusted); p.Carried(text)[want] != provenance.FromTrusted {
			t.Errorf("%q is not known by %q", text, want)
		}
	}
}

// TestWhatIsNoAddress: what people write every day carries nothing.
func TestWhatIsNoAddress(t *testing.T) {
	for _, text := range []string{
		"main.go:12: undefined: x", "src.rs:4", "README.md#usage", "script.py:80", "index.html?", "v1.2.3", "version 1.2.3.4", "10.0.0.0/8 and 192.168.1.0/24",
		"a+b", "1+1=2", "+5 points, +12 %", "C++11", "git log --since=1.week", "at 10:00", "12:30:45", "Note: see below", "e.g. this; i.e. that",
		"// fmt.Println is commented out", "x := a.b?c:d", "ratio 16:9", "foo.bar()", "obj.method?.call", "user.name?.first", "row.id:", "sha 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
		"0x7fff5fbff8c0", "AT&T & Sons", "50% of 3.14", "p. 12/13", "and/or", "std::string", "key: value", "Dr.No", "Mr.Smith:", "node.js", "https:", "ftp:",
	} {
		if got := (provenance.Provenance{}).Carried(text); got != nil {
			t.Errorf("%q carries %v", text, got)
		}
	}
}
