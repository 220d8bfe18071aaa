package sanitize_test

import (
	"testing"

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
