package tools_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/tools"
)

// call runs a tool and returns its output, or its error's text after "error: ".
func call(t *testing.T, tool, args string) string {
	t.Helper()
	out, err := tools.Module().Call(tool, []byte(args))
	if err != nil {
		return "error: " + err.Error()
	}
	if !json.Valid(out) {
		t.Errorf("%s: output is not JSON: %s", tool, out)
	}
	return string(out)
}

func TestHash(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"sha256 is the default":            {`{"text":"abc"}`, `{"algorithm":"sha256","hex":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","bytes":3}`},
		"sha1":                             {`{"text":"abc","algorithm":"sha1"}`, `{"algorithm":"sha1","hex":"a9993e364706816aba3e25717850c26c9cd0d89d","bytes":3}`},
		"md5 of nothing":                   {`{"text":"","algorithm":"md5"}`, `{"algorithm":"md5","hex":"d41d8cd98f00b204e9800998ecf8427e","bytes":0}`},
		"crc32 of text":                    {`{"text":"3","algorithm":"crc32"}`, `{"algorithm":"crc32","hex":"6dd28e9b","bytes":1}`},
		"bytes as base64":                  {`{"base64":"//79","algorithm":"crc32"}`, `{"algorithm":"crc32","hex":"08eaaf6d","bytes":3}`},
		"base64 may be unpadded":           {`{"base64":"YQ","algorithm":"md5"}`, `{"algorithm":"md5","hex":"0cc175b9c0f1b6a831c399e269772661","bytes":1}`},
		"text is hashed as UTF-8":          {`{"text":"\u00e9","algorithm":"md5"}`, `{"algorithm":"md5","hex":"66ddcd97cfdeabb2f6fb8a999b4bc76f","bytes":2}`},
		"both inputs are an error":         {`{"text":"a","base64":"YQ=="}`, `error: arguments text and base64: give only one of them`},
		"no input is an error":             {`{}`, `error: arguments text and base64: one of them is required`},
		"bad base64 is named":              {`{"base64":"a*"}`, `error: argument base64: illegal base64 data at input byte 1`},
		"an unknown algorithm is named":    {`{"text":"a","algorithm":"crc8"}`, `error: argument algorithm: "crc8" is none of sha256, sha512, sha1, md5, crc32`},
		"a wrong type is named":            {`{"text":1}`, `error: argument text: a JSON number stands where a value of type string belongs`},
		"an unknown argument is an error":  {`{"txt":"a"}`, `error: arguments: unknown field "txt"`},
		"two values are an error":          {`{"text":"a"} {}`, `error: arguments: more than one JSON value`},
		"arguments that are no JSON":       {`{`, `error: arguments: unexpected EOF`},
		"sha512 has its full length":       {`{"text":"abc","algorithm":"sha512"}`, `{"algorithm":"sha512","hex":"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f","bytes":3}`},
		"the default may be named as well": {`{"text":"","algorithm":"sha256"}`, `{"algorithm":"sha256","hex":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","bytes":0}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := call(t, "hash", tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestJSONQuery(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"a path":                             {`{"query":".a[1]","data":{"a":[1,{"b":2}]}}`, `{"results":[{"b":2}],"truncated":false}`},
		"several results":                    {`{"query":".[] | select(. > 1)","data":[1,2,3]}`, `{"results":[2,3],"truncated":false}`},
		"none":                               {`{"query":"empty","data":null}`, `{"results":[],"truncated":false}`},
		"null is a document":                 {`{"query":".","data":null}`, `{"results":[null],"truncated":false}`},
		"the document as text":               {`{"query":".x","text":"{\"x\":\"y\"}"}`, `{"results":["y"],"truncated":false}`},
		"large integers stay":                {`{"query":".","data":12345678901234567890}`, `{"results":[12345678901234567890],"truncated":false}`},
		"results are bounded":                {`{"query":"range(10)","data":null,"max_results":3}`, `{"results":[0,1,2],"truncated":true}`},
		"exactly as many as asked for":       {`{"query":"range(3)","data":null,"max_results":3}`, `{"results":[0,1,2],"truncated":false}`},
		"an endless program is cut":          {`{"query":"repeat(.)","data":1,"max_results":1}`, `{"results":[1],"truncated":true}`},
		"halt ends it":                       {`{"query":"1, halt, 2","data":null}`, `{"results":[1],"truncated":false}`},
		"no environment":                     {`{"query":"env | length","data":null}`, `{"results":[0],"truncated":false}`},
		"a syntax error names the argument":  {`{"query":".[","data":1}`, `error: argument query: unexpected EOF`},
		"an unknown function is named":       {`{"query":"nope","data":1}`, `error: argument query: function not defined: nope/0`},
		"a failing program is an error":      {`{"query":".a","data":1}`, `error: query: expected an object but got: number (1)`},
		"bad text is named":                  {`{"query":".","text":"{"}`, `error: argument text: unexpected EOF`},
		"text with two values is an error":   {`{"query":".","text":"1 2"}`, `error: argument text: more than one JSON value`},
		"both documents are an error":        {`{"query":".","text":"1","data":1}`, `error: arguments data and text: give only one of them`},
		"no document is an error":            {`{"query":"."}`, `error: arguments data and text: one of them is required`},
		"a bound out of range is named":      {`{"query":".","data":1,"max_results":0}`, `error: argument max_results: 0 is not between 1 and 10000`},
		"a program cannot read other inputs": {`{"query":"input","data":1}`, `error: argument query: input(s)/0 is not allowed`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := call(t, "json_query", tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTextDiff(t *testing.T) {
	tests := map[string]struct {
		before, after string
		context       int
		want          string
	}{
		"a changed line":           {"a\nb\nc\n", "a\nB\nc\n", 3, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		"no context":               {"a\nb\nc\n", "a\nB\nc\n", 0, "@@ -2 +2 @@\n-b\n+B\n"},
		"something from nothing":   {"", "a\n", 3, "@@ -0,0 +1 @@\n+a\n"},
		"nothing from something":   {"a\nb\n", "", 3, "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"an insertion, no context": {"a\nc\n", "a\nb\nc\n", 0, "@@ -1,0 +2 @@\n+b\n"},
		"a missing line feed":      {"a", "a\n", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"near changes share a hunk": {"1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", 2,
			"@@ -1,5 +1,5 @@\n-1\n+x\n 2\n 3\n 4\n-5\n+y\n"},
		"far changes part": {"1\n2\n3\n4\n5\n6\n", "x\n2\n3\n4\n5\ny\n", 1,
			"@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -5,2 +5,2 @@\n 5\n-6\n+y\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args, _ := json.Marshal(map[string]any{"old": tt.before, "new": tt.after, "context": tt.context})
			var got struct{ Diff string }
			if err := json.Unmarshal([]byte(call(t, "text_diff", string(args))), &got); err != nil {
				t.Fatal(err)
			}
			if want := "--- old\n+++ new\n" + tt.want; got.Diff != want {
				t.Errorf("got:\n%s\nwant:\n%s", got.Diff, want)
			}
		})
	}
	if got, want := call(t, "text_diff", `{"old":"a","new":"a"}`), `{"equal":true,"added":0,"removed":0,"diff":""}`; got != want {
		t.Errorf("equal texts: got %s, want %s", got, want)
	}
	if got := call(t, "text_diff", `{"old":"a","new":"b","old_name":"x\n+++ y"}`); got != "error: argument old_name: a file name has no line break" {
		t.Errorf("a name with a line break: got %s", got)
	}
}

// TestTextDiffApplies checks on random texts that applying a diff to the old
// text gives the new one.
func TestTextDiffApplies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	text := func() string {
		var b strings.Builder
		for range rnd.IntN(30) {
			fmt.Fprintf(&b, "%d\n", rnd.IntN(4))
		}
		return b.String()
	}
	for range 2000 {
		before, after, context := text(), text(), rnd.IntN(4)
		args, _ := json.Marshal(map[string]any{"old": before, "new": after, "context": context})
		var got struct{ Diff string }
		if err := json.Unmarshal([]byte(call(t, "text_diff", string(args))), &got); err != nil {
			t.Fatal(err)
		}
		if patched := patch(t, before, got.Diff); patched != after {
			t.Fatalf("%q to %q: patched %q by\n%s", before, after, patched, got.Diff)
		}
	}
}

// patch applies a unified diff, checking that its kept and removed lines are
// those of the text.
func patch(t *testing.T, before, diff string) string {
	old := strings.SplitAfter(before, "\n")
	var b strings.Builder
	at := 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++"):
		case strings.HasPrefix(line, "@@"):
			start, count := 0, 1
			if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &start, &count); n < 2 {
				count = 1
			}
			if count > 0 {
				start--
			}
			for ; at < start; at++ {
				b.WriteString(old[at])
			}
		case line[0] == '+':
			b.WriteString(line[1:])
		default:
			if old[at] != line[1:] {
				t.Fatalf("line %d is %q, the diff says %q", at+1, old[at], line)
			}
			if line[0] == ' ' {
				b.WriteString(old[at])
			}
			at++
		}
	}
	return b.String() + strings.Join(old[at:], "")
}

func TestTextDiffOfVeryDifferentTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	args, _ := json.Marshal(map[string]any{"old": "same\n" + a.String(), "new": "same\n" + b.String()})
	var got struct{ Added, Removed int }
	if err := json.Unmarshal([]byte(call(t, "text_diff", string(args))), &got); err != nil {
		t.Fatal(err)
	}
	if got.Added != 5000 || got.Removed != 5000 {
		t.Errorf("added %d, removed %d, want 5000 each", got.Added, got.Removed)
	}
}

func TestHTMLToText(t *testing.T) {
	tests := map[string]struct{ html, want string }{
		"paragraphs":                        {"<p>One\n two</p><p>three", "One two\n\nthree"},
		"headings":                          {"<h1>A</h1><h2>B</h2>c", "# A\n\n## B\n\nc"},
		"inline elements do not part words": {"<p>un<b>believ</b>able <i>it</i>.", "unbelievable it."},
		"a line break":                      {"a<br>b<br/>c", "a\nb\nc"},
		"entities":                          {"a &lt;b&gt; &amp; &eacute;&nbsp;&#65;", "a <b> & é\u00a0A"},
		"lists":                             {"<ul><li>a<li>b<ol><li>c</li><li>d</ol></ul>e", "- a\n- b\n  1. c\n  2. d\n\ne"},
		"tables":                            {"<table><tr><th>a<th>b<tr><td>1</td><td>2</td></table>", "a | b\n1 | 2"},
		"preformatted text stays":           {"<pre>a\n  b &lt;c</pre>", "a\n  b <c"},
		"scripts and styles go":             {"a<script>if (1<2) alert('</p>')</script><style>p{}</style>b", "ab"},
		"an unclosed script goes":           {"a<script>alert(1)", "a"},
		"a script's end tag in any case":    {"a<SCRIPT>x</ScRiPt >b", "ab"},
		"comments go":                       {"a<!-- x > y -->b<!doctype html>c<?php d ?>e", "abce"},
		"hidden text goes":                  {`a<div hidden>x<p>y</div><p style="Display : none">z</p><span aria-hidden=true>w</span>b`, "a\n\nb"},
		"what is no tag is text":            {"1 < 2 && 3<4 </ x", "1 < 2 && 3<4 </ x"},
		"a > in an attribute":               {`<img alt="a > b">c`, "[image: a > b]c"},
		"images without a text go":          {`a<img src=x>b`, "ab"},
		"a tag that never ends":             {"a<b c='", "a"},
		"stray end tags":                    {"</div>a</p>b", "ab"},
		"a rule":                            {"a<hr>b", "a\n\n---\n\nb"},
		"empty lines do not pile up":        {"a<br><br><br><br>b<p></p><p></p><p>c", "a\n\nb\n\nc"},
		"nothing":                           {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args, _ := json.Marshal(map[string]any{"html": tt.html})
			var got struct{ Text string }
			if err := json.Unmarshal([]byte(call(t, "html_to_text", string(args))), &got); err != nil {
				t.Fatal(err)
			}
			if got.Text != tt.want {
				t.Errorf("got  %q\nwant %q", got.Text, tt.want)
			}
		})
	}
}

func TestHTMLToTextOutput(t *testing.T) {
	tests := map[string]struct{ args, want string }{
		"links are numbered once": {`{"html":"<title> T  t </title><a href='/x?a&amp;b'>one</a>, <a href=y>two</a>, <a href=/x?a&b>again</a><a href='#z'>here</a>"}`,
			`{"title":"T t","text":"one [1], two [2], again [1]here","links":["/x?a&b","y"],"truncated":false}`},
		"links can be left out": {`{"html":"<a href=x>y</a>","links":false}`, `{"title":"","text":"y","links":[],"truncated":false}`},
		"the text is cut":       {`{"html":"äbc","max_chars":2}`, `{"title":"","text":"äb","links":[],"truncated":true}`},
		"too deep":              {`{"html":"` + strings.Repeat("<i>", 600) + `"}`, `error: argument html: elements nest deeper than 512`},
		"a bound out of range":  {`{"html":"","max_chars":0}`, `error: argument max_chars: 0 is not between 1 and 200000`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := call(t, "html_to_text", tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzHTMLToText(f *testing.F) {
	for _, s := range []string{"<p>a<b c=d e='f'>g</p>", "<script>x</script", "<!--", "</", "<a href=", "<ul><li></ol><td>", "<pre>\n<title>x", "&#x0;&lt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args, err := json.Marshal(map[string]string{"html": s})
		if err != nil {
			t.Skip(err)
		}
		if out, err := tools.Module().Call("html_to_text", args); err == nil && !json.Valid(out) {
			t.Errorf("output is not JSON: %s", out)
		}
	})
}

func TestCSVQuery(t *testing.T) {
	const people = `"csv":"name,team,age\nAnn,red,31\nBob,blue,9\nCid,red,\nDee,blue,110\n"`
	tests := map[string]struct{ args, want string }{
		"everything":                        {people, `{"columns":["name","team","age"],"rows":[["Ann","red","31"],["Bob","blue","9"],["Cid","red",""],["Dee","blue","110"]],"total":4}`},
		"columns in their order":            {people + `,"columns":["age","name"],"limit":1`, `{"columns":["age","name"],"rows":[["31","Ann"]],"total":4}`},
		"numbers compare as numbers":        {people + `,"where":[{"column":"age","op":"gt","value":10}],"columns":["name"]`, `{"columns":["name"],"rows":[["Ann"],["Dee"]],"total":2}`},
		"a number may be given as text":     {people + `,"where":[{"column":"age","op":"eq","value":"9.0"}],"columns":["name"]`, `{"columns":["name"],"rows":[["Bob"]],"total":1}`},
		"text compares as text":             {people + `,"where":[{"column":"name","op":"le","value":"Bob"},{"column":"team","op":"ne","value":"red"}],"columns":["name"]`, `{"columns":["name"],"rows":[["Bob"]],"total":1}`},
		"contains":                          {people + `,"where":[{"column":"name","op":"contains","value":"e"}],"columns":["name"]`, `{"columns":["name"],"rows":[["Dee"]],"total":1}`},
		"numbers sort before text":          {people + `,"sort":[{"column":"age","descending":true}],"columns":["age"]`, `{"columns":["age"],"rows":[[""],["110"],["31"],["9"]],"total":4}`},
		"sorting by a column not returned":  {people + `,"sort":[{"column":"team"},{"column":"name","descending":true}],"columns":["name"]`, `{"columns":["name"],"rows":[["Dee"],["Bob"],["Cid"],["Ann"]],"total":4}`},
		"groups":                            {people + `,"group_by":["team"],"aggregates":[{"op":"count"},{"op":"sum","column":"age"},{"op":"max","column":"age"}],"sort":[{"column":"sum(age)"}]`, `{"columns":["team","count","sum(age)","max(age)"],"rows":[["red",2,31,31],["blue",2,119,110]],"total":2}`},
		"all rows as one group":             {people + `,"aggregates":[{"op":"avg","column":"age"},{"op":"min","column":"age"}]`, `{"columns":["avg(age)","min(age)"],"rows":[[50,9]],"total":1}`},
		"groups alone are the values":       {people + `,"group_by":["team"]`, `{"columns":["team"],"rows":[["red"],["blue"]],"total":2}`},
		"nothing to compute from":           {people + `,"where":[{"column":"name","op":"eq","value":"none"}],"aggregates":[{"op":"count"},{"op":"sum","column":"age"},{"op":"min","column":"age"}]`, `{"columns":["count","sum(age)","min(age)"],"rows":[[0,0,null]],"total":1}`},
		"no rows are an array":              {`"csv":"a,b\n"`, `{"columns":["a","b"],"rows":[],"total":0}`},
		"without a header":                  {`"csv":"x;1\ny;2","delimiter":";","header":false,"where":[{"column":"2","op":"eq","value":2}]`, `{"columns":["1","2"],"rows":[["y","2"]],"total":1}`},
		"a byte order mark is skipped":      {`"csv":"\ufeffa\n1"`, `{"columns":["a"],"rows":[["1"]],"total":1}`},
		"an unknown column is named":        {people + `,"columns":["nope"]`, `error: argument columns: there is no column "nope"; the columns are ["name" "team" "age"]`},
		"after grouping others are gone":    {people + `,"group_by":["team"],"sort":[{"column":"age"}]`, `error: argument sort: there is no column "age"; the columns are ["team"]`},
		"text cannot be summed":             {people + `,"aggregates":[{"op":"sum","column":"name"}]`, `error: argument aggregates: column "name" holds "Ann", which is not a number`},
		"a ragged table is an error":        {`"csv":"a,b\n1"`, `error: argument csv: record on line 2: wrong number of fields`},
		"an empty table is an error":        {`"csv":""`, `error: argument csv: the table is empty`},
		"a delimiter of two characters":     {`"csv":"a","delimiter":",,"`, `error: argument delimiter: ",," is not one character that may part fields`},
		"an unknown operator is named":      {people + `,"where":[{"column":"age","op":"like","value":1}]`, `error: argument where: "like" is none of eq, ne, lt, le, gt, ge, contains`},
		"an unknown aggregate is named":     {people + `,"aggregates":[{"op":"median","column":"age"}]`, `error: argument aggregates: "median" is none of count, sum, avg, min, max`},
		"words that Go takes for numbers":   {`"csv":"a\ninf\nnan\n0x10\n1_0\n","sort":[{"column":"a"}]`, `{"columns":["a"],"rows":[["0x10"],["1_0"],["inf"],["nan"]],"total":4}`},
		"a limit of zero returns the total": {people + `,"limit":0`, `{"columns":["name","team","age"],"rows":[],"total":4}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := call(t, "csv_query", "{"+tt.args+"}"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestUnknownTool(t *testing.T) {
	if got := call(t, "nope", `{}`); got != `error: no tool "nope"` {
		t.Errorf("got %s", got)
	}
}
