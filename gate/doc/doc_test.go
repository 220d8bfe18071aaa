package doc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate/doc"
)

func TestZeroDocIsAbsent(t *testing.T) {
	var d doc.Doc
	if !d.IsZero() || d.Kind() != doc.Absent || d.Raw() != nil || d.String() != "" || d.Value() != nil || d.Digest() != "" || d.Canonical() != nil {
		t.Errorf("the zero document has %v %q %v %q", d.Kind(), d.Raw(), d.Value(), d.Digest())
	}
	if b, err := json.Marshal(d); string(b) != "null" || err != nil {
		t.Errorf("MarshalJSON = %s, %v", b, err)
	}
	if !d.Get("a").IsZero() || !d.At("/a").IsZero() || !d.At("").IsZero() || d.Text() != "" || d.True() {
		t.Error("an absent document has parts")
	}
	if out, err := doc.MapStrings(d, nil); err != nil || !out.IsZero() {
		t.Errorf("MapStrings = %v, %v", out, err)
	}
	if null := doc.Must("null"); null.IsZero() || null.Kind() != doc.Null || null.Digest() == "" {
		t.Error("null is absent")
	}
}

func TestDocKinds(t *testing.T) {
	for s, want := range map[string]doc.Kind{
		"null": doc.Null, "true": doc.Bool, "false": doc.Bool, "-1e5": doc.Number, `"a"`: doc.String, "[]": doc.Array, "{}": doc.Object,
	} {
		d := doc.Must(" " + s + " ")
		if d.Kind() != want || d.True() != (s == "true") || (d.Text() == "a") != (want == doc.String) {
			t.Errorf("%s: kind %d, true %t, text %q", s, d.Kind(), d.True(), d.Text())
		}
		if b, err := json.Marshal(d); string(b) != s || err != nil {
			t.Errorf("%s: MarshalJSON = %s, %v", s, b, err)
		}
	}
}

func TestDocAt(t *testing.T) {
	// The document and pointers of RFC 6901, section 5, and what is near them.
	d := doc.Must(`{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,
		"~1":9,"deep":[[{"\u0061":[true]}]],"01":10,"null":null}`)
	tests := map[string]string{
		"": d.String(), "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3",
		"/g|h": "4", `/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8",
		"/~01": "9", "/deep/0/0/a/0": "true", "/01": "10", "/null": "null",
		// nothing stands there
		"foo": "", "/foo/2": "", "/foo/-": "", "/foo/00": "", "/foo/01": "", "/foo/+1": "", "/foo/-1": "", "/foo/1e0": "",
		"/foo/4294967296": "", "/foo/18446744073709551616": "", "/foo/": "", "/foo/0/": "", "/foo/0/x": "", "/null/x": "", "/A": "", "//": "", "/deep/0/0/a/0/0": "",
	}
	for pointer, want := range tests {
		if got := d.At(pointer).String(); got != want {
			t.Errorf("At(%q) = %q, want %q", pointer, got, want)
		}
	}
}

func TestDocPartsShareTheirBytes(t *testing.T) {
	raw := []byte(`{ "a" : {"b":[1,"x"]} }`)
	d, err := doc.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	part := d.At("/a/b/1").Raw()
	if &part[0] != &raw[bytes.IndexByte(raw, 'x')-1] {
		t.Error("a part is a copy")
	}
	if cap(part) != len(part) {
		t.Errorf("capacity %d of %d bytes: appending to a part would write over what follows", cap(part), len(part))
	}
	if a, b := d.At("/a").Digest(), doc.Must(`{"b":[1,"x"]}`).Digest(); a != b || len(a) != 64 {
		t.Errorf("digest of a part %s, of the same document %s", a, b)
	}
	if diff := cmp.Diff(map[string]any{"b": []any{json.Number("1"), "x"}}, d.At("/a").Value()); diff != "" {
		t.Errorf("value of a part (-want +got):\n%s", diff)
	}
}

func TestDocMembersAndElements(t *testing.T) {
	d := doc.Must(`{"z":1,"\u0061":[2,[3]],"m":{"n":4},"":null}`)
	var got []string
	for name, v := range d.Members() {
		got = append(got, fmt.Sprintf("%s=%s", name, v))
	}
	if diff := cmp.Diff([]string{"z=1", "a=[2,[3]]", `m={"n":4}`, "=null"}, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	got = nil
	for v := range d.Get("a").Elements() {
		got = append(got, v.String())
	}
	if diff := cmp.Diff([]string{"2", "[3]"}, got); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	for range d.Members() {
		break // must not go on
	}
	for range d.Get("a").Elements() {
		break
	}
	for range d.Elements() {
		t.Error("an object has elements")
	}
	for range d.Get("a").Members() {
		t.Error("an array has members")
	}
	if got := d.Get("m").Get("n").String(); got != "4" {
		t.Errorf("n = %s", got)
	}
	if !d.Get("x").IsZero() || !d.Get("a").Get("0").IsZero() {
		t.Error("Get found what is not there")
	}
}

func TestDocWith(t *testing.T) {
	tests := map[string]struct{ doc, name, raw, want string }{
		"to nothing":                   {"", "a", "1", `{"a":1}`},
		"to an empty object":           {"{ }", "a", "1", `{"a":1}`},
		"at the end":                   {`{"z":1.0}`, "a", "[ ]", `{"z":1.0,"a":[ ]}`},
		"in its old place":             {`{ "a" : 1 , "b":2}`, "a", `{"x":[]}`, `{ "a" : {"x":[]} , "b":2}`},
		"under a name that is escaped": {`{"\u0061":1}`, "a", "2", `{"\u0061":2}`},
		"a name that needs escapes":    {`{}`, "a\"\\\n\x01é", "1", `{"a\"\\\n\u0001é":1}`},
		"white space around":           {" {\"a\":1} ", "b", "2", `{"a":1,"b":2}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var d doc.Doc
			if tt.doc != "" {
				d = doc.Must(tt.doc)
			}
			before := d.String()
			got := d.With(tt.name, []byte(tt.raw))
			if got.String() != tt.want || d.String() != before {
				t.Errorf("got %s of %s, want %s", got, d, tt.want)
			}
			if got.Get(tt.name).String() != tt.raw {
				t.Errorf("member = %s", got.Get(tt.name))
			}
			if b := doc.AppendWith(d, []byte("x"), tt.name, []byte(tt.raw)); string(b) != "x"+tt.want {
				t.Errorf("appended %s, want %s behind x", b, tt.want)
			}
		})
	}
	part := doc.Must(`[0,{"a":{"b":1}},2]`).At("/1")
	if got := part.With("a", []byte("3")).String(); got != `{"a":3}` {
		t.Errorf("With of a part = %s", got)
	}
	for _, bad := range []func(){
		func() { doc.Must("[]").With("a", []byte("1")) },
		func() { doc.Must("{}").With("a", []byte("1,")) },
		func() { doc.Must("{}").With("a", []byte(`1,"b":2`)) },
		func() { doc.Must("{}").With("a", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("With took what it must not")
				}
			}()
			bad()
		}()
	}
}

func TestMapStrings(t *testing.T) {
	d := doc.Must(` { "a~/b" : "x" , "n":1.50,"l":["y",["z","\u0078"]],"o":{"mimeType":"text/css","":"x"} } `)
	var seen []string
	same, err := doc.MapStrings(d, func(at doc.Leaf, s string) string {
		seen = append(seen, fmt.Sprintf("%s %t %q %s", at.Pointer(), at.Key, s, at.MIME))
		return s
	})
	if err != nil || &same.Raw()[0] != &d.Raw()[0] {
		t.Errorf("the unchanged document is a copy (err: %v)", err)
	}
	want := []string{
		`/a~0~1b true "a~/b" `, `/a~0~1b false "x" `, `/n true "n" `, `/l true "l" `, `/l/0 false "y" `, `/l/1/0 false "z" `, `/l/1/1 false "x" `,
		`/o true "o" `, `/o/mimeType true "mimeType" text/css`, `/o/mimeType false "text/css" text/css`, `/o/ true "" text/css`, `/o/ false "x" text/css`,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}

	got, err := doc.MapStrings(d, func(at doc.Leaf, s string) string {
		if s == "x" || s == "n" {
			return s + "\"\n"
		}
		return s
	})
	if want := `{ "a~/b" : "x\"\n" , "n\"\n":1.50,"l":["y",["z","x\"\n"]],"o":{"mimeType":"text/css","":"x\"\n"} }`; err != nil || got.String() != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if got, err := doc.MapStrings(d.At("/l"), func(_ doc.Leaf, s string) string { return strings.ToUpper(s) }); err != nil || got.String() != `["Y",["Z","X"]]` {
		t.Errorf("a part: %s, %v", got, err)
	}
	if got, err := doc.MapStrings(doc.Must(`"x"`), func(at doc.Leaf, s string) string { return s + at.Pointer() + "y" }); err != nil || got.String() != `"xy"` {
		t.Errorf("a string alone: %s, %v", got, err)
	}
	if _, err := doc.MapStrings(doc.Must(`{"a":1,"b":2}`), func(doc.Leaf, string) string { return "same" }); err == nil || !strings.Contains(err.Error(), "same name") {
		t.Errorf("two members got one name: err = %v", err)
	}
	if _, err := doc.MapStrings(doc.Must(`["a"]`), func(doc.Leaf, string) string { return "\xff" }); err == nil {
		t.Error("a string became invalid UTF-8")
	}
}

// FuzzMapStrings holds MapStrings against Value: the same strings, in the same
// places, and nothing but them changed.
func FuzzMapStrings(f *testing.F) {
	seedDocs(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := doc.Parse(b)
		if err != nil {
			return
		}
		same, err := doc.MapStrings(d, func(at doc.Leaf, s string) string {
			if !at.Key {
				if got := d.At(at.Pointer()); got.Text() != s || got.Kind() != doc.String {
					t.Fatalf("%q: At(%q) = %s, want %q", b, at.Pointer(), got, s)
				}
			}
			return s
		})
		if err != nil || same != d {
			t.Fatalf("%q: unchanged, got %s, %v", b, same, err)
		}
		longer, err := doc.MapStrings(d, func(_ doc.Leaf, s string) string { return s + "\x01\"é" })
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		back, err := doc.MapStrings(longer, func(_ doc.Leaf, s string) string { return strings.TrimSuffix(s, "\x01\"é") })
		if err != nil || !bytes.Equal(back.Canonical(), d.Canonical()) {
			t.Fatalf("%q: there and back is %s, %v", b, back, err)
		}
	})
}

// FuzzAt looks up what a foreign pointer names, which must find nothing but
// parts of the document.
func FuzzAt(f *testing.F) {
	for _, pointer := range []string{"", "/", "/a/0", "/~1~0~", "/a~01", "//", "/a/-", "/a/18446744073709551616"} {
		f.Add([]byte(`{"a":[1,{"":{"~/":2}}],"":3}`), pointer)
	}
	f.Fuzz(func(t *testing.T, b []byte, pointer string) {
		d, err := doc.Parse(b)
		if err != nil {
			return
		}
		if part := d.At(pointer); !part.IsZero() && !bytes.Contains(b, part.Raw()) {
			t.Fatalf("At(%q) = %s", pointer, part)
		}
	})
}

// TestDocIsSafeForReaders is for the race detector: whatever is derived of a
// document and its parts is derived under its lock.
func TestDocIsSafeForReaders(t *testing.T) {
	d := doc.Must(`{"a":{"b":["\u0041",1e5,true,null]},"c":"x"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				part := d.At("/a")
				if part.Value().(map[string]any)["b"].([]any)[0] != "A" || part.Digest() == d.Digest() || len(d.Value().(map[string]any)) != 2 {
					t.Error("readers see different documents")
				}
			}
		})
	}
	wg.Wait()
}

func TestDocsWithoutOneNameAreReadTheSameByAll(t *testing.T) {
	_, err := doc.Parse([]byte(`{"path":"/public","path":"/secret"}`))
	if err == nil {
		t.Error("two readers could see two paths")
	}
	if errors.Is(err, doc.ErrSurrogate) {
		t.Errorf("err = %v", err)
	}
}
