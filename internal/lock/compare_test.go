package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

func TestCompareShowsFields(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for name, tt := range map[string]struct {
		old, now string
		want     []lock.Change
	}{
		"a word":                     {`{"description":"reads a file"}`, `{"description":"reads all files"}`, []lock.Change{{"/description", `"reads a file"`, `"reads all files"`}}},
		"a hidden character":         {`{"title":"ab"}`, `{"title":"a\u200bb"}`, []lock.Change{{"/title", `"ab"`, `"a<U+200B>b"`}}},
		"a tag":                      {`{"title":"ab"}`, `{"title":"ab\udb40\udc41"}`, []lock.Change{{"/title", `"ab"`, `"ab<U+E0041>"`}}},
		"a letter's other form":      {`{"title":"caf\u00e9"}`, `{"title":"cafe\u0301"}`, []lock.Change{{"/title", `"caf<U+00E9>"`, `"cafe<U+0301>"`}}},
		"a letter of another script": {`{"title":"pay"}`, `{"title":"p\u0430y"}`, []lock.Change{{"/title", `"pay"`, `"p<U+0430>y"`}}},
		"a terminal's escape":        {`{}`, `{"title":"\u001b[2J"}`, []lock.Change{{"/title", "", `"<U+001B>[2J"`}}},
		"a hidden name":              {`{"_meta":{}}`, `{"_meta":{"a\u202e/b":1}}`, []lock.Change{{"/_meta/a<U+202E>~1b", "", "1"}}},
		"a line break":               {`{"title":"a"}`, `{"title":"a\nb"}`, []lock.Change{{"/title", `"a"`, `"a<U+000A>b"`}}},
		"a member that went":         {`{"_meta":{"a":1,"b":2}}`, `{"_meta":{"b":2}}`, []lock.Change{{"/_meta/a", "1", ""}}},
		"an element":                 {`{"a":[1,{"b":2}]}`, `{"a":[1,{"b":3}]}`, []lock.Change{{"/a/1/b", "2", "3"}}},
		"elements in number":         {`{"a":[1]}`, `{"a":[1,2]}`, []lock.Change{{"/a", "[1]", "[1,2]"}}},
		"another type":               {`{"a":"1"}`, `{"a":1}`, []lock.Change{{"/a", `"1"`, "1"}}},
		"order of keys":              {`{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"d":2,"c":1},"a":1}`, nil},
		"the middle of much": {`{"d":"` + long + `x` + long + `"}`, `{"d":"` + long + `y` + long + `"}`,
			[]lock.Change{{"/d", "…" + long[len(long)-60:] + "x" + long[:60] + "…", "…" + long[len(long)-60:] + "y" + long[:60] + "…"}}},
		"all of a text": {`"be kind"`, `"be cruel"`, []lock.Change{{"", `"be kind"`, `"be cruel"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := lock.Compare(lock.Tool, gate.MustDoc(tt.old), gate.MustDoc(tt.now))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestCompareOfWhatIsNewShowsAllOfIt(t *testing.T) {
	changes, means := lock.Compare(lock.Tool, gate.Doc{}, gate.MustDoc(`{"name":"a","description":"x"}`))
	if len(changes) != 2 || changes[0] != (lock.Change{"/description", "", `"x"`}) || means != nil {
		t.Errorf("changes = %q, means %q", changes, means)
	}
}

// What is put in a long text is not pushed out of view by what stands around it,
// and what is too long to show says so.
func TestCompareIsBounded(t *testing.T) {
	changes, _ := lock.Compare(lock.Tool, gate.MustDoc(`{"d":"a"}`), gate.MustDoc(`{"d":"a`+strings.Repeat(" ", 100_000)+`evil"}`))
	if len(changes) != 1 || len(changes[0].New) > 5000 || !strings.Contains(changes[0].New, "bytes more") {
		t.Errorf("%d bytes are shown", len(changes[0].New))
	}
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`"k%d":1`, i))
	}
	changes, _ = lock.Compare(lock.Tool, gate.MustDoc(`{}`), gate.MustDoc(`{`+strings.Join(many, ",")+`}`))
	if len(changes) > 501 || !strings.Contains(changes[len(changes)-1].New, "4500 more") {
		t.Errorf("%d changes, the last %q", len(changes), changes[len(changes)-1])
	}
}

func TestMeaning(t *testing.T) {
	object := func(rest string) string { return `{"type":"object"` + rest + `}` }
	props := func(p, rest string) string { return object(`,"properties":{` + p + `}` + rest) }
	for name, tt := range map[string]struct{ old, now, want string }{
		"a property more":             {props("", ""), props(`"n":{"type":"integer"}`, ""), "n, integer, can now be passed (optional)"},
		"a required one":              {props("", ""), props(`"n":{}`, `,"required":["n"]`), "n, of any type, can now be passed (required)"},
		"a property less":             {props(`"n":{}`, ""), props("", ""), "n can still be passed, and is not checked any more"},
		"one less in a closed object": {props(`"n":{}`, `,"additionalProperties":false`), props("", `,"additionalProperties":false`), "n must no longer be passed"},
		"required":                    {props(`"n":{}`, ""), props(`"n":{}`, `,"required":["n"]`), "n must now be passed"},
		"optional":                    {props(`"n":{}`, `,"required":["n"]`), props(`"n":{}`, ""), "n can now be left out"},
		"required and not described":  {props("", ""), props("", `,"required":["n"]`), "n, which is not described, must now be passed"},
		"a wider type":                {props(`"n":{"type":"string"}`, ""), props(`"n":{"type":["string","null"]}`, ""), "n: null can now be passed"},
		"a narrower type":             {props(`"n":{"type":["string","null"]}`, ""), props(`"n":{"type":"string"}`, ""), "n: null must no longer be passed"},
		"another type":                {props(`"n":{"type":"string"}`, ""), props(`"n":{"type":"boolean"}`, ""), "n: boolean can now be passed|n: string must no longer be passed"},
		"integers are numbers":        {props(`"n":{"type":"integer"}`, ""), props(`"n":{"type":"number"}`, ""), "n: number can now be passed"},
		"any type":                    {props(`"n":{"type":"string"}`, ""), props(`"n":{}`, ""), "n: any type can now be passed; before, only string"},
		"no longer any":               {props(`"n":{}`, ""), props(`"n":{"type":"string"}`, ""), "n: only string can now be passed; before, any type"},
		"an enum that grew":           {props(`"n":{"enum":["a"]}`, ""), props(`"n":{"enum":["a","delete"]}`, ""), `n: "delete" can now be passed`},
		"an enum that shrank":         {props(`"n":{"enum":["a","b"]}`, ""), props(`"n":{"enum":["b"]}`, ""), `n: "a" must no longer be passed`},
		"an enum that went":           {props(`"n":{"enum":["a"]}`, ""), props(`"n":{}`, ""), `n: any value of the type can now be passed; before, only "a"`},
		"a bound":                     {props(`"n":{"maximum":10}`, ""), props(`"n":{"maximum":100}`, ""), "n: the largest value (maximum) was 10, and is now 100"},
		"a bound that went":           {props(`"n":{"minLength":1}`, ""), props(`"n":{}`, ""), "n: the smallest length (minLength) was 1, and is now unbounded"},
		"other members":               {props("", `,"additionalProperties":false`), props("", ""), "members that are not described can now be passed"},
		"no others":                   {props("", ""), props("", `,"additionalProperties":false`), "members that are not described must no longer be passed"},
		"saying what holds anyway":    {props("", ""), props("", `,"additionalProperties":true`), ""},
		"a default":                   {props(`"n":{"default":1}`, ""), props(`"n":{"default":2}`, ""), "n: default was 1, and is now 2"},
		"deeper":                      {props(`"a":{"properties":{"b":{"type":"string"}}}`, ""), props(`"a":{"properties":{"b":{"type":"string"},"c":{"type":"string"}}}`, ""), "a.c, string, can now be passed (optional)"},
		"in items":                    {props(`"a":{"items":{"enum":[1]}}`, ""), props(`"a":{"items":{"enum":[1,2]}}`, ""), "a[]: 2 can now be passed"},
		"what there are no words for": {props("", `,"anyOf":[{}]`), props("", `,"anyOf":[{},{}]`), "arguments: anyOf has changed, which can widen or narrow what is accepted; look at the field"},
		"a description alone":         {props(`"n":{"description":"a"}`, ""), props(`"n":{"description":"b"}`, ""), ""},
		"a hidden name":               {props("", ""), props(`"a\u200b":{"type":"string"}`, ""), "a<U+200B>, string, can now be passed (optional)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, means := lock.Compare(lock.Tool, gate.MustDoc(`{"inputSchema":`+tt.old+`}`), gate.MustDoc(`{"inputSchema":`+tt.now+`}`))
			if got := strings.Join(means, "|"); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	_, means := lock.Compare(lock.Tool, gate.MustDoc(`{"outputSchema":`+props("", "")+`}`), gate.MustDoc(`{"outputSchema":`+props(`"n":{"type":"string"}`, "")+`}`))
	if got := strings.Join(means, "|"); got != "n, string, can now be returned (optional)" {
		t.Errorf("of results: %q", got)
	}
	_, means = lock.Compare(lock.Tool, gate.MustDoc(`{"outputSchema":{}}`), gate.MustDoc(`{}`))
	if got := strings.Join(means, "|"); got != "results no longer have a schema" {
		t.Errorf("without a schema: %q", got)
	}
}

// Schemas as deep as documents can be end.
func TestMeaningOfDeepSchemas(t *testing.T) {
	deep := func(kind string) gate.Doc {
		return gate.MustDoc(`{"inputSchema":` + strings.Repeat(`{"items":`, 200) + `{"type":"` + kind + `"}` + strings.Repeat("}", 200) + `}`)
	}
	if changes, _ := lock.Compare(lock.Tool, deep("string"), deep("null")); len(changes) != 1 {
		t.Errorf("changes = %v", changes)
	}
}

func TestDifferences(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.connected("s", named("a", "reads"), named("gone", "x"))
	r.connected("s", named("a", "reads more"), named("new", "x"))
	all := r.differ(t)
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprintf("%s %s %t %d", d.Label, d.State, d.Known, len(d.Changes)))
	}
	want(t, "differences", got, "s__a quarantined changed true 1", "s__gone gone true 0", "s__new quarantined new true 3")

	// Of a lockfile from another machine only the digests are known, until what they
	// stand for was seen.
	other := newRig(t, options.PinTrustFirst)
	approved := named("a", "reads")
	if _, err := lock.Approve(other.options.File, []lock.Pin{{Key: lock.Key{Server: "s", Kind: lock.Tool, Name: "a"}, Digest: approved.Doc.Digest()}}); err != nil {
		t.Fatal(err)
	}
	other = other.again(t)
	other.connected("s", named("a", "reads more"))
	if all := other.differ(t); len(all) != 1 || all[0].Known || len(all[0].Changes) != 3 {
		t.Errorf("differences = %+v", all)
	}
	other.connected("s", approved)
	other.connected("s", named("a", "reads more"))
	if all := other.differ(t); len(all) != 1 || !all[0].Known || len(all[0].Changes) != 1 {
		t.Errorf("differences = %+v", all)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", "naïve 日本語 שלום 👍": "naïve 日本語 שלום 👍",
		"a\tb": "a<U+0009>b", "\u00a0": "<U+00A0>", "\u3164": "<U+3164>", "\u2800": "<U+2800>", "\ufe0f": "<U+FE0F>", "\u061c": "<U+061C>", "\u2028": "<U+2028>",
	} {
		if got := lock.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}
