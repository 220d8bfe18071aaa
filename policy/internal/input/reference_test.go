package input_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/policy/internal/input"
)

var update = flag.Bool("update", false, "write the table into the document")

// TestReference: the document has the table of the fields that the input has. Run it with
// -update after a change of the input.
func TestReference(t *testing.T) {
	const document, begin, end = "../../../docs/reference/policy-input.md", "<!-- fields of the input, written by go test ./policy/internal/input -update -->\n", "<!-- end of the fields -->"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no place for the table", document)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+input.Reference()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != input.Reference() {
		t.Errorf("%s has another table; run go test ./policy/internal/input -update", document)
	}
}
