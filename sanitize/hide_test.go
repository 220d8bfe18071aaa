package sanitize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/judges"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sanitize"
)

// hidingStyles are declarations that hide, cover or move out of view.
var hidingStyles = strings.Split(`display:none;visibility:hidden;visibility:collapse;opacity:0;opacity:.01;opacity:0%;font-size:0;font-size:.1px;font-size:1%;font:0/0 a;zoom:0.01;line-height:0|overflow:hidden
height:0|overflow:hidden;max-height:0|overflow:hidden|display:block;width:0|overflow:hidden|display:inline-block;max-width:0|overflow:clip|display:inline-block;block-size:0|overflow:hidden|display:block
max-block-size:0|overflow:hidden|display:block;inline-size:0|overflow:hidden|display:inline-block;max-inline-size:0|overflow:hidden|display:inline-block;contain:strict|display:block;contain:size paint|display:block
content-visibility:hidden|display:block;position:absolute|left:-9999px;position:absolute|left:-85em;position:fixed|left:-40in;position:absolute|top:-999px;position:absolute|right:200vw;position:relative|left:200vw
position:absolute|inset-inline-start:-999px;position:absolute|inset:-999px auto auto -999px;margin-left:-999px;margin-inline-start:-99em;margin:-999px;text-indent:-999px|display:block;text-indent:-85rem|display:block
transform:scale(0)|display:block;transform:translate(-85em)|display:block;transform:translateX(-999px)|display:block;transform:rotateX(90deg)|display:block;transform:matrix(0,0,0,0,0,0)|display:block
transform:skewX(90deg)|display:block;scale:0|display:block;translate:-99em|display:block;rotate:x 90deg|display:block;rotate:y 90deg|display:block;offset-path:path("M0 0h9999")|offset-distance:100%|display:block
clip-path:inset(50%)|display:block;clip-path:circle(0)|display:block;clip:rect(0,0,0,0)|position:absolute;mask:linear-gradient(transparent,transparent)|display:block;mask-image:linear-gradient(transparent,transparent)
filter:opacity(0);filter:opacity(0%)|display:block;filter:brightness(9999%) contrast(0) opacity(0);mix-blend-mode:screen;mix-blend-mode:lighten;backdrop-filter:blur(9px)|position:fixed|inset:0
color:transparent;color:#fff;color:#ffffff;color:white;color:#0000;color:#00000000;color:rgba(0,0,0,0);color:rgb(0,0,0,0);color:rgb(0 0 0 / 0);color:hsla(0,0%,0%,0);color:hsl(0 0% 0% / 0%);color:canvas
color:color-mix(in srgb, transparent 100%, red);color:light-dark(white,black);color:oklch(1 0 0);color:lab(100 0 0);color:-webkit-text|-webkit-text-fill-color:transparent;color:snow;color:#fefefe;color:WHITE
color:whi\te;color:/**/white;-webkit-text-fill-color:white;-webkit-text-security:disc;background:black|color:black;background:black;background:linear-gradient(black,black);color:#fff|background:#ffffff;background-color:#000|color:#000
font-size-adjust:0;font-family:none|font-size:0rem;font-size:calc(1px - 1px);font-size:min(0px,1px);font-size:0.0001vw;letter-spacing:-1em;letter-spacing:2000px;word-spacing:9999px|margin-left:9999px|display:block
display:grid|grid-template-rows:0fr|overflow:hidden|height:0;display:flex|flex-basis:0|overflow:hidden|width:0;-webkit-line-clamp:0|display:-webkit-box|overflow:hidden|height:0;columns:9999|overflow:hidden|height:0
writing-mode:vertical-lr|margin-top:-999px|display:block;float:left|margin-left:-999px;position:sticky|margin-top:-999px|display:block;text-overflow:clip|overflow:hidden|width:0|display:block;aspect-ratio:1/0|overflow:hidden|height:0|display:block
box-shadow:0 0 0 9999px white;outline:9999px solid white;border-top:9999px solid white|display:block;position:fixed|inset:0|background:white|color:white;padding-left:9999px|display:block;padding-top:9999px|display:block
animation:a 1s|opacity:0;transition:all|opacity:0;view-transition-name:a|opacity:0;all:unset|display:none;--a:none|display:var(--a);display:var(--b,none);d\isplay:none;display:no\ne;DISPLAY:NONE;display:none!important;display : none
shape-outside:circle(0)|opacity:0;hyphens:none|visibility:hidden;text-shadow:none|color:transparent;overflow:hidden|line-height:0|height:0|display:block;interpolate-size:allow-keywords|height:0|overflow:hidden|display:block`, "\n")

// hidingMarkup are elements and attributes that hide W.
var hidingMarkup = strings.Split(`<p hidden>W</p>
<p hidden=until-found>W</p>
<p popover>W</p>
<div popover=manual>W</div>
<x popover>W</x>
<x hidden>W</x>
<x-y hidden>W</x-y>
<ruby>a<rp>W</rp></ruby>
<rp>W</rp>
<select><option>a<option>W</select>
<select>W</select>
<option label=ok>W</option>
<optgroup label=ok>W</optgroup>
<fencedframe>W</fencedframe>
<iframe>W</iframe>
<marquee height=0>W</marquee>
<marquee scrollamount=9999>W</marquee>
<textarea rows=1>a&#10;b&#10;c&#10;W</textarea>
<canvas>W</canvas>
<canvas>W
<audio>W</audio>
<audio>W
<video>W</video>
<video>W
<template>W</template>
<template>W
<dialog>W</dialog>
<dialog>W
<datalist>W</datalist>
<datalist>W
<progress>W</progress>
<meter>W</meter>
<object data=x>W</object>
<object type=text/html data=x>W</object>
<noscript>W</noscript>
<noembed>W</noembed>
<noframes>W</noframes>
<script>W</script>
<style>W</style>
<title>W</title>
<title>W
<xmp hidden>W</xmp>
<plaintext hidden>W
<head><title>W</title></head>
<frameset>W</frameset>
<svg>W</svg>
<svg><text>W</text></svg>
<svg><defs><text>W</text></defs></svg>
<svg><symbol><text>W</text></symbol></svg>
<svg><mask><text y=9>W</text></mask></svg>
<svg><clipPath><text y=9>W</text></clipPath></svg>
<svg><text y=9 display=none>W</text></svg>
<svg><text y=9 opacity=0>W</text></svg>
<svg><text y=9 fill-opacity=0>W</text></svg>
<svg><text y=9 fill=none>W</text></svg>
<svg><text y=9 visibility=hidden>W</text></svg>
<svg><text y=9 font-size=0>W</text></svg>
<svg><text y=9 transform="scale(0)">W</text></svg>
<svg><text y=-999>W</text></svg>
<svg width=0 height=0><text y=9>W</text></svg>
<svg viewBox="999 999 1 1"><text y=9>W</text></svg>
<svg><desc>W</desc></svg>
<svg><title>W</title></svg>
<svg><metadata>W</metadata></svg>
<svg><foreignObject width=0 height=0>W</foreignObject></svg>
<svg><switch><text systemLanguage=xx>W</text></switch></svg>
<math><mphantom><mtext>W</mtext></mphantom></math>
<math><mtext mathsize=0>W</mtext></math>
<math><mtext mathcolor=transparent>W</mtext></math>
<math><mtext mathcolor=white>W</mtext></math>
<math><semantics><mi>x</mi><annotation>W</annotation></semantics></math>
<math><mpadded width=0 height=0 voffset=-99em><mtext>W</mtext></mpadded></math>
<math><mspace width=9999px /><mtext>W</mtext></math>
<font color=white>W</font>
<font color=#fff>W</font>
<font color=#ffffff>W</font>
<font color="#fffffe">W</font>
<font color=snow>W</font>
<table bgcolor=black><td><font color=black>W</font></table>
<td width=9999>a</td><td>W</td>
<table width=9999><td width=9998>a<td>W</table>
<table cellpadding=99999><td>W</table>
<table><td align=right width=99999>W</table>
<table><col style=visibility:collapse><tr><td>W</table>
<input type=hidden value=W>
<input type=password value=W>
<input type=checkbox value=W>
<input value=W size=1 maxlength=1>
<input type=image alt=W src=x width=0>
<img alt=W src=x width=1 height=1>
<img alt=W src=x style=display:none>
<button hidden>W</button>
<details><p>W</details>
<details hidden>W</details>
<summary hidden>W</summary>
<area alt=W>
<map hidden>W</map>
<param value=W>
<a title=W>x</a>
<b aria-label=W>x</b>
<b data-x=W>x</b>
<b class=hidden hidden>W</b>
<slot hidden>W</slot>
<menu type=context hidden>W</menu>
<applet>W</applet>
<frame>W</frame>
<layer visibility=hide>W</layer>
<basefont size=0>W
<bdo dir=rtl style=opacity:0>W</bdo>
<nobr style=display:none>W</nobr>
<!--W W W-->
<!W W W>
<?W W W?>
</W W W W>
<![CDATA[W W W]]>`, "\n")

// deep repeats an element around W.
func deep(element string, times int) string {
	name, _, _ := strings.Cut(element, " ")
	return strings.Repeat("<"+element+">", times) + "W" + strings.Repeat("</"+name+">", times)
}

func waysToHide() (ways []string) {
	for _, line := range hidingStyles {
		for one := range strings.SplitSeq(line, ";") {
			style := strings.ReplaceAll(one, "|", ";")
			ways = append(ways, `<span style="`+strings.ReplaceAll(style, `"`, "'")+`">W</span>`)
		}
	}
	ways = append(ways, hidingMarkup...)
	for _, element := range []string{"small", "sub", "sup", "big", "h1", "h6", "h5 class=a", "blockquote", "ul", "dl><dd", "ol", "figure", "rt", "menu", "dir", "font size=+4", "table><td", "fieldset", "details open", "center", "code", "h1><div", "small><div", "sub><div></sub", "div style=margin-left:-80px"} {
		for _, times := range []int{12, 24} { // more of them would go beyond the picture
			ways = append(ways, deep(element, times))
		}
	}
	ways = append(ways, deep("ruby><rt", 12)) // with more of them the line goes beyond the picture
	for _, pad := range []string{"<br>", "\u2028", "&nbsp;", "&emsp;", "\u3000", "&#10;", "<p></p>", "<wbr>\n"} {
		ways = append(ways, "a"+strings.Repeat(pad, 500)+"W")
	}
	return ways
}

// known are ways that stay, as docs/reference/sanitizing.md#what-stays says: what attributes say, what
// a page shows once it is opened or scrolled, and comments of two words.
func known(way string) bool {
	for _, part := range []string{"<details>", "<details hidden>", "alt=W", "title=W", "aria-label=W", "data-x=W", "<br><br>", "<p></p><p></p>"} {
		if strings.Contains(way, part) {
			return true
		}
	}
	return false
}

// Under text and html, a browser draws a page with one hidden word unlike the page with
// another one of its length.
func TestHiddenWordsAreShown(t *testing.T) {
	t.Parallel()
	unraced.Long(t)
	pixels := judges.Pixels(t)
	ways := waysToHide()
	seed.Rand(t).Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	ways = ways[:min(len(ways), number(t, "WASMGATE_BROWSER_TEXTS", 60))]
	pair := func(way string, as func(string) string) [2]string {
		return [2]string{as(strings.ReplaceAll(way, "W", "Orange")), as(strings.ReplaceAll(way, "W", "Banana"))}
	}
	raw := func(s string) string { return s }
	pairs := [][2]string{pair("<b>W</b>", raw)}
	for _, way := range ways {
		pairs = append(pairs, pair(way, raw))
	}
	before := pixels(pairs)
	if before[0] != "" {
		t.Fatal("the browser shows nothing")
	}
	hidden := countActive(before[1:])
	if hidden < len(ways)/2 {
		for i, found := range before[1:] {
			if found == "" {
				t.Logf("shown to begin with: %.100s", ways[i])
			}
		}
		t.Errorf("only %d of %d ways hide to begin with", hidden, len(ways))
	}
	for _, p := range []sanitize.Profile{sanitize.Text, sanitize.HTML} {
		s := new(t, p)
		as := func(text string) string { clean, _ := s.Sanitize(text); return clean }
		pairs = nil
		for _, way := range ways {
			pairs = append(pairs, pair(way, as))
		}
		for i, found := range pixels(pairs) {
			gone := p == sanitize.HTML && !strings.Contains(pairs[i][0], "Orange") // html takes out what it does not keep
			if found != "" && !known(ways[i]) && !gone {
				t.Errorf("%s: hidden still: %.200s\nout: %.300q", p, ways[i], pairs[i][0])
			}
		}
	}
	t.Logf("%d ways, of which %d hide to begin with", len(ways), hidden)
}

// Markup that covers the page or takes names from it is neutralized; TestAllowlistInDocs has the
// markup that stays.
func TestNothingCoversOrClobbersThePage(t *testing.T) {
	s := new(t, sanitize.Text)
	for _, text := range []string{
		`<a href="https://plain.example/login" style="position:fixed;top:0;left:0;width:100%;height:100%">x</a>`, `<div style="position:fixed;top:0">Session expired</div>`, `<label for=x>y</label>`,
		`<button form=f formaction=/x>y</button>`, `<button popovertarget=x>y</button>`, `<input autofocus>`, `<a accesskey=s href=x>y</a>`, `<p contenteditable>y</p>`, `<textarea>`, `<plaintext>`, `<xmp>`, `<listing hidden>`,
		`<form method=post>`, `<input name=q>`, `<img name=getElementById>`, `<a id=config name=config href=x>y</a>`, `<form name=body>`, `<object name=x>`, `<x id=config>`, `<slot name=x>`, `<button is=x-host>`, `<x is=y>`,
		`<meta name=viewport content=x>`, `<meta name=color-scheme content=dark>`, `<a rel=prerender href=x>y</a>`, `<a target=_top href=x>y</a>`, `<html style=opacity:0>`, `<body bgcolor=black text=black>`, `<select>`, `<title>`, `<svg>`, `<math>`,
		`<x onclick=y>`, `<b onclick>`, `<details name=x>`, `<fieldset disabled>`, `<b style="box-shadow:0 0 0 9999px white">x</b>`, `<base target=_blank>`, `<x tabindex=1>`, `<x slot=y>`,
	} {
		if clean, _ := s.Sanitize(text); clean == text {
			t.Errorf("%s stays", text)
		}
	}
	for _, text := range []string{
		`<p align="center"><img src="logo.png" alt="A logo" width="400"></p>`, `<h1 id="user-content-a">A</h1>`, `<a name="install"></a>`, `<table><tr><th align=left colspan=2>x</th></tr></table>`, `<input type="checkbox" disabled checked>`,
		`<details open><summary>More</summary>x</details>`, `<kbd>Ctrl</kbd>+<kbd>C</kbd>, H<sub>2</sub>O, x<sup>2</sup>`, `<picture><source media="(prefers-color-scheme: dark)" srcset="dark.png 1x, dark2.png 2x"><img src="a.png"></picture>`,
		`<font color="red">x</font>`, `<font color="#d73a49">x</font>`, `<span style="color:#0366d6">x</span>`, `<a href="https://plain.example/a" target="_blank" rel="noopener noreferrer">x</a>`, `<div class="note warning" lang="en" dir="ltr">x</div>`, `<ol start="3"><li value=4>x</ol>`, `<br/><hr />`,
		`<item key="1" name="a"><link rel="self" href="https://plain.example/feed?x"/></item>`, `useState<Form | null>(null), Vec<Object>, Array<A extends B>, <T extends Foo>`, `<span style="color: red">x</span>`,
	} {
		if clean, found := s.Sanitize(text); clean != text {
			t.Errorf("%s became %s, %v", text, clean, found)
		}
	}
}

// Deeply nested markup is neutralized, and markup next to other markup is not.
func TestDepth(t *testing.T) {
	s := new(t, sanitize.Text)
	for _, text := range []string{strings.Repeat("x<sup>1</sup>", 100), strings.Repeat("<ul><li>a<li>b</ul>", 60), strings.Repeat("<h1 align=center>A<br></h1>", 20), strings.Repeat("<blockquote><p>a</blockquote>", 60), strings.Repeat("<table><tr><td>a<td>b</table>", 60)} {
		if clean, found := s.Sanitize(text); clean != text {
			t.Errorf("%.60s became %.60s: %v", text, clean, found)
		}
	}
	for _, element := range []string{"sup", "h6", "blockquote", "sub><div></sub", "small><p"} {
		text := strings.Repeat(fmt.Sprintf("<%s>", element), 40)
		if clean, _ := s.Sanitize(text); clean == text {
			t.Errorf("%.60s stays", text)
		}
	}
}
