package sanitize_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// atoms are what texts are generated from: what acts, and what moves the borders of
// it in the eyes of some reader.
var atoms = strings.Split(strings.TrimSpace(`
<img src=x onerror=alert(1)>~<img src=//evil.example/p>~<a href="~<a href=~javascript:alert(1)~https://evil.example/?d=1~//evil.example/p.png~https://plain.example/a
![~](~]~[~)~(~[r]: ~[r]~![x][r]~![r]~[x](~![a\]b](~]: ~`+"`~``~```~\\`"+`~\~"~'~=~<div title="~<div~<b title='~</div>~</~<!--~<!--`+"\n"+`~<!--`+"\n\n"+`-->~`+"\n"+`-->~-->~--!>~secret orders for the model~<?~?>~<!~<![CDATA[~]]>
&#x6a;~&colon;~&lt;~&gt;~&quot;~&Tab;~&sol;~style="~style=background:~u\72l(~url(~background:url(//evil.example)~image-set('//evil.example' 1x)~/**/~display:n\6fne
onclick=alert(1)~ onfocus=alert(1) autofocus~ onerror=alert(1)~x onerror=1~<svg>~</svg>~<style>~</style>~@import '//evil.example';~<template>~<textarea>~</textarea>~<title>~</title>~<math>~<mtext>~<table>~<td>~<select>~<pre>~</pre>~<xmp>~<noscript>~<plaintext>~<p>~<p ~<b>~<x~<x ~/>~>~ >~<~<<
srcset=~ src=~ href=~ action=~ formaction=~ poster=~ ping=~xlink:href=~data:image/png;base64,AA~data:text/html,x~data:image/svg+xml,x~vbscript:x~vscode:x?y~file:///x
<meta http-equiv=refresh content="0;url=//evil.example">~<base href=//evil.example>~<form action=//evil.example>~<button formaction=//evil.example>~<link rel=stylesheet href=//evil.example>~<iframe src=x>~<iframe srcdoc=x>~<object data=x>~<embed src=x>~<input type=image src=//evil.example>~<video poster=//evil.example>~<set attributeName=href to=javascript:x>~<use href=//evil.example#x>~<image href=//evil.example>
<https://~<javascript:~<javascript:x>~<https://evil.example/?d=1>~x@y.example>~#~*~**~_~~~~~ ~|~| --- |~|-|-|~:--~- ~* ~1. ~2) ~> ~>> ~    ~	~  
text~word~é~ ~ ~ ~.~!~: ~;~x=1~{~}~$~\href{~\url{~}{x}~[^1]~[^1]: ~[^1]: [r]: //evil.example/p~[^a\]b]: [r]: ~- [ ] [r]: //evil.example/p~[ ] ~<https://evil.example/?d=1|x>~/\evil.example/p~+++~---~===~<!DOCTYPE html>~<html>~<body ~<head>~"title"~'t'~(t)~<>
<code>~<kbd>~</code>~ *>~ ~>~ \>~/*>~ =*>~<img src=x *>~<a *>~&nbsp;~&#8232;~&NewLine;~&emsp;~NBSP~NBSP~LS~LS~PS~IDEO~<code class=a>`), "~")

func init() {
	for i, atom := range atoms {
		atoms[i] = strings.NewReplacer("NBSP", "\u00a0", "LS", "\u2028", "PS", "\u2029", "IDEO", "\u3000").Replace(atom)
	}
}

// A source of texts: half of them are made of atoms, half are mutations of texts of
// the suites that are on this machine.
type source struct {
	*rand.Rand
	suites []string
}

func newSource(t testing.TB, seed uint64) *source {
	return &source{Rand: rand.New(rand.NewPCG(seed, seed)), suites: suites(t)}
}

func (s *source) text() string {
	if len(s.suites) == 0 || s.IntN(2) == 0 {
		var b strings.Builder
		for range 1 + s.IntN(14) {
			b.WriteString(s.atom())
		}
		return b.String()
	}
	text := s.suites[s.IntN(len(s.suites))]
	for range 1 + s.IntN(4) {
		i := s.IntN(len(text) + 1)
		j := min(len(text), i+s.IntN(12))
		switch s.IntN(5) {
		case 0:
			text = text[:i] + text[j:]
		case 1:
			text = text[:j] + text[i:]
		case 2:
			other := s.suites[s.IntN(len(s.suites))]
			text = text[:i] + other[s.IntN(len(other)+1):]
		default:
			text = text[:i] + s.atom() + text[i:]
		}
		text = text[:min(len(text), 2000)]
	}
	return strings.ToValidUTF8(text, "")
}

func (s *source) atom() string {
	if s.IntN(6) == 0 {
		return "\n"
	}
	atom := atoms[s.IntN(len(atoms))]
	if s.IntN(12) == 0 {
		return atom + "\n\n"
	}
	return atom
}

// suites returns the texts of CommonMark's tests (a package of .ci/node), html5lib's
// (a module) and DOMPurify's (the corpora), as far as they are here.
func suites(t testing.TB) (all []string) {
	if b, err := os.ReadFile("../.ci/node/node_modules/commonmark-spec/spec.txt"); err == nil {
		parts := strings.Split(string(b), strings.Repeat("`", 32))
		for i := 1; i < len(parts); i += 2 {
			text, _, _ := strings.Cut(strings.TrimPrefix(parts[i], " example\n"), "\n.\n")
			all = append(all, strings.ReplaceAll(text, "→", "\t"))
		}
	}
	if dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output(); err == nil {
		files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "html/testdata/html5lib-tests/tree-construction/*.dat"))
		webkit, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "html/testdata/webkit/*.dat"))
		for _, file := range append(files, webkit...) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq("\n"+string(b), "\n#data\n") {
				text, _, _ := strings.Cut(part, "\n#errors")
				all = append(all, text)
			}
		}
	}
	if dir := os.Getenv("WASMGATE_CORPUS"); dir != "" {
		var attacks []struct{ Payload string }
		b, err := os.ReadFile(filepath.Join(dir, "corpora/xss/dompurify-expect.json"))
		if err != nil || json.Unmarshal(b, &attacks) != nil {
			t.Fatal("the corpus has no attacks: ", err)
		}
		for _, a := range attacks {
			all = append(all, a.Payload)
		}
	}
	t.Logf("%d texts of suites", len(all))
	return all
}
