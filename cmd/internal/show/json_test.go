package show

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// A terminal shows JSON as it is, and a program reads what was meant.
func TestJSON(t *testing.T) {
	const said = "\x1b[2J\u009b\u202e\u200b\U000e0041 <b>&ä"
	for _, indent := range []string{"", "  "} {
		var b strings.Builder
		if err := JSON(&b, map[string]any{"said": said, "raw": json.RawMessage(`"` + "\u202e\u009b" + `"`)}, indent); err != nil {
			t.Fatal(err)
		}
		var back struct{ Said, Raw string }
		if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Said != said || back.Raw != "\u202e\u009b" {
			t.Errorf("read back as %+v, %v", back, err)
		}
		if strings.IndexFunc(strings.ReplaceAll(b.String(), "\n", ""), func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || !strings.Contains(b.String(), "<b>&ä") {
			t.Errorf("written as %q", b.String())
		}
	}
}
