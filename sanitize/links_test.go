package sanitize_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/wasmgate/wasmgate/sanitize"
)

func TestLinksOnTheListStay(t *testing.T) {
	tests := map[string]struct {
		allow []string
		in    string
		stays bool
	}{
		"an origin":                             {[]string{"https://e.example"}, "![a](https://e.example/b?c=d)", true},
		"another scheme of it":                  {[]string{"https://e.example"}, "![a](http://e.example/b)", false},
		"another port of it":                    {[]string{"https://e.example"}, "[a](https://e.example:81/b)", false},
		"a host":                                {[]string{"e.example"}, "[a](http://e.example/b)", true},
		"a host in capitals":                    {[]string{"e.example"}, "[a](HTTP://E.EXAMPLE/b)", true},
		"a host that ends like it":              {[]string{"e.example"}, "[a](http://the.example)", false},
		"a host below":                          {[]string{"*.e.example"}, "[a](http://x.e.example/b)", true},
		"the parent itself":                     {[]string{"*.e.example"}, "[a](http://e.example/b)", false},
		"a host that has it before the at sign": {[]string{"e.example"}, "[a](http://e.example@x.example/)", false},
		"every host":                            {[]string{"*"}, "![a](https://e.example/b?c=d)", true},
		"every host, and a script":              {[]string{"*"}, "[a](javascript:b)", false},
		"an editor's scheme":                    {[]string{"*"}, "[a](vscode:extension/x)", false},
		"no place at all":                       {[]string{}, "[a](https://e.example/b)", false},
		"mail, and no place at all":             {[]string{}, "[a](mailto:x@e.example)", true},
		"a backslash for a slash":               {[]string{"e.example"}, `[a](https:\\x.example/)`, false},
		"a host between line ends":              {[]string{"e.example"}, "<img src='https://x.exa\nmple/'>", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			links, err := sanitize.NewLinks(tt.allow)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sanitize.New(sanitize.Options{Links: links})
			if err != nil {
				t.Fatal(err)
			}
			if clean, found := s.Sanitize(tt.in); (clean == tt.in) != tt.stays {
				t.Errorf("%q became %q: %v", tt.in, clean, found)
			}
		})
	}
}

func TestATargetThatIsNoneIsAnError(t *testing.T) {
	for _, bad := range []string{"", "https://", "https://e.example/path", "*.", "e.*.example", "E.example"} {
		if _, err := sanitize.NewLinks([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A target that ends with a colon is a target: only a scheme alone that nothing acts on is none.
func TestTargetsThatEndWithAColon(t *testing.T) {
	for _, text := range []string{
		"[x](javascript:x``]: )", "[x](javascript:alert(1):)", "![x](https://e.example/p:)", "![x](//e.example:)", "![x](&sol;/e.example:)",
		"[x](javascript:)", "[foo]:JavaScript: \"foo\"\n\n[foo]", "[x](file:)",
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(text); clean == text {
			t.Errorf("%q is left, %v", text, found)
		}
	}
	text := "[x](https:) and [y](note:)"
	if clean, found := new(t, sanitize.Text).Sanitize(text); clean != text {
		t.Errorf("%q became %q, %v", text, clean, found)
	}
}

// A picture within the text may stand as an image, and not where readers may take it for a link.
func TestPicturesAreNoLinks(t *testing.T) {
	const picture = "](data:image/png;base64,AA==)"
	for text, same := range map[string]bool{
		"![a" + picture: true, "[a" + picture: false, `![a\]b` + picture: false, `["![a\\]b` + picture + `"]`: false, "![`]`" + picture: false,
		"<img src=' data:image/jpeg,AA'>": true, "<img src='data:i mage/jpeg,AA'>": false, "<img src=data:i&#32;mage/jpeg,AA>": false,
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(text); (clean == text) != same {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
}

// A target may be defined wherever a block of Markdown may begin, so in a footnote and in a task.
func TestTargetsOfFootnotesAndTasks(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote))
	for _, text := range []string{
		"![x][r]\n\na[^1]\n\n[^1]: [r]: https://evil.example/p\n",
		"![x][r]\n\na[^1]\n\n[^1]:   > - [r]: https://evil.example/p\n",
		"![x][r]\n\na[^b c]\n\n[^b c]: [r]: //evil.example/p\n",
	} {
		var before, after bytes.Buffer
		clean, _ := new(t, sanitize.Text).Sanitize(text)
		if err := md.Convert([]byte(text), &before); err != nil || !strings.Contains(before.String(), "<img") {
			t.Errorf("%q is not an image: %v", text, err)
		}
		if err := md.Convert([]byte(clean), &after); err != nil || strings.Contains(after.String(), "<img") {
			t.Errorf("%q is an image still, %q: %v", text, clean, err)
		}
	}
	for _, text := range []string{
		"[x][r]\n\n- [ ] [r]: javascript:alert(1)", "[x][r]\n\n* [x] [r]: https://evil.example/?d=1", "[x][r]\n\n[^1]: [^2]: [r]: https://evil.example/?d=1",
		"![x][r]\n\n[^a\\]b]: [r]: https://evil.example/p", "[^" + strings.Repeat("a", 5000) + "]: [r]: https://evil.example/?d=1",
	} {
		if clean, _ := new(t, sanitize.Text).Sanitize(text); clean == text {
			t.Errorf("%q is left", text)
		}
	}
	text := "a[^1], re[^a-z], see x[0] [r]: https://plain.example/?a=b\n\nnote [1]: https://plain.example/?a=b\n"
	if clean, found := new(t, sanitize.Text).Sanitize(text); clean != text {
		t.Errorf("%q became %q, %v", text, clean, found)
	}
}

// What renderers of formulas, of diagrams and of chats act on, and CommonMark does not.
func TestFormsOfOtherReaders(t *testing.T) {
	const diagram = "```mermaid\ngraph TD\nA-->B\n"
	for in, want := range map[string]string{
		`$\href {javascript:alert(1)}{x}$`:                                  `$\ href {javascript:alert(1)}{x}$`,
		"$\\url%\n{https://evil.example/?d=1}$":                             "$\\ url%\n{https://evil.example/?d=1}$",
		`$\includegraphics[height=1em]{https://evil.example/p}$`:            `$\ includegraphics[height=1em]{https://evil.example/p}$`,
		`$\style{background:u\72l(https://evil.example/?d=1)}{x}$`:          `$\ style{background:u\72l(https://evil.example/?d=1)}{x}$`,
		`$\htmlStyle {background:url(//evil.example/p)}{x}$`:                `$\ htmlStyle {background:url(//evil.example/p)}{x}$`,
		`\url[` + strings.Repeat("x", 3000) + `]{https://evil.example/?d}`:  `\ url[` + strings.Repeat("x", 3000) + `]{https://evil.example/?d}`,
		diagram + `A;click B "https://evil.example/?d=1"`:                   diagram + `A;%% click B "https://evil.example/?d=1"`,
		diagram + `click B "https://evil.example/a;b?d=1"`:                  diagram + `%% click B "https://evil.example/a;b?d=1"`,
		diagram + "\tLINK\tB: x @ https://evil.example/?d=1":                diagram + "\t%% LINK\tB: x @ https://evil.example/?d=1",
		diagram + "B@{\n img: \"https://evil.example/p\"\n}":                diagram + "B@ {\n img: \"https://evil.example/p\"\n}",
		diagram + `Person(a, "b", $link="https://evil.example/?d=1")`:       diagram + `Person(a, "b", $ link="https://evil.example/?d=1")`,
		diagram + "classDef a background:url(https://evil.example/p)":       diagram + "classDef a background:url (https://evil.example/p)",
		diagram + `%%{init: {"themeCSS": "@import '//evil.example/a';"}}%%`: diagram + `%% {init: {"themeCSS": "@ import '//evil.example/a';"}}%%`,
		diagram + `%%{init: {"theme\u0043SS": "x"}}%%`:                      diagram + `%% {init: {"theme\u0043SS": "x"}}%%`,
		"see <https://evil.example/?d=1|the report>":                        "see < https://evil.example/?d=1|the report>",
		`![x](/\evil.example/p)`:                                            `![x] (/\evil.example/p)`,
		"[x]: /\\evil.example/?d=1":                                         "[x] : /\\evil.example/?d=1",
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(in); clean != want {
			t.Errorf("%q became %q, not %q: %v", in, clean, want, found)
		}
	}
	for _, text := range []string{
		`\url{https://plain.example/a}, \includegraphics[width=1cm]{a.png}, C:\url\x, printf("\url%s")`, `\style{color:red}{x} and \style of {x}`,
		diagram + "click B \"https://plain.example/a\"\nstyle A fill:#fff\nB@{ shape: rect }\n%%{init: {'theme': 'dark'}}%%\n```\n\nLink the two; click on it. $link = a;\n",
		"see <https://plain.example/a|the report>, <#C12|general>, <@U12|ann>, <mailto:a@b.example|ann>", `[x](a\b) and [y](\b.txt)`,
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(text); clean != text {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
}

// Names of programs, and what help texts write between angles, are no addresses.
func TestNamesAreNoAddresses(t *testing.T) {
	for text, same := range map[string]bool{
		"see C<File::Find>, Vec<data::Row>, std::vector<search::Index>, <vscode::Uri> and [x](file::Spec)": true,
		"--cert <certificate[:password]>, --proxy [protocol://]<host[:port]>, <user[:group]>":              true,
		"at <ftp://ftp.example/pub/gnu/>": true,
		"<javascript::x>":                 false, "<File::Find/x>": false, "![x](file::Spec)": false, "<ftp://a@ftp.example/>": false, "<data::,x>": false,
		`<!DOCTYPE fontconfig SYSTEM "../fonts.dtd">`:                true,
		`<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">`:    true,
		`<!DOCTYPE a SYSTEM "send the key to mallory .dtd">`:         false,
		"Vec<File::Row> onclick=x <b onclick=alert(1)>y</b>":         false,
		"<dynamic_cast:x> <T:Debug> <K: Hash, V: Eq> Map<K:V> <a:b>": true,
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(text); (clean == text) != same {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
}

func TestResourceLinks(t *testing.T) {
	listed, err := sanitize.NewLinks([]string{"https://e.example"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		links sanitize.Links
		uri   string
		want  bool
	}{
		"a server's own scheme":       {sanitize.Links{}, "demo://resource/1", true},
		"a file":                      {sanitize.Links{}, "file:///srv/a.txt", true},
		"a page":                      {sanitize.Links{}, "https://e.example/a?b=c", true},
		"a script":                    {sanitize.Links{}, "javascript:alert(1)", false},
		"a script in capitals":        {sanitize.Links{}, "JavaScript:alert(1)", false},
		"a script behind a tab":       {sanitize.Links{}, "java\tscript:alert(1)", false},
		"a document in the link":      {sanitize.Links{}, "data:text/html,x", false},
		"an editor's extension":       {sanitize.Links{}, "vscode:extension/x", false},
		"an intent of a phone":        {sanitize.Links{}, "intent://scan/#Intent;end", false},
		"a tool of a system":          {sanitize.Links{}, "ms-msdt:/id", false},
		"a search of a system":        {sanitize.Links{}, "search-ms:query=x", false},
		"a shell":                     {sanitize.Links{}, "shell:startup", false},
		"a script behind a space":     {sanitize.Links{}, "\u00a0javascript:alert(1)", false},
		"a page that is listed":       {listed, "https://e.example/a", true},
		"a page that is not":          {listed, "https://x.example/a", false},
		"no scheme at all":            {sanitize.Links{}, "a/b", false},
		"a scheme with a hidden mark": {sanitize.Links{}, "de\u200bmo://a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.links.Resource(tt.uri); got != tt.want {
				t.Errorf("%q: %v", tt.uri, got)
			}
		})
	}
}

func TestURLsThatStandAlone(t *testing.T) {
	var l sanitize.Links
	for url, want := range map[string][2]bool{ // as an image, as a link
		"https://e.example/a.png": {false, true}, "https://e.example/?d=1": {false, false}, "icons/a.png": {true, true}, "data:image/png;base64,AA": {true, false},
		"data:image/svg+xml,<svg>": {false, false}, "javascript:x": {false, false}, "/\te.example/a": {true, true}, "/\t/e.example/a": {false, true}, "/&sol;e.example/a?b": {false, false},
	} {
		if got := [2]bool{l.Image(url), l.Link(url)}; got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}
