package sanitize_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

// A text that markers would make longer than its bound is replaced as a whole, and one that
// is longer and does not grow is not.
func TestTextsDoNotGrowBeyondTheirBound(t *testing.T) {
	for _, p := range []sanitize.Profile{sanitize.Code, sanitize.Text, sanitize.HTML, sanitize.Strict} {
		s, err := sanitize.New(sanitize.Options{Profile: p, Max: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"markers": strings.Repeat("\x01.", 900), "many markers": strings.Repeat("\x01.", 90_000)} {
			clean, found := s.Sanitize(text)
			if !strings.HasPrefix(clean, "[removed: text that") || len(clean) > 100 || found[len(found)-1].Rule != "text/size" {
				t.Errorf("%s, %s: %d bytes became %.100q, %v", p, name, len(text), clean, found)
			}
			if again, _ := s.Sanitize(clean); again != clean {
				t.Errorf("%s: %q became %q", p, clean, again)
			}
		}
		long := strings.Repeat("words ", 1000)
		if clean, found := s.Sanitize(long); clean != long {
			t.Errorf("%s: %d bytes became %.100q, %v", p, len(long), clean, found)
		}
		if clean, _ := s.Sanitize("a\x01b"); clean != "a[removed: control]b" {
			t.Errorf("%s: %q", p, clean)
		}
	}
	s, err := sanitize.New(sanitize.Options{Profile: sanitize.Strict, Max: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if clean, found := s.Sanitize(strings.Repeat(`"`, 900)); len(clean) > 100 {
		t.Errorf("quotes became %d bytes, %v", len(clean), found)
	}
}
