package sanitize

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

const (
	allowlistBegin = "<!-- allowlist begin -->\n"
	allowlistEnd   = "<!-- allowlist end -->\n"
)

// allowlist writes the list as docs/reference/sanitizing.md has it.
func allowlist() string {
	var b strings.Builder
	var used []string
	fmt.Fprintf(&b, "| elements | attributes, with the grammar of their values |\n| --- | --- |\n")
	for _, a := range allowances {
		elements := "every element"
		if a.elements != "" {
			elements = "`" + a.elements + "`"
		}
		var attrs []string
		for attr := range strings.FieldsSeq(a.attrs) {
			name, g, _ := strings.Cut(attr, "=")
			if g == "" {
				attrs = append(attrs, "`"+name+"`")
				continue
			}
			used = append(used, g)
			attrs = append(attrs, fmt.Sprintf("`%s` (%s)", name, g))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", elements, strings.Join(attrs, ", "))
	}
	fmt.Fprintf(&b, "\n| grammar | values |\n| --- | --- |\n")
	slices.Sort(used)
	for _, name := range slices.Compact(used) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, grammars[name].words)
	}
	fmt.Fprintf(&b, "\n| property of CSS | values |\n| --- | --- |\n")
	for _, p := range properties {
		words := "`" + strings.ReplaceAll(p.values, "|", "`, `") + "`"
		switch p.values {
		case size:
			words = "`auto`, 1px to 999px, 1% to 100%, 1 to 99 `em` or `rem`"
		case colours:
			words = "colour"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.name, words)
	}
	return b.String()
}

// docs/reference/sanitizing.md has the list as it is; with WASMGATE_WRITE=allowlist the test writes it.
func TestAllowlistInDocs(t *testing.T) {
	const file = "../docs/reference/sanitizing.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), allowlistBegin)
	now, after, ended := strings.Cut(rest, allowlistEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the list", file)
	}
	want := "\n" + allowlist() + "\n"
	if now == want {
		return
	}
	if os.Getenv("WASMGATE_WRITE") != "allowlist" {
		t.Fatalf("the list in %s is not that of the code: go generate ./sanitize writes it", file)
	}
	if err := os.WriteFile(file, []byte(before+allowlistBegin+want+allowlistEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A colour in hex stays only if its letters are seen on white and on black pages.
func TestColoursInHex(t *testing.T) {
	allowed := whole(inHex)()
	linear := func(digits string) float64 {
		n, err := strconv.ParseUint(digits, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if c := float64(n) / 255; c > 0.04045 {
			return math.Pow((c+0.055)/1.055, 2.4)
		} else {
			return c / 12.92
		}
	}
	kept := 0
	for n := range 1 << 24 {
		if n%97 != 0 { // a part of them is enough
			continue
		}
		long := fmt.Sprintf("%06x", n)
		l := 0.2126*linear(long[:2]) + 0.7152*linear(long[2:4]) + 0.0722*linear(long[4:])
		readable := 1.05/(l+0.05) >= 1.9 && (l+0.05)/0.05 >= 1.9
		if allowed.MatchString("#" + long) {
			if kept++; !readable {
				t.Fatalf("#%s stays", long)
			}
		}
		if short := "#" + long[:1] + long[2:3] + long[4:5]; long[0] == long[1] && long[2] == long[3] && long[4] == long[5] && allowed.MatchString(short) && !readable {
			t.Fatalf("%s stays", short)
		}
	}
	if kept < 1<<24/97/3 {
		t.Errorf("%d colours stay", kept)
	}
	for _, ordinary := range []string{"#ff0000", "#f00", "#888", "#0366d6", "#d73a49", "#2ea44f"} {
		if !allowed.MatchString(ordinary) {
			t.Errorf("%s does not stay", ordinary)
		}
	}
}

// What stays under text, the policy of html returns with the same name, attributes and
// values, and what loses its form there it does not: both are made of one list.
func TestTextKeepsWhatThePolicyReturns(t *testing.T) {
	r := seed.Rand(t)
	text := &Sanitizer{profile: Text}
	html := policy(Links{})
	values := []string{"x", "center", "red", "5", "12px", "100%", "0", "9999", "ltr", "-1", "a b", "_blank", "author", "a-b", "https://plain.example/a", "https://evil.example/?d=1", "javascript:x", "a/b.png", "display:none", "color: red", "1a", "text-align:center;", "checkbox", "hidden", "#d73a49", "#fff", "color: #0366d6", "color:#111"}
	var tags, attributes []string
	for name := range elements.of {
		if !ofPage[name] && name != "input" && name != "s" { // bluemonday has rules of its own for these, and s is a token, too
			tags = append(tags, name)
		}
	}
	for _, a := range allowances {
		for attr := range strings.FieldsSeq(a.attrs) {
			name, g, _ := strings.Cut(attr, "=")
			if !strings.HasSuffix(name, "*") && g != "" && g != "style" && name != "aria-describedby" {
				attributes = append(attributes, name)
			}
		}
	}
	slices.Sort(tags)
	slices.Sort(attributes)
	attributes = append(slices.Compact(attributes), "onclick", "hidden", "popover", "form", "formaction", "background", "bgcolor", "http-equiv", "tabindex")
	kept := 0
	for range 20_000 {
		tag := "<" + tags[r.IntN(len(tags))]
		for i, n := r.IntN(len(attributes)), r.IntN(3); n > 0; n-- {
			tag += fmt.Sprintf(` %s="%s"`, attributes[i], values[r.IntN(len(values))])
			i = (i + 1) % len(attributes)
		}
		tag += ">"
		clean, _ := text.Sanitize(tag)
		stays := clean == tag
		returned := html.Sanitize(tag)
		returned = strings.Replace(strings.Replace(returned, ` rel="nofollow"`, "", 1), `/>`, ">", 1)
		same := returned == strings.Replace(tag, ` rel="nofollow"`, "", 1)
		if stays {
			kept++
		}
		ownScheme := strings.Contains(tag, `"display:none"`) || strings.Contains(tag, `"a b"`) // bluemonday takes no target such as ref:block
		if stays && !same && !ownScheme {
			t.Errorf("%s stays, and the policy returns %s", tag, returned)
		}
		if !stays && same && !strings.Contains(tag, "://") && !strings.Contains(tag, "javascript:") {
			t.Errorf("%s loses its form, and the policy returns it: %s", tag, clean)
		}
	}
	if kept < 500 {
		t.Errorf("only %d tags stay", kept)
	}
}
